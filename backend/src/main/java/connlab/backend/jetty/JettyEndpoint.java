package connlab.backend.jetty;

import connlab.backend.traffic.Report;
import connlab.backend.waitingroom.WaitingRoom;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.NetworkConnectionLimit;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.StatisticsHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.ThreadPool;
import org.eclipse.jetty.util.thread.VirtualThreadPool;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.jetty.JettyWebServer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** {@code GET /actuator/jetty}: what the live traffic connector and the waiting room report. */
@Component
@Profile("jetty")
@Endpoint(id = "jetty")
class JettyEndpoint {

    /** Spring Boot's value for no limit. */
    private static final int NO_LIMIT = -1;

    private final ServletWebServerApplicationContext context;
    private final WaitingRoom room;

    JettyEndpoint(ServletWebServerApplicationContext context, WaitingRoom room) {
        this.context = context;
        this.room = room;
    }

    @ReadOperation
    Report report() {
        Server server = ((JettyWebServer) context.getWebServer()).getServer();
        ServerConnector connector = (ServerConnector) server.getConnectors()[0];
        return new Report(
                settings(server, connector),
                connections(connector),
                threads(server.getThreadPool()),
                // Spring Boot puts it there for the graceful shutdown.
                requests(server.getDescendant(StatisticsHandler.class)),
                room.statistics());
    }

    private static Settings settings(Server server, ServerConnector connector) {
        NetworkConnectionLimit limit = server.getBean(NetworkConnectionLimit.class);
        boolean virtual = server.getThreadPool() instanceof VirtualThreadPool;
        return new Settings(
                connector.getAcceptQueueSize(),
                limit == null ? NO_LIMIT : limit.getMaxNetworkConnectionCount(),
                virtual
                        ? ((VirtualThreadPool) server.getThreadPool()).getMaxConcurrentTasks()
                        : ((QueuedThreadPool) server.getThreadPool()).getMaxThreads(),
                virtual ? null : ((QueuedThreadPool) server.getThreadPool()).getMinThreads(),
                connector.getAcceptors(),
                connector.getSelectorManager().getSelectorCount(),
                connector.getIdleTimeout(),
                virtual);
    }

    private static Report.Connections connections(ServerConnector connector) {
        int current = 0;
        int waiting = 0;
        for (EndPoint connection : connector.getConnectedEndPoints()) {
            current++;
            if (connection.isFillInterested()) {
                waiting++;
            }
        }
        return new Report.Connections(current, waiting);
    }

    private static Report.Threads threads(ThreadPool threads) {
        if (threads instanceof QueuedThreadPool pool) {
            // Acceptors and selectors lease theirs; a reserved thread stands by for a selector, and serves no request.
            int max = pool.getMaxThreads() - pool.getLeasedThreads() - pool.getCurrentReservedThreads();
            return new Report.Threads(pool.getThreads(), pool.getUtilizedThreads(), max);
        }
        return new Report.Threads(null, null, null);
    }

    private static Report.Requests requests(StatisticsHandler all) {
        return new Report.Requests(
                all.getRequestTotal() - all.getRequestsActive(),
                all.getResponses4xx() + all.getResponses5xx(),
                TimeUnit.NANOSECONDS.toMillis(all.getRequestTimeTotal()),
                all.getBytesWritten());
    }

    /**
     * Jetty's settings, each under its own name.
     *
     * @param maxConnections -1 for no limit
     * @param maxThreads all threads of the pool: acceptors and selectors have theirs from it; with virtual threads, how
     *     many of them there are at once
     * @param minThreads null with virtual threads
     */
    record Settings(
            int acceptQueueSize,
            int maxConnections,
            int maxThreads,
            Integer minThreads,
            int acceptors,
            int selectors,
            long idleTimeoutMs,
            boolean virtualThreads) {}
}
