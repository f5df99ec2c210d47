package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import connlab.backend.waitingroom.WaitingRoom.Place;
import connlab.backend.waitingroom.WaitingRoom.Statistics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpHeaders;

/** The rules of the waiting room, one by one: ten turns a second, a timeout of 30 s. */
class WaitingRoomTests {

    private static final long INTERVAL_MS = 100;
    private static final long TIMEOUT_MS = 30_000;

    private final FakeClock clock = new FakeClock();

    private WaitingRoom room(double admissionPerSecond, int maxTokens) {
        return new WaitingRoom(
                new WaitingRoomProperties(
                        admissionPerSecond, Duration.ofSeconds(5), Duration.ofMillis(TIMEOUT_MS), maxTokens),
                clock);
    }

    private WaitingRoom room() {
        return room(10, 1_000);
    }

    private static List<Place> arrivals(WaitingRoom room, int count) {
        return Stream.generate(room::arrive).limit(count).toList();
    }

    @Test
    void theFirstOfAnIdleRoomEntersAtOnce() {
        Place first = room().arrive();

        assertThat(first.number()).isEqualTo(1);
        assertThat(first.canEnter()).isTrue();
        assertThat(first.turnUnixUs()).isEqualTo(FakeClock.unixUs(0));
    }

    @Test
    void theOthersGetTheirTurnsOneIntervalApartInOrderOfArrival() {
        WaitingRoom room = room();
        List<Place> places = arrivals(room, 5);
        assertThat(places).extracting(Place::number).containsExactly(1L, 2L, 3L, 4L, 5L);
        assertThat(places).extracting(Place::canEnter).containsExactly(true, false, false, false, false);

        clock.advanceMs(2 * INTERVAL_MS);

        assertThat(places)
                .extracting(place -> room.look(place.token()).orElseThrow().turnUnixUs())
                .containsExactly(
                        FakeClock.unixUs(0),
                        FakeClock.unixUs(INTERVAL_MS),
                        FakeClock.unixUs(2 * INTERVAL_MS),
                        null,
                        null);
    }

    @Test
    void aTurnHasTheTimeWhenItCameHoweverLateItsHolderLooks() {
        WaitingRoom room = room();
        room.arrive();
        Place second = room.arrive();

        clock.advanceMs(4_321);

        assertThat(room.look(second.token()).orElseThrow().turnUnixUs()).isEqualTo(FakeClock.unixUs(INTERVAL_MS));
    }

    @Test
    void anIdleHourEarnsNoBurst() {
        WaitingRoom room = room();
        room.arrive();
        clock.advance(Duration.ofHours(1));

        assertThat(arrivals(room, 4)).extracting(Place::canEnter).containsExactly(true, false, false, false);
    }

    @Test
    void aTurnStaysGiven() {
        WaitingRoom room = room();
        Place first = room.arrive();
        clock.advanceMs(TIMEOUT_MS - 1);
        room.look(first.token());
        clock.advanceMs(TIMEOUT_MS - 1);

        assertThat(room.look(first.token())).hasValue(first);
    }

    @Test
    void whoDoesNotLookLosesItsPlaceAndDoesNotBlockThoseBehind() {
        // One turn in 40 s: the second of the three is forgotten before its turn.
        WaitingRoom room = room(0.025, 1_000);
        List<Place> places = arrivals(room, 3);
        clock.advanceMs(20_000);
        room.look(places.get(2).token());
        clock.advanceMs(20_000);

        assertThat(room.look(places.get(1).token())).isEmpty();
        assertThat(room.look(places.get(2).token()).orElseThrow().turnUnixUs()).isEqualTo(FakeClock.unixUs(40_000));
        assertThat(room.statistics()).isEqualTo(new Statistics(0, 2, 1, 3));
    }

    @Test
    void lookingKeepsATokenAlive() {
        WaitingRoom room = room(0.001, 1_000);
        room.arrive();
        Place second = room.arrive();
        for (int look = 0; look < 10; look++) {
            clock.advanceMs(TIMEOUT_MS - 1);
            assertThat(room.look(second.token())).isPresent();
        }

        clock.advanceMs(TIMEOUT_MS);
        assertThat(room.look(second.token())).isEmpty();
    }

    @Test
    void aTurnGivesItsHolderTheWholeTimeoutToLearnOfIt() {
        // The second one's turn comes after 25 s; its last look was at its arrival.
        WaitingRoom room = room(0.04, 1_000);
        room.arrive();
        Place second = room.arrive();

        clock.advanceMs(25_000 + TIMEOUT_MS - 1);
        assertThat(room.look(second.token()).orElseThrow().canEnter()).isTrue();
        clock.advanceMs(TIMEOUT_MS);
        assertThat(room.look(second.token())).isEmpty();
        assertThat(room.statistics()).isEqualTo(new Statistics(0, 2, 0, 2));
    }

    @Test
    void anUnknownTokenHasNoPlace() {
        assertThat(room().look("no such token")).isEmpty();
    }

    @Test
    void tokensDiffer() {
        WaitingRoom room = room();
        Set<String> tokens = new HashSet<>();
        arrivals(room, 1_000).forEach(place -> tokens.add(place.token()));

        assertThat(tokens).hasSize(1_000);
    }

    @Test
    void aFullRoomSaysWhenToComeBack() {
        WaitingRoom room = room(0.001, 2);
        room.arrive();
        clock.advanceMs(500);
        room.arrive();

        assertThatExceptionOfType(WaitingRoomFullException.class)
                .isThrownBy(room::arrive)
                .satisfies(full -> assertThat(full.getHeaders().getFirst(HttpHeaders.RETRY_AFTER))
                        // The first token lives for another 29.5 s.
                        .isEqualTo("30"));
        assertThat(room.statistics().issued()).isEqualTo(2);

        clock.advanceMs(TIMEOUT_MS - 500);
        assertThat(room.arrive().number()).isEqualTo(3);
    }

    @Test
    void sixteenThousandUsersEnterInOrderAtTheRate() {
        int users = 16_000;
        WaitingRoom room = room(1_000, users);
        List<Place> places = new ArrayList<>(arrivals(room, users));

        // Each looks every 5 s, as users do, until all have entered.
        for (int round = 0; round < 4; round++) {
            clock.advanceMs(5_000);
            places.replaceAll(place -> room.look(place.token()).orElseThrow());
        }

        assertThat(places)
                .extracting(Place::turnUnixUs)
                .containsExactlyElementsOf(
                        IntStream.range(0, users).mapToObj(FakeClock::unixUs).toList());
        assertThat(room.statistics()).isEqualTo(new Statistics(0, users, 0, users));
    }
}
