package connlab.backend.delay;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.web.server.LocalServerPort;

@BackendTest
class DelayControllerTests {

    @LocalServerPort
    private int port;

    private Wire.Response get(String path) throws IOException {
        try (Wire wire = new Wire(port)) {
            return wire.get(path);
        }
    }

    @Test
    void answersNothingAtOnceUnlessAsked() throws IOException {
        Wire.Response response = get("/api/delay");

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.headers()).containsEntry("content-length", "0");
        assertThat(response.headers().get("content-type")).startsWith("text/plain");
    }

    @Test
    void answersAfterTheDelay() throws IOException {
        long startNs = System.nanoTime();
        assertThat(get("/api/delay?ms=300").status()).isEqualTo(200);

        assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isGreaterThanOrEqualTo(Duration.ofMillis(300));
    }

    @Test
    void answersAPostAlike() throws IOException {
        try (Wire wire = new Wire(port)) {
            Wire.Response response = wire.post("/api/delay?bytes=3", "");

            assertThat(response.status()).isEqualTo(200);
            assertThat(response.body()).isEqualTo("xxx");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 16 * 1024, 16 * 1024 + 1, 10 * 1024 * 1024})
    void answersWithAsManyBytes(int bytes) throws IOException {
        Wire.Response response = get("/api/delay?bytes=" + bytes);

        assertThat(response.headers()).containsEntry("content-length", Integer.toString(bytes));
        assertThat(response.body().equals("x".repeat(bytes))).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ms=-1",
                "ms=600001",
                "ms=1.5",
                "ms=x",
                "bytes=-1",
                "bytes=10485761",
                "bytes=99999999999999999999"
            })
    void refusesWhatIsOutOfRange(String query) throws IOException {
        Wire.Response response = get("/api/delay?" + query);

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.headers()).containsEntry("content-type", "application/problem+json");
        assertThat(response.body()).contains(query.substring(0, query.indexOf('=')));
    }
}
