package connlab.backend.jetty;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import connlab.backend.EndpointTests;
import connlab.backend.Wire;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.test.context.TestPropertySource;

/** Every value differs from Jetty's default, so that none can be right by chance. */
@TestPropertySource(
        properties = {
            "CONNLAB_SERVER=jetty",
            "CONNLAB_JETTY_ACCEPT_QUEUE_SIZE=7",
            "CONNLAB_JETTY_MAX_CONNECTIONS=3",
            "CONNLAB_JETTY_THREADS_MAX=11",
            "CONNLAB_JETTY_THREADS_MIN=5",
            "CONNLAB_JETTY_ACCEPTORS=2",
            "CONNLAB_JETTY_SELECTORS=2",
            "CONNLAB_JETTY_IDLE_TIMEOUT=15000ms",
        })
class JettyEndpointTests extends EndpointTests {

    JettyEndpointTests() {
        super("jetty");
    }

    @Test
    void theKnobsReachTheLiveConnector() throws IOException {
        assertThat(report("settings"))
                .isEqualTo(Map.of(
                        "acceptQueueSize", 7,
                        "maxConnections", 3,
                        "maxThreads", 11,
                        "minThreads", 5,
                        "acceptors", 2,
                        "selectors", 2,
                        "idleTimeoutMs", 15000,
                        "virtualThreads", false));
    }

    @Test
    void connectionsThreadsAndRequestsAreCounted() throws IOException {
        try (Wire idle = new Wire(port);
                Wire busy = new Wire(port)) {
            idle.get("/api/delay?ms=50&bytes=1000");
            idle.get("/no/such/path");
            busy.send("GET /api/delay?ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
            await().atMost(PATIENCE).untilAsserted(() -> {
                Wire.Response report = report();
                // The acceptors and the selectors serve no request, nor does a reserved thread, if there is one by now.
                assertThat(report.<Integer>json("$.threads.busy")).isEqualTo(1);
                assertThat(report.<Integer>json("$.threads.max")).isBetween(6, 7);
                assertThat(report.<Map<String, Object>>json("$.requests"))
                        .containsEntry("count", 2)
                        .containsEntry("errors", 1);
                assertThat(report.<Integer>json("$.requests.processingMs")).isGreaterThanOrEqualTo(50);
                assertThat(report.<Integer>json("$.requests.bytesSent")).isGreaterThanOrEqualTo(1000);
            });
        }
    }

    @Test
    void anIdleConnectionIsCountedUntilJettyClosesIt() throws IOException {
        assertThatAnIdleConnectionIsCountedUntilTheServerClosesIt();
    }
}
