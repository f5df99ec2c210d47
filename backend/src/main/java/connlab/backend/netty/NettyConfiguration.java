package connlab.backend.netty;

import io.netty.channel.ChannelOption;
import java.time.Duration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;
import org.springframework.http.client.ReactorResourceFactory;
import reactor.netty.http.server.HttpServer;
import reactor.netty.resources.LoopResources;

/** The traffic server on Netty, with event loops of its own. */
@Configuration(proxyBeanMethods = false)
@Profile("netty")
@EnableConfigurationProperties(NettyProperties.class)
class NettyConfiguration {

    /** Spring Boot would give the management server the same loops, and a handler that blocks them would block it. */
    @Bean
    ReactorResourceFactory trafficLoops(NettyProperties knobs) {
        return loops("traffic", knobs.ioWorkerCount());
    }

    @Bean
    WebServerFactoryCustomizer<NettyReactiveWebServerFactory> trafficServer(
            NettyProperties knobs, NettyTraffic traffic) {
        return factory -> factory.addServerCustomizers(server -> setUp(server, knobs, traffic));
    }

    private static HttpServer setUp(HttpServer server, NettyProperties knobs, NettyTraffic traffic) {
        HttpServer made = server.option(ChannelOption.SO_BACKLOG, knobs.soBacklog())
                .maxKeepAliveRequests(knobs.maxKeepAliveRequests())
                .doOnBind(traffic::configured)
                .doOnBound(traffic::bound)
                .doOnChannelInit((_, connection, _) -> traffic.accepted(connection));
        return knobs.idleTimeout().isZero() ? made : made.idleTimeout(knobs.idleTimeout());
    }

    static ReactorResourceFactory loops(String name, int count) {
        ReactorResourceFactory loops = new ReactorResourceFactory();
        loops.setUseGlobalResources(false);
        // By default the loops end only after two quiet seconds.
        loops.setShutdownQuietPeriod(Duration.ZERO);
        loops.setLoopResourcesSupplier(() -> LoopResources.create(name, count, true));
        return loops;
    }
}
