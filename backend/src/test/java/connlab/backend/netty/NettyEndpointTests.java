package connlab.backend.netty;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import connlab.backend.EndpointTests;
import connlab.backend.Wire;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.test.context.TestPropertySource;

/** Every value differs from Netty's default, so that none can be right by chance. */
@TestPropertySource(
        properties = {
            "CONNLAB_SERVER=netty",
            "CONNLAB_NETTY_SO_BACKLOG=7",
            "CONNLAB_NETTY_IO_WORKER_COUNT=2",
            "CONNLAB_NETTY_IDLE_TIMEOUT=15000ms",
            "CONNLAB_NETTY_MAX_KEEP_ALIVE_REQUESTS=3",
        })
class NettyEndpointTests extends EndpointTests {

    NettyEndpointTests() {
        super("netty");
    }

    @Test
    void theKnobsReachTheLiveServer() throws IOException {
        assertThat(report("settings"))
                .isEqualTo(Map.of(
                        "soBacklog", 7,
                        "ioWorkerCount", 2,
                        "idleTimeoutMs", 15000,
                        "maxKeepAliveRequests", 3,
                        "blockingHandler", false));
    }

    @Test
    void connectionsAndRequestsAreCounted() throws IOException {
        try (Wire idle = new Wire(port);
                Wire busy = new Wire(port)) {
            Wire.Response answer = idle.get("/api/delay?ms=50&bytes=20000");
            assertThat(answer.status()).isEqualTo(200);
            assertThat(answer.body()).hasSize(20_000).matches("x+");
            Wire.Response refused = idle.get("/api/delay?ms=-1");
            assertThat(refused.status()).isEqualTo(400);
            assertThat(refused.headers().get("content-type")).startsWith("application/problem+json");
            busy.send("GET /api/delay?ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
            await().atMost(PATIENCE).untilAsserted(() -> {
                Wire.Response report = report();
                assertThat(report.<Integer>json("$.connections.current")).isGreaterThanOrEqualTo(1);
                assertThat(report.<Map<String, Object>>json("$.requests"))
                        .containsEntry("count", 2)
                        .containsEntry("errors", 1);
                assertThat(report.<Integer>json("$.requests.processingMs")).isGreaterThanOrEqualTo(50);
                assertThat(report.<Integer>json("$.requests.bytesSent")).isGreaterThanOrEqualTo(20_000);
                assertThat(report.<Map<String, Object>>json("$.threads"))
                        .isEqualTo(Map.of("current", 2, "busy", 0, "max", 2));
            });
        }
    }

    @Test
    void anIdleConnectionIsCountedUntilNettyClosesIt() throws IOException {
        assertThatAnIdleConnectionIsCountedUntilTheServerClosesIt();
    }

    @Test
    void theLastRequestOfAConnectionIsAnsweredWithAClose() throws IOException {
        try (Wire counted = new Wire(port)) {
            counted.send("GET /api/delay HTTP/1.1\r\nHost: test\r\n\r\n".repeat(3));
            assertThat(counted.receive().headers()).doesNotContainEntry("connection", "close");
            assertThat(counted.receive().headers()).doesNotContainEntry("connection", "close");
            assertThat(counted.receive().headers()).containsEntry("connection", "close");
            assertThat(counted.isClosedWithin(PATIENCE)).isTrue();
        }
    }
}
