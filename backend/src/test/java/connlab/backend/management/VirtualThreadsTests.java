package connlab.backend.management;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.TestPropertySource;

@BackendTest
@TestPropertySource(properties = "CONNLAB_VIRTUAL_THREADS=true")
class VirtualThreadsTests {

    @LocalServerPort
    private int port;

    @LocalManagementPort
    private int managementPort;

    @Test
    void theConnectorRunsOnVirtualThreadsWhichNoPoolBounds() throws IOException {
        try (Wire traffic = new Wire(port);
                Wire management = new Wire(managementPort)) {
            assertThat(traffic.get("/api/delay").status()).isEqualTo(200);
            Wire.Response report = management.get("/actuator/tomcat");

            assertThat(report.<Map<String, Object>>json("$.settings"))
                    .containsEntry("virtualThreads", true)
                    .containsEntry("maxThreads", null)
                    .containsEntry("minSpareThreads", null);
            assertThat(report.<Map<String, Object>>json("$.threads"))
                    .containsEntry("current", null)
                    .containsEntry("busy", null);
        }
    }

    @Test
    void theManagementServerKeepsThreadsOfItsOwn() throws IOException {
        try (Wire management = new Wire(managementPort)) {
            assertThat(management.get("/actuator/tomcat").status()).isEqualTo(200);
        }

        // Only a pool of Tomcat's names its threads so, and the traffic server has none here.
        assertThat(Thread.getAllStackTraces().keySet())
                .extracting(Thread::getName)
                .anyMatch(name -> name.startsWith("http-nio-127.0.0.1-") && name.contains("-exec-"));
    }
}
