package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.TestPropertySource;

@BackendTest
@TestPropertySource(
        properties = {
            "CONNLAB_ADMISSION_PER_SECOND=0.001",
            "CONNLAB_POLLING_PERIOD=2500ms",
            "CONNLAB_TOKEN_TIMEOUT=600000ms",
            "CONNLAB_MAX_TOKENS=3"
        })
// Each test finds an empty room.
@DirtiesContext(classMode = DirtiesContext.ClassMode.AFTER_EACH_TEST_METHOD)
class WaitingRoomControllerTests {

    @LocalServerPort
    private int port;

    private Wire wire;

    @BeforeEach
    void connect() throws IOException {
        wire = new Wire(port);
    }

    @AfterEach
    void hangUp() {
        wire.close();
    }

    @Test
    void theFirstMayEnterAndTheSecondWaits() throws IOException {
        Wire.Response first = wire.post("/api/wait", "");
        assertThat(first.status()).isEqualTo(200);
        assertThat(first.<Integer>json("$.number")).isEqualTo(1);
        assertThat(first.<Boolean>json("$.canEnter")).isTrue();
        assertThat(first.<Integer>json("$.pollingPeriodMs")).isEqualTo(2_500);
        assertThat(first.<Long>json("$.turnUnixUs")).isPositive();

        String second = wire.post("/api/wait", "").json("$.token");
        Wire.Response look = wire.post("/api/entry", "{\"token\":\"" + second + "\"}");
        assertThat(look.body())
                .isEqualTo("{\"token\":\"" + second
                        + "\",\"number\":2,\"canEnter\":false,\"pollingPeriodMs\":2500,\"turnUnixUs\":null}");
    }

    @Test
    void anUnknownTokenIsNotFound() throws IOException {
        Wire.Response response = wire.post("/api/entry", "{\"token\":\"unknown\"}");

        assertThat(response.status()).isEqualTo(404);
        assertThat(response.headers()).containsEntry("content-type", "application/problem+json");
        assertThat(response.<String>json("$.detail")).isEqualTo("unknown or expired token");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{}", "{\"token\":null}", "token", "[]"})
    void aBodyWithoutATokenIsRefused(String body) throws IOException {
        Wire.Response response = wire.post("/api/entry", body);

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.headers()).containsEntry("content-type", "application/problem+json");
    }

    @Test
    void aFullRoomSendsTheUserAwayAndSaysForHowLong() throws IOException {
        long startNs = System.nanoTime();
        for (int user = 0; user < 3; user++) {
            assertThat(wire.post("/api/wait", "").status()).isEqualTo(200);
        }

        Wire.Response response = wire.post("/api/wait", "");
        assertThat(response.status()).isEqualTo(503);
        assertThat(response.headers()).containsEntry("content-type", "application/problem+json");
        // Until the oldest token times out.
        long passed = Duration.ofNanos(System.nanoTime() - startNs).toSeconds() + 1;
        assertThat(Long.parseLong(response.headers().get("retry-after"))).isBetween(600 - passed, 600L);
    }
}
