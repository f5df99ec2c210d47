package connlab.backend.tomcat;

import java.util.concurrent.Executor;
import org.apache.coyote.RequestGroupInfo;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.threads.VirtualThreadExecutor;

/**
 * Tomcat's HTTP/1.1, unchanged, with access to what the lab asks for: the live settings and counts, which Tomcat
 * otherwise shows only through JMX.
 */
public final class TrafficProtocol extends Http11NioProtocol {

    private final TrafficEndpoint endpoint;

    /** Called by Tomcat, by the class's name. */
    public TrafficProtocol() {
        this(new TrafficEndpoint());
    }

    private TrafficProtocol(TrafficEndpoint endpoint) {
        super(endpoint);
        this.endpoint = endpoint;
    }

    /** The settings in force. */
    public Settings settings() {
        return new Settings(
                getAcceptCount(),
                getMaxConnections(),
                unlessNegative(getMaxThreads()),
                unlessNegative(getMinSpareThreads()),
                getKeepAliveTimeout(),
                getMaxKeepAliveRequests(),
                getConnectionTimeout(),
                hasVirtualThreads());
    }

    /** The connections at this moment. */
    public Connections connections() {
        return new Connections(endpoint.openConnections(), endpoint.waitingConnections());
    }

    /** The request threads at this moment. */
    public Threads threads() {
        return new Threads(
                unlessNegative(endpoint.getCurrentThreadCount()), unlessNegative(endpoint.getCurrentThreadsBusy()));
    }

    /** The requests answered so far. */
    public Requests requests() {
        RequestGroupInfo all = (RequestGroupInfo) getHandler().getGlobal();
        return new Requests(all.getRequestCount(), all.getErrorCount(), all.getProcessingTime(), all.getBytesSent());
    }

    private boolean hasVirtualThreads() {
        Executor executor = getExecutor();
        return executor instanceof VirtualThreadExecutor;
    }

    /** Tomcat answers -1 where it has no pool of its own to ask. */
    private static Integer unlessNegative(int value) {
        return value < 0 ? null : value;
    }

    /**
     * Tomcat's settings, each under its own name.
     *
     * @param maxThreads null with virtual threads, which no pool bounds
     * @param minSpareThreads null with virtual threads
     * @param maxKeepAliveRequests -1 for no limit
     */
    public record Settings(
            int acceptCount,
            int maxConnections,
            Integer maxThreads,
            Integer minSpareThreads,
            int keepAliveTimeoutMs,
            int maxKeepAliveRequests,
            int connectionTimeoutMs,
            boolean virtualThreads) {}

    /**
     * Connections.
     *
     * @param current accepted and open
     * @param keepAlive the current ones that wait for the client's next, or first, request
     */
    public record Connections(int current, int keepAlive) {}

    /**
     * Request threads.
     *
     * @param current null with virtual threads
     * @param busy null with virtual threads
     */
    public record Threads(Integer current, Integer busy) {}

    /**
     * Requests, counted when their answer is complete.
     *
     * @param errors those answered with a status of 400 or more
     * @param processingMs the time they took in sum, in milliseconds
     * @param bytesSent the bytes of their bodies
     */
    public record Requests(int count, int errors, long processingMs, long bytesSent) {}
}
