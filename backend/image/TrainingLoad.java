import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/**
 * The load of the training run: every endpoint, often enough that the JVM's profiles show the hot paths. Ends with an
 * error if the server ends before it is up, or answers wrongly, so that nobody makes a cache of a broken server. Its
 * arguments are the server's process id and its kind.
 */
class TrainingLoad {

    private static final int ROUNDS = 1_000;
    private static final String TRAFFIC = "http://127.0.0.1:8080";
    private static final String MANAGEMENT = "http://127.0.0.1:8081/actuator";

    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    void main(String[] arguments) throws IOException, InterruptedException {
        awaitServer(ProcessHandle.of(Long.parseLong(arguments[0])).orElseThrow());
        for (int round = 0; round < ROUNDS; round++) {
            expect(200, get(TRAFFIC + "/api/delay"));
            expect(200, get(TRAFFIC + "/api/delay?ms=1&bytes=20000"));
            String token = expect(200, post(TRAFFIC + "/api/wait", "")).replaceAll(".*\"token\":\"([^\"]+)\".*", "$1");
            expect(200, post(TRAFFIC + "/api/entry", "{\"token\":\"" + token + "\"}"));
            expect(200, get(MANAGEMENT + "/" + arguments[1]));
            if (round % 100 == 0) {
                expect(404, post(TRAFFIC + "/api/entry", "{\"token\":\"unknown\"}"));
                expect(400, get(TRAFFIC + "/api/delay?ms=-1"));
            }
        }
    }

    /** Has no time limit: on a busy machine the server, which records itself, may take minutes. */
    private void awaitServer(ProcessHandle server) throws IOException, InterruptedException {
        while (true) {
            try {
                expect(200, get(MANAGEMENT + "/health"));
                return;
            } catch (ConnectException refused) {
                if (!server.isAlive()) {
                    throw refused;
                }
                Thread.sleep(100);
            }
        }
    }

    private String expect(int status, HttpRequest request) throws IOException, InterruptedException {
        HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
        if (response.statusCode() != status) {
            throw new IllegalStateException(request.uri() + " answered " + response.statusCode() + " and not " + status
                    + ": " + response.body());
        }
        return response.body();
    }

    private static HttpRequest get(String uri) {
        return HttpRequest.newBuilder(URI.create(uri)).build();
    }

    private static HttpRequest post(String uri, String json) {
        return HttpRequest.newBuilder(URI.create(uri))
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString(json))
                .build();
    }
}
