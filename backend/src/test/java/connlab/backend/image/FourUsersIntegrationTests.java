package connlab.backend.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import okhttp3.ConnectionPool;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.junit.jupiter.api.Test;

/**
 * Four users of OkHttp at a server for one connection: the first is served, the second and the third wait in the accept
 * queue, which holds accept-count + 1, for the keep-alive time-out of those before them, and the fourth cannot connect.
 */
class FourUsersIntegrationTests {

    private static final Duration HANDLER = Duration.ofSeconds(1);
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);

    /** Apart, so that the acceptor has taken the first when the others come; users in the same millisecond race. */
    private static final Duration ARRIVAL_GAP = Duration.ofMillis(200);

    /** Tomcat looks for idle connections once a second. */
    private static final Duration TOLERANCE = Duration.ofMillis(1_500);

    @Test
    void threeAreServedOneAfterTheOtherAndTheFourthCannotConnect() throws Exception {
        try (BackendContainer backend = new BackendContainer(Map.of(
                "CONNLAB_ACCEPT_COUNT", "1",
                "CONNLAB_MAX_CONNECTIONS", "1",
                "CONNLAB_KEEP_ALIVE_TIMEOUT", "20000ms"))) {
            backend.start();
            String url = "http://" + backend.address() + ":" + BackendContainer.TRAFFIC_PORT + "/api/delay?ms="
                    + HANDLER.toMillis();

            List<Outcome> outcomes = arriveOneByOne(url, 4);

            assertThat(outcomes.subList(0, 3)).extracting(Outcome::failure).containsOnlyNulls();
            assertNear(outcomes.get(0).took(), Duration.ofSeconds(1));
            assertNear(outcomes.get(1).took(), Duration.ofSeconds(22).minus(ARRIVAL_GAP));
            assertNear(outcomes.get(2).took(), Duration.ofSeconds(43).minus(ARRIVAL_GAP.multipliedBy(2)));
            assertThat(outcomes.get(3).failure())
                    .isInstanceOf(SocketTimeoutException.class)
                    .hasMessage("Connect timed out");
            assertThat(outcomes.get(3).took()).isBetween(CONNECT_TIMEOUT, CONNECT_TIMEOUT.plusMillis(300));
        }
    }

    private static List<Outcome> arriveOneByOne(String url, int users) throws Exception {
        List<Future<Outcome>> calls = new ArrayList<>();
        try (ExecutorService crowd = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int user = 0; user < users; user++) {
                calls.add(crowd.submit(() -> call(url)));
                Thread.sleep(ARRIVAL_GAP);
            }
        }
        List<Outcome> outcomes = new ArrayList<>();
        for (Future<Outcome> call : calls) {
            outcomes.add(call.get());
        }
        return outcomes;
    }

    /** A user with a client, and so a pool and a connection, of its own, which it keeps open after the answer. */
    private static Outcome call(String url) {
        OkHttpClient client = new OkHttpClient.Builder()
                .connectionPool(new ConnectionPool())
                .connectTimeout(CONNECT_TIMEOUT)
                .readTimeout(Duration.ofSeconds(90))
                .retryOnConnectionFailure(false)
                .build();
        long startNs = System.nanoTime();
        IOException failure = null;
        try (Response response =
                client.newCall(new Request.Builder().url(url).build()).execute()) {
            assertThat(response.code()).isEqualTo(200);
            response.body().bytes();
        } catch (IOException e) {
            failure = e;
        }
        return new Outcome(Duration.ofNanos(System.nanoTime() - startNs), failure);
    }

    private static void assertNear(Duration took, Duration expected) {
        assertThat(took).isBetween(expected.minusMillis(100), expected.plus(TOLERANCE));
    }

    /** How long a call took, and why it failed: null if it did not. */
    private record Outcome(Duration took, IOException failure) {}
}
