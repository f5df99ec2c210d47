package connlab.backend.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import okhttp3.Call;
import okhttp3.ConnectionPool;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.Response;
import org.junit.jupiter.api.Test;

/**
 * Four users of OkHttp at a server for one connection: the first is served, the second and the third wait in the accept
 * queue, which holds accept-count + 1, for the keep-alive time-out of those before them, and the fourth cannot connect.
 */
class FourUsersIntegrationTests {

    private static final Duration HANDLER = Duration.ofSeconds(1);
    private static final Duration KEEP_ALIVE = Duration.ofSeconds(20);
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);

    /** From one user's connection to the next user's arrival: time for Tomcat's acceptor to take what it can. */
    private static final Duration ARRIVAL_GAP = Duration.ofMillis(200);

    /** Tomcat looks for idle connections once a second; the rest is for a busy machine. */
    private static final Duration TOLERANCE = Duration.ofMillis(1_500);

    @Test
    void threeAreServedOneAfterTheOtherAndTheFourthCannotConnect() throws Exception {
        Map<String, String> knobs = Map.of(
                "CONNLAB_ACCEPT_COUNT", "1",
                "CONNLAB_MAX_CONNECTIONS", "1",
                "CONNLAB_KEEP_ALIVE_TIMEOUT", KEEP_ALIVE.toMillis() + "ms");
        try (BackendContainer backend = start(knobs);
                Neighbour neighbour = new Neighbour(backend);
                ExecutorService crowd = Executors.newVirtualThreadPerTaskExecutor()) {
            assertAcceptQueueHolds(0, neighbour);
            String url = "http://" + backend.address() + ":" + BackendContainer.TRAFFIC_PORT + "/api/delay?ms="
                    + HANDLER.toMillis();

            long startNs = System.nanoTime();
            Future<Outcome> first = arriveAndConnect(url, crowd);
            Future<Outcome> second = arriveAndConnect(url, crowd);
            Future<Outcome> third = arriveAndConnect(url, crowd);
            assertAcceptQueueHolds(2, neighbour);
            assertThat(refusals(neighbour)).isEqualTo(new Refusals(0, 0));
            Outcome fourth = new User().call(url);

            assertThat(fourth.failure())
                    .isInstanceOf(SocketTimeoutException.class)
                    .hasMessage("Connect timed out");
            assertThat(fourth.took()).isBetween(CONNECT_TIMEOUT, CONNECT_TIMEOUT.plusMillis(500));
            assertAcceptQueueHolds(2, neighbour);
            // One SYN, and the kernel's second one if its second is over before the user's is.
            assertThat(refusals(neighbour)).isIn(new Refusals(1, 1), new Refusals(2, 2));
            // 1, 22 and 43 seconds.
            assertServedAfter(HANDLER, TOLERANCE, startNs, first);
            Duration turn = KEEP_ALIVE.plus(HANDLER);
            assertServedAfter(HANDLER.plus(turn), TOLERANCE.multipliedBy(2), startNs, second);
            assertServedAfter(HANDLER.plus(turn).plus(turn), TOLERANCE.multipliedBy(3), startNs, third);
        }
    }

    private static BackendContainer start(Map<String, String> knobs) {
        BackendContainer backend = new BackendContainer(knobs);
        backend.start();
        return backend;
    }

    /** The kernel's own numbers: how many connections wait to be accepted, and the accept count as the backlog. */
    private static void assertAcceptQueueHolds(int connections, Neighbour neighbour)
            throws IOException, InterruptedException {
        assertThat(neighbour.bash("ss --no-header -ltn 'sport = :8080'"))
                .containsPattern("^LISTEN +" + connections + " +1 +0\\.0\\.0\\.0:8080 ");
    }

    private static Refusals refusals(Neighbour neighbour) throws IOException, InterruptedException {
        List<Long> counters = neighbour
                .bash("nstat -asz TcpExtListenOverflows TcpExtListenDrops | awk '/Listen/ {print $2}'")
                .lines()
                .map(Long::valueOf)
                .toList();
        return new Refusals(counters.get(0), counters.get(1));
    }

    private static Future<Outcome> arriveAndConnect(String url, ExecutorService crowd) throws InterruptedException {
        User user = new User();
        Future<Outcome> outcome = crowd.submit(() -> user.call(url));
        assertThat(user.connected.await(10, TimeUnit.SECONDS)).isTrue();
        Thread.sleep(ARRIVAL_GAP);
        return outcome;
    }

    private static void assertServedAfter(Duration expected, Duration tolerance, long startNs, Future<Outcome> call)
            throws Exception {
        Outcome outcome = call.get(2, TimeUnit.MINUTES);
        assertThat(outcome.failure()).isNull();
        assertThat(Duration.ofNanos(outcome.endNs() - startNs)).isBetween(expected, expected.plus(tolerance));
    }

    /** A user with a client, and so a pool and a connection, of its own, which it keeps open after the answer. */
    private static final class User extends EventListener {

        private final CountDownLatch connected = new CountDownLatch(1);
        private final OkHttpClient client = new OkHttpClient.Builder()
                .connectionPool(new ConnectionPool())
                .connectTimeout(CONNECT_TIMEOUT)
                .readTimeout(Duration.ofSeconds(90))
                .retryOnConnectionFailure(false)
                .eventListener(this)
                .build();

        @Override
        public void connectEnd(Call call, InetSocketAddress address, Proxy proxy, Protocol protocol) {
            connected.countDown();
        }

        Outcome call(String url) {
            long startNs = System.nanoTime();
            IOException failure = null;
            try (Response response =
                    client.newCall(new Request.Builder().url(url).build()).execute()) {
                assertThat(response.code()).isEqualTo(200);
                response.body().bytes();
            } catch (IOException e) {
                failure = e;
            }
            return new Outcome(startNs, System.nanoTime(), failure);
        }
    }

    /** The kernel's counters of a full accept queue, and of all SYNs that it dropped. */
    private record Refusals(long overflows, long drops) {}

    /** When a call began and ended, and why it failed: null if it did not. */
    private record Outcome(long startNs, long endNs, IOException failure) {

        Duration took() {
            return Duration.ofNanos(endNs - startNs);
        }
    }
}
