package connlab.backend;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.ComponentScan;

/** The server under load. Its settings come in {@code CONNLAB_*} environment variables. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
// The traffic server's context must not find classes that are only for the management server's.
@ComponentScan(excludeFilters = @ComponentScan.Filter(ManagementContextConfiguration.class))
public class BackendApplication {

    public static void main(String[] arguments) {
        SpringApplication.run(BackendApplication.class, arguments);
    }
}
