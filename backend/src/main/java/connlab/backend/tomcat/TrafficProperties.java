package connlab.backend.tomcat;

import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The knobs of the traffic port for which Spring Boot has no property of its own.
 *
 * @param tlsSessionCache sessions that the server keeps for clients to resume; 0 for no limit
 * @param http2MaxConcurrentStreams streams that a client may have open on one connection
 * @param http2MaxConcurrentStreamExecution of these, those that are served at once
 */
@ConfigurationProperties("traffic")
record TrafficProperties(int tlsSessionCache, long http2MaxConcurrentStreams, int http2MaxConcurrentStreamExecution) {}
