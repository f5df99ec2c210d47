package connlab.backend.image;

import com.github.dockerjava.api.command.CreateContainerCmd;
import com.github.dockerjava.api.model.Capability;
import com.github.dockerjava.api.model.HostConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.stream.Collectors;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

/**
 * The image as the lab runs it: without capabilities, on a read-only file system. The tests reach it by its own address
 * and not through a published port, where a proxy could accept connections that the server did not.
 */
final class BackendContainer extends GenericContainer<BackendContainer> {

    static final int TRAFFIC_PORT = 8080;

    /** How long a test waits: only a hang takes this long, even on a busy machine. */
    static final Duration PATIENCE = Duration.ofMinutes(5);

    BackendContainer(Map<String, String> knobs) {
        super("connlab/backend");
        knobsOfTheExample().forEach(this::withEnv);
        knobs.forEach(this::withEnv);
        withTmpFs(Map.of("/tmp", ""));
        withCreateContainerCmdModifier(BackendContainer::harden);
        waitingFor(Wait.forLogMessage(".*Started BackendApplication.*", 1).withStartupTimeout(PATIENCE));
    }

    /** With a folder for raw files. It names its mode: some releases of runc would take 0755, as the image has none. */
    BackendContainer withRaw() {
        return withTmpFs(Map.of("/tmp", "", "/raw", "mode=1777"));
    }

    /** The server's own address on Docker's network. */
    String address() {
        return getContainerInfo()
                .getNetworkSettings()
                .getNetworks()
                .values()
                .iterator()
                .next()
                .getIpAddress();
    }

    private static void harden(CreateContainerCmd command) {
        HostConfig host = command.getHostConfig();
        host.withCapDrop(Capability.ALL)
                .withSecurityOpts(List.of("no-new-privileges"))
                .withReadonlyRootfs(true);
        command.withName("connlab-backend-test-" + UUID.randomUUID());
    }

    private static Map<String, String> knobsOfTheExample() {
        Properties knobs = new Properties();
        try (var reader = Files.newBufferedReader(Path.of("image/knobs.env"))) {
            knobs.load(reader);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return knobs.stringPropertyNames().stream().collect(Collectors.toMap(name -> name, knobs::getProperty));
    }
}
