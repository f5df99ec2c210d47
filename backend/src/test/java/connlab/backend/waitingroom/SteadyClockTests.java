package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import org.junit.jupiter.api.Test;

class SteadyClockTests {

    @Test
    void tellsUnixTime() {
        Instant before = Instant.now();
        Instant told = new SteadyClock().instant();

        // A millisecond more on either side: the wall clock is steered meanwhile.
        assertThat(told).isBetween(before.minusMillis(1), Instant.now().plusMillis(1));
    }

    @Test
    void neverGoesBack() {
        SteadyClock clock = new SteadyClock();
        Instant before = clock.instant();
        for (int look = 0; look < 10_000; look++) {
            Instant now = clock.instant();
            assertThat(now).isAfterOrEqualTo(before);
            before = now;
        }
    }
}
