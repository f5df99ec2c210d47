package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.waitingroom.WaitingRoom.Place;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class WaitingRoomConcurrencyTests {

    private static final int THREADS = 8;
    private static final int USERS_PER_THREAD = 500;

    @Test
    void manyThreadsGetDistinctNumbersAndTurnsInTheirOrder() throws Exception {
        int users = THREADS * USERS_PER_THREAD;
        WaitingRoom room = new WaitingRoom(
                new WaitingRoomProperties(10_000, Duration.ofSeconds(5), Duration.ofSeconds(30), users),
                new SteadyClock());
        List<Place> entered = new ArrayList<>();
        try (ExecutorService pool = Executors.newFixedThreadPool(THREADS)) {
            Callable<List<Place>> crowd = () -> enterAll(room);
            for (Future<List<Place>> places : pool.invokeAll(Collections.nCopies(THREADS, crowd))) {
                entered.addAll(places.get());
            }
        }

        entered.sort(Comparator.comparingLong(Place::number));
        assertThat(entered)
                .extracting(Place::number)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(1, users).boxed().toList());
        assertThat(entered).extracting(Place::turnUnixUs).isSorted();
        assertThat(room.statistics()).isEqualTo(new WaitingRoom.Statistics(0, users, 0, users));
    }

    /** Lets a crowd arrive, then look again and again until the last of it has entered. */
    private static List<Place> enterAll(WaitingRoom room) throws InterruptedException {
        List<Place> places = new ArrayList<>();
        for (int user = 0; user < USERS_PER_THREAD; user++) {
            places.add(room.arrive());
        }
        while (!places.stream().allMatch(Place::canEnter)) {
            Thread.sleep(1);
            places.replaceAll(place -> room.look(place.token()).orElseThrow());
        }
        return places;
    }
}
