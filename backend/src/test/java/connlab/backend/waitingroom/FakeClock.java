package connlab.backend.waitingroom;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;

/** A clock that moves only when a test moves it. */
final class FakeClock implements InstantSource {

    static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

    private Instant now = START;

    @Override
    public Instant instant() {
        return now;
    }

    void advance(Duration duration) {
        now = now.plus(duration);
    }

    void advanceMs(long ms) {
        advance(Duration.ofMillis(ms));
    }

    /** Unix microseconds at {@code ms} milliseconds after the start. */
    static long unixUs(long ms) {
        return Math.multiplyExact(START.toEpochMilli() + ms, 1_000);
    }
}
