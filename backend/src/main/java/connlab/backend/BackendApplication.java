package connlab.backend;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.ComponentScan;

/** The server under load. Its settings come in {@code CONNLAB_*} environment variables. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
// What is meant for the management server's context alone must not be found for the traffic server's.
@ComponentScan(excludeFilters = @ComponentScan.Filter(ManagementContextConfiguration.class))
public class BackendApplication {

    public static void main(String[] arguments) {
        SpringApplication.run(BackendApplication.class, arguments);
    }
}
