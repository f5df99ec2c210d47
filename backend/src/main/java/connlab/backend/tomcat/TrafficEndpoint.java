package connlab.backend.tomcat;

import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketWrapperBase;

/**
 * Tomcat's endpoint with true counts of connections.
 *
 * <p>Tomcat's own are wrong: its connection count includes the acceptor's next connection while the limit is not
 * reached, and its keep-alive count is the number of all registered connections, busy ones among them.
 */
final class TrafficEndpoint extends NioEndpoint {

    /** The connections that have been accepted and are open. */
    int openConnections() {
        return connections.size();
    }

    /** The open connections on which the poller waits for the client's data: no thread has them, and none will soon. */
    int waitingConnections() {
        Poller poller = getPoller();
        if (poller == null) {
            return 0;
        }
        int waiting = 0;
        for (SocketWrapperBase<?> connection : connections.values()) {
            if (connection instanceof NioSocketWrapper nio
                    && waitsForClient(nio.getSocket().getIOChannel(), poller)) {
                waiting++;
            }
        }
        return waiting;
    }

    private static boolean waitsForClient(SocketChannel channel, Poller poller) {
        SelectionKey key = channel.keyFor(poller.getSelector());
        try {
            return key != null && (key.interestOps() & SelectionKey.OP_READ) != 0;
        } catch (CancelledKeyException _) {
            return false;
        }
    }
}
