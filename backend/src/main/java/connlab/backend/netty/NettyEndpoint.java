package connlab.backend.netty;

import connlab.backend.traffic.Report;
import connlab.backend.waitingroom.WaitingRoom;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** {@code GET /actuator/netty}: what the traffic server and the waiting room report. */
@Component
@Profile("netty")
@Endpoint(id = "netty")
class NettyEndpoint {

    private final NettyTraffic traffic;
    private final NettyProperties knobs;
    private final WaitingRoom room;

    NettyEndpoint(NettyTraffic traffic, NettyProperties knobs, WaitingRoom room) {
        this.traffic = traffic;
        this.knobs = knobs;
        this.room = room;
    }

    @ReadOperation
    Report report() {
        Settings settings = new Settings(
                traffic.soBacklog(),
                loops(),
                traffic.idleTimeoutMs(),
                traffic.maxKeepAliveRequests(),
                knobs.blockingHandler());
        return new Report(
                settings, traffic.connections(), traffic.threads(loops()), traffic.requests(), room.statistics());
    }

    /** Netty starts a loop's thread with its first connection, so the threads do not tell. */
    private int loops() {
        return knobs.ioWorkerCount();
    }

    /**
     * Netty's settings, each under its own name.
     *
     * @param idleTimeoutMs 0 for no timeout
     * @param maxKeepAliveRequests -1 for no limit
     */
    record Settings(
            int soBacklog, int ioWorkerCount, long idleTimeoutMs, int maxKeepAliveRequests, boolean blockingHandler) {}
}
