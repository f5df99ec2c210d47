package connlab.backend.image;

import java.io.IOException;
import java.util.UUID;
import org.testcontainers.containers.Container.ExecResult;
import org.testcontainers.containers.GenericContainer;

/**
 * A container in a server's network namespace, as the lab's collector is: it sees its sockets and reaches its loopback.
 */
final class Neighbour implements AutoCloseable {

    private final GenericContainer<?> container;

    /** A neighbour in a namespace of its own, which outlives the servers that {@link #takeIn} puts there. */
    Neighbour() {
        this("bridge");
    }

    /** A neighbour in the namespace of a server that runs. */
    Neighbour(BackendContainer backend) {
        this("container:" + backend.getContainerId());
    }

    private Neighbour(String networkMode) {
        container = new GenericContainer<>("connlab/go-check")
                .withNetworkMode(networkMode)
                .withCommand("sleep", "infinity")
                .withCreateContainerCmdModifier(
                        command -> command.withName("connlab-backend-test-neighbour-" + UUID.randomUUID()));
        container.start();
    }

    /** Gives a server that has not started this neighbour's namespace. */
    void takeIn(BackendContainer backend) {
        backend.withNetworkMode("container:" + container.getContainerId());
    }

    /**
     * What a script prints.
     *
     * @throws IllegalStateException if the script fails
     */
    String bash(String script) throws IOException, InterruptedException {
        ExecResult result = container.execInContainer("bash", "-euo", "pipefail", "-c", script);
        if (result.getExitCode() != 0) {
            throw new IllegalStateException(script + ": exit " + result.getExitCode() + ": " + result.getStderr());
        }
        return result.getStdout().strip();
    }

    /** What the server reports on its management port, as JSON. */
    String tomcat() throws IOException, InterruptedException {
        return bash("""
                exec 3<>/dev/tcp/127.0.0.1/8081
                printf 'GET /actuator/tomcat HTTP/1.0\\r\\n\\r\\n' >&3
                sed '1,/^\\r$/d' <&3
                """);
    }

    @Override
    public void close() {
        container.stop();
    }
}
