package connlab.backend.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.command.InspectContainerResponse.ContainerState;
import com.jayway.jsonpath.JsonPath;
import connlab.backend.Wire;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.testcontainers.containers.startupcheck.StartupCheckStrategy;
import org.testcontainers.containers.wait.strategy.WaitAllStrategy;
import org.testcontainers.utility.DockerStatus;

/** How the real image starts, refuses to start, and ends. */
class StartIntegrationTests {

    /** The kernel's own constant, less what passes between the old server's close and its restart. */
    private static final Duration TIME_WAIT = Duration.ofSeconds(50);

    private static final int PATIENCE_S = Math.toIntExact(BackendContainer.PATIENCE.toSeconds());

    @Test
    void aKnobThatIsNotValidEndsTheStartInOneLine() {
        try (BackendContainer backend = new BackendContainer(Map.of("CONNLAB_HEAP_MB", "63"))
                .withStartupCheckStrategy(new Ended())
                .waitingFor(new WaitAllStrategy())) {
            backend.start();

            assertThat(backend.getLogs().strip())
                    .isEqualTo("backend: BACKEND_HEAP_MB (in the container: CONNLAB_HEAP_MB): '63' is not valid;"
                            + " from 64 to 32000");
            assertThat(backend.getCurrentContainerInfo().getState().getExitCodeLong())
                    .isEqualTo(2);
        }
    }

    @ParameterizedTest
    @CsvSource({"tomcat, 64", "tomcat, 256", "tomcat, 1024", "jetty, 256", "netty, 256"})
    void theJvmTakesTheAotCacheWhateverTheHeap(String server, String heapMb) {
        // This mode ends the JVM if it cannot use the cache; by itself it would only start more slowly.
        try (BackendContainer backend = new BackendContainer(
                Map.of("CONNLAB_SERVER", server, "CONNLAB_HEAP_MB", heapMb, "JAVA_TOOL_OPTIONS", "-XX:AOTMode=on"))) {
            backend.start();

            assertThat(backend.isRunning()).isTrue();
        }
    }

    @Test
    void sigtermEndsTheServerAndCutsOffWhatLastsLongerThanASecond() throws IOException, InterruptedException {
        try (BackendContainer backend = new BackendContainer(Map.of())) {
            backend.start();
            try (Neighbour neighbour = new Neighbour(backend);
                    Wire idle = new Wire(backend.address(), BackendContainer.TRAFFIC_PORT);
                    Wire endless = new Wire(backend.address(), BackendContainer.TRAFFIC_PORT)) {
                idle.get("/api/delay");
                endless.send("GET /api/delay?ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
                awaitARequestUnderWay(neighbour);
                stop(backend);

                assertEndedByTheSignal(backend);
                assertThat(backend.getLogs()).contains("still running after timeout of 1000ms");
                assertThat(idle.isClosedWithin(BackendContainer.PATIENCE)).isTrue();
                assertThat(endless.isClosedWithin(BackendContainer.PATIENCE)).isTrue();
            }
        }
    }

    @Test
    void sigtermLetsRequestsFinish() throws IOException, InterruptedException {
        // Long enough to see the request in progress, and a grace that is longer still, even on a busy machine.
        try (BackendContainer backend =
                new BackendContainer(Map.of("SPRING_LIFECYCLE_TIMEOUTPERSHUTDOWNPHASE", "2m"))) {
            backend.start();
            try (Neighbour neighbour = new Neighbour(backend);
                    Wire brief = new Wire(backend.address(), BackendContainer.TRAFFIC_PORT)) {
                brief.send("GET /api/delay?ms=10000 HTTP/1.1\r\nHost: test\r\n\r\n");
                awaitARequestUnderWay(neighbour);
                stop(backend);

                assertEndedByTheSignal(backend);
                assertThat(brief.receive().status()).isEqualTo(200);
            }
        }
    }

    @Test
    void aServerStartedAgainInItsNamespaceListensBesideTheTimeWaitOfTheOldOne()
            throws IOException, InterruptedException {
        try (Neighbour holder = new Neighbour();
                BackendContainer backend = new BackendContainer(Map.of())) {
            holder.takeIn(backend);
            backend.start();
            String request = """
                    exec 3<>/dev/tcp/127.0.0.1/8080
                    printf 'GET /api/delay HTTP/1.0\\r\\n\\r\\n' >&3
                    cat <&3
                    """;
            assertThat(holder.bash(request)).startsWith("HTTP/1.1 200");
            long restartNs = System.nanoTime();
            backend.getDockerClient()
                    .restartContainerCmd(backend.getContainerId())
                    .withTimeout(PATIENCE_S)
                    .exec();

            await().atMost(BackendContainer.PATIENCE)
                    .ignoreExceptions()
                    .untilAsserted(() -> assertThat(holder.bash(request)).startsWith("HTTP/1.1 200"));
            String timeWait = holder.bash("ss --no-header -tan state time-wait 'sport = :8080'");
            assumeThat(Duration.ofNanos(System.nanoTime() - restartNs))
                    .as("a busy machine may need longer for the start than TIME_WAIT lasts")
                    .isLessThan(TIME_WAIT);
            // The old server's, which closed first, and one more for the request just made.
            assertThat(timeWait.lines()).hasSizeGreaterThanOrEqualTo(2);
        }
    }

    @Test
    void theCollectorsLogJoinsTheRawFiles() throws IOException, InterruptedException {
        try (BackendContainer backend = new BackendContainer(Map.of())) {
            backend.withRaw().start();

            assertThat(backend.execInContainer("stat", "-c", "%a %U", "/raw/gc.log")
                            .getStdout()
                            .strip())
                    .isEqualTo("644 connlab");
            assertThat(firstLine(backend, "/raw/gc.log")).matches("\\[[0-9]{13}ms]\\[.*\\R");
        }
    }

    @Test
    void aServerStartedAgainLeavesTheFormerLogAsItIs() throws IOException, InterruptedException {
        try (BackendContainer backend = new BackendContainer(Map.of())) {
            backend.withRaw().start();
            String former = firstLine(backend, "/raw/gc.log");

            // Beside the first one, for a container that starts again has an empty /raw. Its port is taken, so it ends.
            backend.execInContainer("/opt/backend/start");

            assertThat(firstLine(backend, "/raw/gc.log")).isEqualTo(former);
            assertThat(firstLine(backend, "/raw/gc.2.log")).isNotEmpty().isNotEqualTo(former);
        }
    }

    @Test
    void neitherTheStartNorTheManagementPollLeavesTimeWait() throws IOException, InterruptedException {
        try (BackendContainer backend = new BackendContainer(Map.of())) {
            backend.start();
            try (Neighbour neighbour = new Neighbour(backend)) {
                // The poll of two and a half minutes on one connection, which stays open to the end of the script.
                String seen = neighbour.bash("""
                        exec 3<>/dev/tcp/127.0.0.1/8081
                        for poll in $(seq 150); do
                          printf 'GET /actuator/tomcat HTTP/1.1\\r\\nHost: collector\\r\\n\\r\\n' >&3
                          read -r _ status _ <&3
                          ((status == 200))
                          while read -r name value <&3 && [[ $name != $'\\r' ]]; do
                            [[ $name != Content-Length: ]] || length=${value%$'\\r'}
                          done
                          read -r -N "$length" _ <&3
                        done
                        ss --no-header -tn state established 'dport = :8081'
                        ss --no-header -tan state time-wait
                        """);

                assertThat(seen.lines()).hasSize(1);
            }
        }
    }

    private static void awaitARequestUnderWay(Neighbour neighbour) {
        await().atMost(BackendContainer.PATIENCE)
                .untilAsserted(() -> assertThat(JsonPath.<Integer>read(neighbour.tomcat(), "$.threads.busy"))
                        .isEqualTo(1));
    }

    /** Sends SIGTERM, and SIGKILL only to a server that hangs. */
    private static void stop(BackendContainer backend) {
        backend.getDockerClient()
                .stopContainerCmd(backend.getContainerId())
                .withTimeout(PATIENCE_S)
                .exec();
    }

    /** 128 + 15: the JVM ended on the signal by itself, without the kill that would follow. */
    private static void assertEndedByTheSignal(BackendContainer backend) {
        assertThat(backend.getCurrentContainerInfo().getState().getExitCodeLong())
                .isEqualTo(143);
    }

    private static String firstLine(BackendContainer backend, String file) throws IOException, InterruptedException {
        return backend.execInContainer("head", "-n", "1", file).getStdout();
    }

    /** Accepts the end of a container as its start. */
    private static final class Ended extends StartupCheckStrategy {

        @Override
        public StartupStatus checkStartupState(DockerClient client, String containerId) {
            ContainerState state = getCurrentState(client, containerId);
            return DockerStatus.isContainerStopped(state) ? StartupStatus.SUCCESSFUL : StartupStatus.NOT_YET_KNOWN;
        }
    }
}
