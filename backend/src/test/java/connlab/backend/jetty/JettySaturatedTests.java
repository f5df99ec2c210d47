package connlab.backend.jetty;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.TestPropertySource;

/** More requests than threads, which Jetty shares with its acceptor, its selector and what it reserves for that. */
@BackendTest
@TestPropertySource(properties = {"CONNLAB_SERVER=jetty", "CONNLAB_JETTY_THREADS_MAX=6", "CONNLAB_JETTY_THREADS_MIN=4"})
class JettySaturatedTests {

    @LocalServerPort
    private int port;

    @LocalManagementPort
    private int managementPort;

    @Test
    void thePageShowsThatNoThreadIsFree() throws IOException {
        List<Wire> busy = new ArrayList<>();
        try (Wire management = new Wire(managementPort)) {
            for (int request = 0; request < 8; request++) {
                busy.add(new Wire(port));
                busy.getLast().send("GET /api/delay?ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
            }
            await().atMost(Duration.ofMinutes(1)).untilAsserted(() -> {
                Map<String, Object> threads = management.get("/actuator/jetty").json("$.threads");
                assertThat(threads.get("busy")).isEqualTo(threads.get("max")).isNotEqualTo(0);
            });
        } finally {
            for (Wire wire : busy) {
                wire.close();
            }
        }
    }
}
