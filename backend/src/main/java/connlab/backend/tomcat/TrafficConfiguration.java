package connlab.backend.tomcat;

import org.springframework.boot.tomcat.TomcatWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Makes the traffic port speak {@link TrafficProtocol}. The management server has a context, and a Tomcat, of its own.
 */
@Configuration(proxyBeanMethods = false)
class TrafficConfiguration {

    @Bean
    WebServerFactoryCustomizer<TomcatWebServerFactory> trafficProtocol() {
        return factory -> factory.setProtocol(TrafficProtocol.class.getName());
    }
}
