package connlab.backend.management;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import connlab.backend.EndpointTests;
import connlab.backend.Wire;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.test.context.TestPropertySource;

/** Every value differs from Tomcat's default, so that none can be right by chance. */
@TestPropertySource(
        properties = {
            "CONNLAB_ACCEPT_COUNT=7",
            "CONNLAB_MAX_CONNECTIONS=3",
            "CONNLAB_THREADS_MAX=5",
            "CONNLAB_THREADS_MIN_SPARE=2",
            "CONNLAB_KEEP_ALIVE_TIMEOUT=612345ms",
            "CONNLAB_MAX_KEEP_ALIVE_REQUESTS=9",
            "CONNLAB_CONNECTION_TIMEOUT=23456ms",
        })
class TomcatEndpointTests extends EndpointTests {

    TomcatEndpointTests() {
        super("tomcat");
    }

    @Test
    void theKnobsReachTheLiveConnector() throws IOException {
        assertThat(report("settings"))
                .containsAllEntriesOf(Map.of(
                        "acceptCount", 7,
                        "maxConnections", 3,
                        "maxThreads", 5,
                        "minSpareThreads", 2,
                        "keepAliveTimeoutMs", 612345,
                        "maxKeepAliveRequests", 9,
                        "connectionTimeoutMs", 23456,
                        "virtualThreads", false,
                        "tls", false,
                        "http2", false));
    }

    @Test
    void connectionsAreCountedWithoutTheOneThatTheAcceptorWaitsFor() throws IOException {
        assertThat(report("connections")).isEqualTo(Map.of("current", 0, "keepAlive", 0));

        try (Wire idle = new Wire(port);
                Wire busy = new Wire(port)) {
            idle.get("/api/delay");
            busy.send("GET /api/delay?ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
            await().atMost(PATIENCE).untilAsserted(() -> {
                Wire.Response report = report();
                assertThat(report.<Map<String, Object>>json("$.connections"))
                        .isEqualTo(Map.of("current", 2, "keepAlive", 1));
                assertThat(report.<Map<String, Object>>json("$.threads"))
                        .isEqualTo(Map.of("current", 2, "busy", 1, "max", 5));
            });
        }
    }

    @Test
    void requestsAreCounted() throws IOException {
        try (Wire wire = new Wire(port)) {
            wire.get("/api/delay?ms=50&bytes=1000");
            wire.get("/no/such/path");
        }

        await().atMost(PATIENCE).untilAsserted(() -> {
            Wire.Response report = report();
            assertThat(report.<Integer>json("$.requests.count")).isEqualTo(2);
            assertThat(report.<Integer>json("$.requests.errors")).isEqualTo(1);
            assertThat(report.<Integer>json("$.requests.processingMs")).isGreaterThanOrEqualTo(50);
            assertThat(report.<Integer>json("$.requests.bytesSent")).isBetween(1_000, 1_500);
        });
    }
}
