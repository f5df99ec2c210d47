package connlab.backend.netty;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.TestPropertySource;

/** The one event loop of the traffic is blocked by a handler. */
@BackendTest
@TestPropertySource(
        properties = {
            "CONNLAB_SERVER=netty",
            "CONNLAB_NETTY_IO_WORKER_COUNT=1",
            "CONNLAB_NETTY_BLOCKING_HANDLER=true",
        })
class NettyBlockedTests {

    @LocalServerPort
    private int port;

    @LocalManagementPort
    private int managementPort;

    @Test
    void theManagementServerAnswersMeanwhile() throws IOException {
        try (Wire blocking = new Wire(port);
                Wire management = new Wire(managementPort)) {
            blocking.send("GET /api/delay?ms=3000 HTTP/1.1\r\nHost: test\r\n\r\n");
            await().atMost(Duration.ofMinutes(1))
                    .untilAsserted(
                            () -> assertThat(management.get("/actuator/netty").<Integer>json("$.threads.busy"))
                                    .isEqualTo(1));
            assertThat(management.get("/actuator/health").status()).isEqualTo(200);
            assertThat(blocking.receive().status()).isEqualTo(200);
        }
    }
}
