package connlab.backend.netty;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * Netty's knobs.
 *
 * @param soBacklog the backlog of listen(2); there is no limit of connections beside it
 * @param ioWorkerCount event loops, each a thread that serves many connections, and accepts, too
 * @param idleTimeout how long an idle connection is kept; 0 for ever
 * @param maxKeepAliveRequests requests on one connection; -1 for no limit
 * @param blockingHandler whether the slow handler keeps its event loop, as code that waits for a database does
 */
@ConfigurationProperties("netty")
record NettyProperties(
        int soBacklog, int ioWorkerCount, Duration idleTimeout, int maxKeepAliveRequests, boolean blockingHandler) {}
