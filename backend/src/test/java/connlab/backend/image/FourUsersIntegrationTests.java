package connlab.backend.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import java.io.IOException;
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
import okhttp3.Connection;
import okhttp3.ConnectionPool;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.junit.jupiter.api.Test;

/**
 * Four users of OkHttp at a server for one connection: the first is served, the second and the third wait in the accept
 * queue, which holds accept-count + 1, for the keep-alive timeout of those before them, and the fourth cannot connect.
 * The first sends its request when the fourth has failed: however slow the machine is, its connection stays open until
 * then.
 */
class FourUsersIntegrationTests {

    private static final Duration HANDLER = Duration.ofSeconds(1);
    private static final Duration KEEP_ALIVE = Duration.ofSeconds(5);
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);
    private static final Duration PATIENCE = BackendContainer.PATIENCE;

    @Test
    void threeAreServedOneAfterTheOtherAndTheFourthCannotConnect() throws Exception {
        Map<String, String> knobs = Map.of(
                "CONNLAB_ACCEPT_COUNT",
                "1",
                "CONNLAB_MAX_CONNECTIONS",
                "1",
                "CONNLAB_CONNECTION_TIMEOUT",
                PATIENCE.toMillis() + "ms",
                "CONNLAB_KEEP_ALIVE_TIMEOUT",
                KEEP_ALIVE.toMillis() + "ms");
        try (BackendContainer backend = start(knobs);
                Neighbour neighbour = new Neighbour(backend);
                ExecutorService crowd = Executors.newVirtualThreadPerTaskExecutor()) {
            String url = "http://" + backend.address() + ":" + BackendContainer.TRAFFIC_PORT + "/api/delay?ms="
                    + HANDLER.toMillis();
            CountDownLatch fourthHasFailed = new CountDownLatch(1);
            User first = new User(fourthHasFailed);
            User second = new User();
            User third = new User();

            Future<Outcome> firstCall = arriveAndConnect(first, url, crowd);
            await().atMost(PATIENCE).untilAsserted(() -> assertTomcatHasAccepted(1, neighbour));
            assertAcceptQueueHolds(0, neighbour);
            Future<Outcome> secondCall = arriveAndConnect(second, url, crowd);
            Future<Outcome> thirdCall = arriveAndConnect(third, url, crowd);
            await().atMost(PATIENCE).untilAsserted(() -> assertAcceptQueueHolds(2, neighbour));
            assertThat(refusals(neighbour)).isEqualTo(new Refusals(0, 0));
            Outcome fourth = new User().call(url);

            assertThat(fourth.failure())
                    .isInstanceOf(SocketTimeoutException.class)
                    .hasMessage("Connect timed out");
            assertThat(fourth.took()).isGreaterThanOrEqualTo(CONNECT_TIMEOUT);
            assertAcceptQueueHolds(2, neighbour);
            assertTomcatHasAccepted(1, neighbour);
            // One SYN, and one more for each second that the user took: the kernel repeats none earlier than that,
            // except by a tick.
            Refusals refusals = refusals(neighbour);
            assertThat(refusals.overflows())
                    .isBetween(1L, 1 + fourth.took().plusMillis(50).toSeconds());
            assertThat(refusals.drops()).isEqualTo(refusals.overflows());

            long startNs = System.nanoTime();
            fourthHasFailed.countDown();
            // 1, 7 and 13 seconds or later: each waits for the handler and the keep-alive timeout of all before it.
            Duration turn = HANDLER.plus(KEEP_ALIVE);
            assertServedAfter(HANDLER, startNs, firstCall);
            assertServedAfter(HANDLER.plus(turn), startNs, secondCall);
            assertTheServerHungUpOn(first, neighbour);
            assertServedAfter(HANDLER.plus(turn).plus(turn), startNs, thirdCall);
            assertTheServerHungUpOn(second, neighbour);
            assertThat(refusals(neighbour)).isEqualTo(refusals);
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

    private static void assertTomcatHasAccepted(int connections, Neighbour neighbour)
            throws IOException, InterruptedException {
        assertThat(JsonPath.<Integer>read(neighbour.tomcat(), "$.connections.current"))
                .isEqualTo(connections);
    }

    /** The user, who never closes its connection, has none that the server would still answer on. */
    private static void assertTheServerHungUpOn(User user, Neighbour neighbour)
            throws IOException, InterruptedException {
        assertThat(neighbour.bash("ss --no-header -tn state established 'sport = :8080'"))
                .doesNotContainPattern(":" + user.port + "\\b");
    }

    private static Refusals refusals(Neighbour neighbour) throws IOException, InterruptedException {
        List<Long> counters = neighbour
                .bash("nstat -asz TcpExtListenOverflows TcpExtListenDrops | awk '/Listen/ {print $2}'")
                .lines()
                .map(Long::valueOf)
                .toList();
        return new Refusals(counters.get(0), counters.get(1));
    }

    private static Future<Outcome> arriveAndConnect(User user, String url, ExecutorService crowd)
            throws InterruptedException {
        Future<Outcome> outcome = crowd.submit(() -> user.call(url));
        assertThat(user.connected.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
        return outcome;
    }

    private static void assertServedAfter(Duration wait, long startNs, Future<Outcome> call) throws Exception {
        Outcome outcome = call.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertThat(outcome.failure()).isNull();
        assertThat(Duration.ofNanos(outcome.endNs() - startNs)).isGreaterThanOrEqualTo(wait);
    }

    /** A user with a client, and so a pool and a connection, of its own, which it keeps open after the answer. */
    private static final class User extends EventListener {

        private final CountDownLatch connected = new CountDownLatch(1);
        private final CountDownLatch maySend;
        private volatile int port;
        private final OkHttpClient client = new OkHttpClient.Builder()
                .connectionPool(new ConnectionPool())
                .connectTimeout(CONNECT_TIMEOUT)
                .readTimeout(PATIENCE)
                .retryOnConnectionFailure(false)
                .eventListener(this)
                .build();

        User() {
            this(new CountDownLatch(0));
        }

        User(CountDownLatch maySend) {
            this.maySend = maySend;
        }

        @Override
        public void connectionAcquired(Call call, Connection connection) {
            port = connection.socket().getLocalPort();
            connected.countDown();
        }

        @Override
        public void requestHeadersStart(Call call) {
            try {
                assertThat(maySend.await(PATIENCE.toSeconds(), TimeUnit.SECONDS))
                        .isTrue();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
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
