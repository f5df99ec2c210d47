package connlab.backend.waitingroom;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class SteadyClockTests {

    @Test
    void tellsUnixTime() {
        assertThat(Duration.between(Instant.now(), new SteadyClock().instant()).abs())
                .isLessThan(Duration.ofSeconds(1));
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
