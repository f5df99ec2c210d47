package connlab.backend.waitingroom;

import java.time.Instant;
import java.time.InstantSource;

/**
 * Unix time as it was when the clock was made, carried on by the monotonic clock: a step of the machine's clock in the
 * middle of a run can neither take a turn back nor give hundreds at once.
 */
final class SteadyClock implements InstantSource {

    private final Instant start = Instant.now();
    private final long startNs = System.nanoTime();

    @Override
    public Instant instant() {
        return start.plusNanos(System.nanoTime() - startNs);
    }
}
