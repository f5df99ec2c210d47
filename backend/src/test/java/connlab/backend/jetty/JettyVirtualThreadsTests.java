package connlab.backend.jetty;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.test.context.TestPropertySource;

@BackendTest
@TestPropertySource(
        properties = {"CONNLAB_SERVER=jetty", "CONNLAB_VIRTUAL_THREADS=true", "CONNLAB_JETTY_THREADS_MAX=11"})
class JettyVirtualThreadsTests {

    @LocalManagementPort
    private int managementPort;

    @Test
    void thereAreAtMostAsManyVirtualThreadsAsThePoolWouldHave() throws IOException {
        try (Wire management = new Wire(managementPort)) {
            assertThat(management.get("/actuator/jetty").<Map<String, Object>>json("$.settings"))
                    .containsEntry("virtualThreads", true)
                    .containsEntry("maxThreads", 11)
                    .containsEntry("maxConnections", -1)
                    .containsEntry("minThreads", null);
        }
    }
}
