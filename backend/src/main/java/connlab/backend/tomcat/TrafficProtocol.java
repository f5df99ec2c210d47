package connlab.backend.tomcat;

import connlab.backend.traffic.Report;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;
import org.apache.coyote.RequestGroupInfo;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.threads.VirtualThreadExecutor;

/**
 * Tomcat's HTTP/1.1, unchanged, with access to what the lab asks for: the live settings and counts, which Tomcat
 * otherwise shows only through JMX.
 */
public final class TrafficProtocol extends Http11NioProtocol {

    /** The JDK's own switch, which image/start sets. */
    private static final String TICKETS = "jdk.tls.server.enableSessionTicketExtension";

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
        Optional<SSLHostConfig> tls = isSSLEnabled() ? Optional.of(findSslHostConfigs()[0]) : Optional.empty();
        Optional<List<String>> versions = tls.map(TrafficProtocol::versions);
        Optional<Http2Protocol> http2 = http2();
        return new Settings(
                getAcceptCount(),
                getMaxConnections(),
                unlessNegative(getMaxThreads()),
                unlessNegative(getMinSpareThreads()),
                getKeepAliveTimeout(),
                getMaxKeepAliveRequests(),
                getConnectionTimeout(),
                hasVirtualThreads(),
                tls.isPresent(),
                versions.map(List::getFirst).orElse(null),
                versions.map(List::getLast).orElse(null),
                tls.map(_ -> Boolean.parseBoolean(System.getProperty(TICKETS, "true")))
                        .orElse(null),
                tls.map(SSLHostConfig::getSessionCacheSize).orElse(null),
                http2.isPresent(),
                http2.map(Http2Protocol::getMaxConcurrentStreams).orElse(null),
                http2.map(Http2Protocol::getMaxConcurrentStreamExecution).orElse(null));
    }

    private static List<String> versions(SSLHostConfig host) {
        return Arrays.stream(host.getEnabledProtocols())
                .filter(name -> name.startsWith("TLS"))
                .sorted()
                .toList();
    }

    private Optional<Http2Protocol> http2() {
        return Arrays.stream(findUpgradeProtocols())
                .filter(Http2Protocol.class::isInstance)
                .map(Http2Protocol.class::cast)
                .findFirst();
    }

    /** The connections at this moment. */
    public Report.Connections connections() {
        return new Report.Connections(endpoint.openConnections(), endpoint.waitingConnections());
    }

    /** The request threads at this moment. */
    public Report.Threads threads() {
        return new Report.Threads(
                unlessNegative(endpoint.getCurrentThreadCount()),
                unlessNegative(endpoint.getCurrentThreadsBusy()),
                unlessNegative(getMaxThreads()));
    }

    /** The requests answered so far. */
    public Report.Requests requests() {
        RequestGroupInfo all = (RequestGroupInfo) getHandler().getGlobal();
        return new Report.Requests(
                all.getRequestCount(), all.getErrorCount(), all.getProcessingTime(), all.getBytesSent());
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
     * @param tlsMin null without TLS, as are the other settings of TLS
     * @param http2MaxConcurrentStreams null without HTTP/2, as is the other setting of HTTP/2
     */
    public record Settings(
            int acceptCount,
            int maxConnections,
            Integer maxThreads,
            Integer minSpareThreads,
            int keepAliveTimeoutMs,
            int maxKeepAliveRequests,
            int connectionTimeoutMs,
            boolean virtualThreads,
            boolean tls,
            String tlsMin,
            String tlsMax,
            Boolean tlsSessionTickets,
            Integer tlsSessionCache,
            boolean http2,
            Long http2MaxConcurrentStreams,
            Integer http2MaxConcurrentStreamExecution) {}
}
