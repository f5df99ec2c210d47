package connlab.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContextException;

@ExtendWith(OutputCaptureExtension.class)
class StartFailureTests {

    @Test
    void aTakenPortEndsTheStartInOneLineOnStandardError(CapturedOutput output) throws IOException {
        try (ServerSocket taken = new ServerSocket(0)) {
            assertThatExceptionOfType(ApplicationContextException.class)
                    .isThrownBy(() -> start(knobs(), "--server.port=" + taken.getLocalPort()));
            assertThat(output.getErr().lines())
                    .containsExactly("backend: Web server failed to start. Port " + taken.getLocalPort()
                            + " was already in use.");
        }
    }

    private static void start(Properties knobs, String... arguments) {
        SpringApplication application = new SpringApplication(BackendApplication.class);
        application.setDefaultProperties(knobs);
        application.run(arguments).close();
    }

    private static Properties knobs() throws IOException {
        Properties knobs = new Properties();
        try (var reader = Files.newBufferedReader(Path.of("image/knobs.env"))) {
            knobs.load(reader);
        }
        return knobs;
    }
}
