package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.waitingroom.WaitingRoom.Place;
import connlab.backend.waitingroom.WaitingRoom.Statistics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The waiting room against a plain model of it, through random histories: the model does one millisecond after another
 * and looks through all its users in each, so that nothing of the room's bookkeeping can be wrong in both.
 */
class WaitingRoomModelTests {

    private static final int STEPS = 400;

    private final FakeClock clock = new FakeClock();

    static LongStream seeds() {
        return LongStream.range(0, 300);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void behavesAsTheModel(long seed) {
        Random random = new Random(seed);
        int intervalMs = 1 + random.nextInt(40);
        int timeoutMs = 1 + random.nextInt(400);
        int maxTokens = 1 + random.nextInt(60);
        Model model = new Model(intervalMs, timeoutMs, maxTokens);
        WaitingRoom room = new WaitingRoom(
                new WaitingRoomProperties(
                        1_000.0 / intervalMs, Duration.ofSeconds(5), Duration.ofMillis(timeoutMs), maxTokens),
                clock);
        List<String> tokens = new ArrayList<>();

        for (int step = 0; step < STEPS; step++) {
            switch (random.nextInt(4)) {
                case 0 -> arrive(room, model, tokens);
                case 1 -> {
                    if (!tokens.isEmpty()) {
                        look(room, model, tokens, random.nextInt(tokens.size()));
                    }
                }
                case 2 -> assertThat(room.statistics()).isEqualTo(model.statistics());
                default -> {
                    int ms = random.nextInt(random.nextInt(10) == 0 ? 3 * timeoutMs : intervalMs + 1);
                    clock.advanceMs(ms);
                    model.advance(ms);
                }
            }
        }

        assertThat(room.statistics()).isEqualTo(model.statistics());
        assertThat(model.turnsMs()).isSorted().doesNotHaveDuplicates();
    }

    private static void arrive(WaitingRoom room, Model model, List<String> tokens) {
        Optional<Model.User> expected = model.arrive();
        try {
            Place place = room.arrive();
            tokens.add(place.token());
            assertSame(place, expected.orElseThrow());
        } catch (WaitingRoomFullException full) {
            assertThat(expected).isEmpty();
        }
    }

    private static void look(WaitingRoom room, Model model, List<String> tokens, int index) {
        Optional<Place> place = room.look(tokens.get(index));
        Optional<Model.User> expected = model.look(index);
        assertThat(place.isPresent()).isEqualTo(expected.isPresent());
        place.ifPresent(found -> assertSame(found, expected.orElseThrow()));
    }

    private static void assertSame(Place place, Model.User user) {
        assertThat(place.number()).isEqualTo(user.number);
        assertThat(place.turnUnixUs()).isEqualTo(user.turnMs == null ? null : FakeClock.unixUs(user.turnMs));
    }

    private static final class Model {

        private final int intervalMs;
        private final int timeoutMs;
        private final int maxTokens;
        private final List<User> users = new ArrayList<>();
        private long nowMs;
        private long nextTurnMs;

        Model(int intervalMs, int timeoutMs, int maxTokens) {
            this.intervalMs = intervalMs;
            this.timeoutMs = timeoutMs;
            this.maxTokens = maxTokens;
        }

        void advance(int ms) {
            for (int tick = 0; tick < ms; tick++) {
                nowMs++;
                settle();
            }
        }

        Optional<User> arrive() {
            if (users.stream().filter(user -> !user.forgotten).count() >= maxTokens) {
                return Optional.empty();
            }
            User user = new User(users.size() + 1, nowMs);
            users.add(user);
            settle();
            return Optional.of(user);
        }

        Optional<User> look(int index) {
            User user = users.get(index);
            if (user.forgotten) {
                return Optional.empty();
            }
            user.seenMs = nowMs;
            return Optional.of(user);
        }

        Statistics statistics() {
            long admitted = users.stream().filter(user -> user.turnMs != null).count();
            long waiting = users.stream().filter(User::waits).count();
            return new Statistics(waiting, admitted, users.size() - admitted - waiting, users.size());
        }

        List<Long> turnsMs() {
            return users.stream()
                    .map(user -> user.turnMs)
                    .filter(turn -> turn != null)
                    .toList();
        }

        /** What falls due in this millisecond. */
        private void settle() {
            users.stream().filter(user -> user.seenMs + timeoutMs <= nowMs).forEach(user -> user.forgotten = true);
            if (nowMs >= nextTurnMs) {
                users.stream().filter(User::waits).findFirst().ifPresent(user -> {
                    user.turnMs = nowMs;
                    user.seenMs = nowMs;
                    nextTurnMs = nowMs + intervalMs;
                });
            }
        }

        private static final class User {

            private final long number;
            private long seenMs;
            private Long turnMs;
            private boolean forgotten;

            User(long number, long nowMs) {
                this.number = number;
                this.seenMs = nowMs;
            }

            boolean waits() {
                return !forgotten && turnMs == null;
            }
        }
    }
}
