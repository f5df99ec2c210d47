package connlab.backend.image;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What the kernel and Tomcat report about the real image. Each setting differs from its default. */
class SettingsIntegrationTests {

    private static final BackendContainer BACKEND = new BackendContainer(Map.of(
            "CONNLAB_ACCEPT_COUNT", "7",
            "CONNLAB_MAX_CONNECTIONS", "3",
            "CONNLAB_MAX_KEEP_ALIVE_REQUESTS", "2",
            "CONNLAB_KEEP_ALIVE_TIMEOUT", "1000ms"));

    private static Neighbour neighbour;

    @BeforeAll
    static void start() {
        BACKEND.start();
        neighbour = new Neighbour(BACKEND);
    }

    @AfterAll
    static void stop() {
        if (neighbour != null) {
            neighbour.close();
        }
        BACKEND.stop();
    }

    @Test
    void theAcceptCountIsTheListenBacklogInTheKernel() throws IOException, InterruptedException {
        // For a listening socket, ss prints the length of the accept queue, then its limit.
        assertThat(neighbour.bash("ss --no-header -ltn 'sport = :8080'"))
                .containsPattern("^LISTEN +0 +7 +0\\.0\\.0\\.0:8080 ");
    }

    @Test
    void theManagementPortListensOnLoopbackAlone() throws IOException, InterruptedException {
        assertThat(neighbour.bash("ss --no-header -ltn 'sport = :8081'"))
                .containsPattern("^LISTEN +0 +[0-9]+ +127\\.0\\.0\\.1:8081 ")
                .doesNotContain("\n");
    }

    @Test
    void tomcatReportsTheSettingsInForce() throws IOException, InterruptedException {
        assertThat(JsonPath.<Map<String, Object>>read(neighbour.tomcat(), "$.settings"))
                .containsAllEntriesOf(Map.of(
                        "acceptCount", 7,
                        "maxConnections", 3,
                        "maxThreads", 200,
                        "minSpareThreads", 10,
                        "keepAliveTimeoutMs", 1_000,
                        "maxKeepAliveRequests", 2,
                        "connectionTimeoutMs", 20_000,
                        "virtualThreads", false));
    }
}
