package connlab.backend.management;

import org.apache.catalina.connector.Connector;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.boot.jetty.JettyWebServerFactory;
import org.springframework.boot.tomcat.TomcatWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Profile;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;

/**
 * Frees the management server from the knobs of the traffic server, which Spring Boot applies to both. With these knobs
 * a kept-alive connection could lock the monitor out, and the server could close its connection and leave TIME_WAIT
 * behind: the monitor would disturb what it watches.
 *
 * <p>Only the management server's own context sees this class, by
 * {@code META-INF/spring/org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration.imports}.
 */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
@Profile("!netty")
public class ManagementServerConfiguration {

    private static final int NO_LIMIT = -1;
    private static final int CONNECTIONS = 64;
    private static final int THREADS = 4;
    private static final int CONNECTION_TIMEOUT_MS = 20_000;

    /** Comes last, after Spring Boot's own customizers have set what the knobs say. */
    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    WebServerFactoryCustomizer<TomcatWebServerFactory> managementConnector() {
        return factory -> {
            factory.setSsl(null);
            factory.setHttp2(null);
            factory.addConnectorCustomizers(ManagementServerConfiguration::setUp);
        };
    }

    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    WebServerFactoryCustomizer<JettyWebServerFactory> managementJetty() {
        return factory -> {
            // Jetty takes threads of the same pool for its acceptor and its selector.
            factory.setThreadPool(new QueuedThreadPool(2 * THREADS, 1));
            factory.setAcceptors(1);
            factory.setSelectors(1);
            factory.setMaxConnections(CONNECTIONS);
            factory.addServerCustomizers(server -> {
                for (org.eclipse.jetty.server.Connector connector : server.getConnectors()) {
                    ((ServerConnector) connector).setAcceptQueueSize(CONNECTIONS);
                    ((ServerConnector) connector).setIdleTimeout(NO_LIMIT);
                }
            });
        };
    }

    private static void setUp(Connector connector) {
        AbstractHttp11Protocol<?> protocol = (AbstractHttp11Protocol<?>) connector.getProtocolHandler();
        // A small pool of its own, even if the traffic runs on virtual threads.
        protocol.setExecutor(null);
        protocol.setMaxThreads(THREADS);
        protocol.setMinSpareThreads(1);
        protocol.setMaxConnections(CONNECTIONS);
        protocol.setAcceptCount(CONNECTIONS);
        protocol.setConnectionTimeout(CONNECTION_TIMEOUT_MS);
        protocol.setKeepAliveTimeout(NO_LIMIT);
        protocol.setMaxKeepAliveRequests(NO_LIMIT);
    }
}
