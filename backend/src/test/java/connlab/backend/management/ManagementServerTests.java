package connlab.backend.management;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.TestPropertySource;

/** The management server beside a traffic server whose every knob is as tight as it goes. */
@BackendTest
@TestPropertySource(
        properties = {
            "CONNLAB_ACCEPT_COUNT=1",
            "CONNLAB_MAX_CONNECTIONS=1",
            "CONNLAB_THREADS_MAX=1",
            "CONNLAB_THREADS_MIN_SPARE=1",
            "CONNLAB_KEEP_ALIVE_TIMEOUT=200ms",
            "CONNLAB_MAX_KEEP_ALIVE_REQUESTS=2",
            "CONNLAB_CONNECTION_TIMEOUT=2000ms",
        })
class ManagementServerTests {

    /** Long after the traffic server's timeouts; Tomcat looks for them once a second. */
    private static final Duration IDLE = Duration.ofSeconds(4);

    /** Only a server that never closes takes this long. */
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    @LocalServerPort
    private int port;

    @LocalManagementPort
    private int managementPort;

    @Test
    void isHealthy() throws IOException {
        try (Wire wire = new Wire(managementPort)) {
            Wire.Response health = wire.get("/actuator/health");

            assertThat(health.status()).isEqualTo(200);
            assertThat(health.<String>json("$.status")).isEqualTo("UP");
        }
    }

    @Test
    void answersManyConnectionsWhileTheTrafficServerIsFull() throws IOException {
        List<Wire> wires = new ArrayList<>();
        try (Wire traffic = new Wire(port)) {
            traffic.send("GET /api/delay?ms=2000 HTTP/1.1\r\nHost: test\r\n\r\n");
            for (int connection = 0; connection < 20; connection++) {
                Wire wire = new Wire(managementPort);
                wires.add(wire);
                assertThat(wire.get("/actuator/tomcat").status()).isEqualTo(200);
            }
        } finally {
            wires.forEach(Wire::close);
        }
    }

    @Test
    void neverHangsUpByTheCountOfRequests() throws IOException {
        try (Wire wire = new Wire(managementPort)) {
            for (int request = 0; request < 1_000; request++) {
                Wire.Response response = wire.get("/actuator/tomcat");

                assertThat(response.status()).isEqualTo(200);
                assertThat(response.headers()).doesNotContainKey("connection");
            }
        }
    }

    @Test
    void neverHangsUpOnAnIdleConnection() throws IOException {
        try (Wire wire = new Wire(managementPort)) {
            wire.get("/actuator/tomcat");

            assertThat(wire.isClosedWithin(IDLE)).isFalse();
            assertThat(wire.get("/actuator/tomcat").status()).isEqualTo(200);
        }
    }

    @Test
    void theTrafficServerDoesHangUp() throws IOException {
        try (Wire idle = new Wire(port)) {
            idle.get("/api/delay");
            assertThat(idle.isClosedWithin(PATIENCE)).isTrue();
        }
        try (Wire counted = new Wire(port)) {
            // Both at once: between two, a busy machine may take longer than the keep-alive timeout.
            counted.send("GET /api/delay HTTP/1.1\r\nHost: test\r\n\r\n".repeat(2));
            assertThat(counted.receive().headers()).doesNotContainEntry("connection", "close");
            assertThat(counted.receive().headers()).containsEntry("connection", "close");
            assertThat(counted.isClosedWithin(PATIENCE)).isTrue();
        }
    }

    @Test
    void theTrafficServerAnswersNoManagement() throws IOException {
        try (Wire wire = new Wire(port)) {
            assertThat(wire.get("/actuator/tomcat").status()).isEqualTo(404);
        }
    }
}
