package connlab.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;

/** What the page of a server shows, whichever server it is. Each server's tests have knobs and counts of their own. */
@BackendTest
// The counts begin at zero.
@DirtiesContext(classMode = DirtiesContext.ClassMode.AFTER_EACH_TEST_METHOD)
public abstract class EndpointTests {

    /** Only a hang takes this long, even on a busy machine. */
    protected static final Duration PATIENCE = Duration.ofMinutes(5);

    @LocalServerPort
    protected int port;

    @LocalManagementPort
    protected int managementPort;

    private final String page;

    protected EndpointTests(String server) {
        page = "/actuator/" + server;
    }

    protected Wire.Response report() throws IOException {
        try (Wire wire = new Wire(managementPort)) {
            return wire.get(page);
        }
    }

    protected Map<String, Object> report(String part) throws IOException {
        return report().json("$." + part);
    }

    /** For a server whose idle timeout is some seconds. */
    protected void assertThatAnIdleConnectionIsCountedUntilTheServerClosesIt() throws IOException {
        try (Wire idle = new Wire(port)) {
            idle.get("/api/delay");
            // The client has its answer a moment before the server waits for the next request.
            awaitConnections(1, 1);
            assertThat(idle.isClosedWithin(PATIENCE)).isTrue();
        }
        awaitConnections(0, 0);
    }

    private void awaitConnections(int current, int keepAlive) {
        Map<String, Object> expected = Map.of("current", current, "keepAlive", keepAlive);
        await().atMost(PATIENCE)
                .untilAsserted(() -> assertThat(report("connections")).isEqualTo(expected));
    }

    @Test
    void theWaitingRoomAdmitsAndIsCounted() throws IOException {
        try (Wire wire = new Wire(port)) {
            String token = wire.post("/api/wait", "").json("$.token");
            assertThat(wire.post("/api/entry", "{\"token\":\"" + token + "\"}").<Boolean>json("$.canEnter"))
                    .isTrue();
        }
        assertThat(report("waitingRoom")).isEqualTo(Map.of("waiting", 0, "admitted", 1, "abandoned", 0, "issued", 1));
    }

    @Test
    void theManagementServerHasLimitsOfItsOwn() throws IOException {
        try (Wire one = new Wire(managementPort);
                Wire two = new Wire(managementPort);
                Wire three = new Wire(managementPort);
                Wire four = new Wire(managementPort)) {
            for (Wire wire : new Wire[] {one, two, three, four}) {
                assertThat(wire.get("/actuator/health").status()).isEqualTo(200);
            }
            // Long after a traffic server's timeout.
            assertThat(one.isClosedWithin(Duration.ofSeconds(4))).isFalse();
            assertThat(one.get(page).status()).isEqualTo(200);
        }
    }
}
