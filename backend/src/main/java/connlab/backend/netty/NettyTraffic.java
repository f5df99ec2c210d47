package connlab.backend.netty;

import connlab.backend.traffic.Report;
import io.netty.channel.Channel;
import io.netty.channel.socket.ServerSocketChannelConfig;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.springframework.context.annotation.Profile;
import org.springframework.http.HttpStatusCode;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;
import reactor.netty.DisposableServer;
import reactor.netty.http.server.HttpServerConfig;

/** What the traffic server does, counted as it happens: Netty keeps no such counts. */
@Component
@Profile("netty")
class NettyTraffic implements WebFilter {

    private static final int FIRST_ERROR = 400;

    private final AtomicInteger open = new AtomicInteger();
    private final AtomicInteger active = new AtomicInteger();
    private final AtomicInteger blocked = new AtomicInteger();
    private final AtomicInteger answered = new AtomicInteger();
    private final AtomicInteger errors = new AtomicInteger();
    private final LongAdder processingNs = new LongAdder();
    private final LongAdder bytes = new LongAdder();

    private volatile int port;
    private volatile HttpServerConfig configuration;
    private volatile ServerSocketChannelConfig listener;

    void configured(HttpServerConfig found) {
        configuration = found;
    }

    void bound(DisposableServer server) {
        port = server.port();
        listener = (ServerSocketChannelConfig) server.channel().config();
    }

    /** Counts a connection until it closes. */
    void accepted(Channel connection) {
        open.incrementAndGet();
        connection.closeFuture().addListener(_ -> open.decrementAndGet());
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        // The management server has this filter, too.
        InetSocketAddress came = exchange.getRequest().getLocalAddress();
        if (came == null || came.getPort() != port) {
            return chain.filter(exchange);
        }
        long startNs = System.nanoTime();
        active.incrementAndGet();
        return chain.filter(exchange).doFinally(_ -> {
            HttpStatusCode status = exchange.getResponse().getStatusCode();
            long length = exchange.getResponse().getHeaders().getContentLength();
            active.decrementAndGet();
            answered.incrementAndGet();
            errors.addAndGet(status != null && status.value() >= FIRST_ERROR ? 1 : 0);
            processingNs.add(System.nanoTime() - startNs);
            bytes.add(Math.max(length, 0));
        });
    }

    /** Keeps this event loop for so long: meanwhile it neither reads, nor answers, nor accepts. */
    void block(Duration howLong) throws InterruptedException {
        blocked.incrementAndGet();
        try {
            Thread.sleep(howLong);
        } finally {
            blocked.decrementAndGet();
        }
    }

    /** The backlog in force. */
    int soBacklog() {
        return listener.getBacklog();
    }

    /** How long the running server keeps an idle connection; 0 for ever. */
    long idleTimeoutMs() {
        Duration idle = configuration.idleTimeout();
        return idle == null ? 0 : idle.toMillis();
    }

    int maxKeepAliveRequests() {
        return configuration.maxKeepAliveRequests();
    }

    Report.Connections connections() {
        int current = open.get();
        return new Report.Connections(current, Math.max(current - active.get(), 0));
    }

    /** Of the event loops, those that a handler blocks; without such a handler none ever is. */
    Report.Threads threads(int loops) {
        return new Report.Threads(loops, blocked.get(), loops);
    }

    Report.Requests requests() {
        return new Report.Requests(
                answered.get(), errors.get(), TimeUnit.NANOSECONDS.toMillis(processingNs.sum()), bytes.sum());
    }
}
