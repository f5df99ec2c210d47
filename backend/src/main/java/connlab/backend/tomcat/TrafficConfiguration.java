package connlab.backend.tomcat;

import org.apache.catalina.connector.Connector;
import org.apache.coyote.UpgradeProtocol;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.tomcat.TomcatWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;

/**
 * Makes the traffic port speak {@link TrafficProtocol}. The management server has a context, and a Tomcat, of its own.
 */
@Configuration(proxyBeanMethods = false)
@Profile("tomcat")
@EnableConfigurationProperties(TrafficProperties.class)
class TrafficConfiguration {

    @Bean
    WebServerFactoryCustomizer<TomcatWebServerFactory> trafficProtocol(TrafficProperties knobs) {
        return factory -> {
            factory.setProtocol(TrafficProtocol.class.getName());
            factory.addConnectorCustomizers(connector -> setUp(connector, knobs));
        };
    }

    private static void setUp(Connector connector, TrafficProperties knobs) {
        for (SSLHostConfig host : connector.findSslHostConfigs()) {
            host.setSessionCacheSize(knobs.tlsSessionCache());
        }
        for (UpgradeProtocol upgrade : connector.findUpgradeProtocols()) {
            if (upgrade instanceof Http2Protocol http2) {
                http2.setMaxConcurrentStreams(knobs.http2MaxConcurrentStreams());
                http2.setMaxConcurrentStreamExecution(knobs.http2MaxConcurrentStreamExecution());
            }
        }
    }
}
