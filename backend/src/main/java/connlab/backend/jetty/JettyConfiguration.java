package connlab.backend.jetty;

import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.ServerConnector;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.jetty.JettyWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;

/** Sets what Spring Boot has no property for. */
@Configuration(proxyBeanMethods = false)
@Profile("jetty")
class JettyConfiguration {

    @Bean
    WebServerFactoryCustomizer<JettyWebServerFactory> acceptQueue(
            @Value("${traffic.jetty-accept-queue-size}") int acceptQueueSize) {
        return factory -> factory.addServerCustomizers(server -> {
            for (Connector connector : server.getConnectors()) {
                ((ServerConnector) connector).setAcceptQueueSize(acceptQueueSize);
            }
        });
    }
}
