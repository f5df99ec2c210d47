package connlab.backend.netty;

import io.netty.channel.ChannelOption;
import java.time.Duration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Profile;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.client.ReactorResourceFactory;

/** Gives the management server an event loop of its own, which no handler of the traffic can block. */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
@Profile("netty")
public class NettyManagementConfiguration {

    private static final int BACKLOG = 64;

    @Bean
    ReactorResourceFactory managementLoops() {
        return NettyConfiguration.loops("management", 1);
    }

    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    WebServerFactoryCustomizer<NettyReactiveWebServerFactory> managementNetty(ReactorResourceFactory managementLoops) {
        return factory -> {
            factory.setSsl(null);
            factory.setHttp2(null);
            factory.setResourceFactory(managementLoops);
            factory.addServerCustomizers(
                    server -> server.option(ChannelOption.SO_BACKLOG, BACKLOG).idleTimeout(Duration.ofDays(1)));
        };
    }
}
