package connlab.backend.waitingroom;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * Lets users in one by one, in order of arrival, at a steady rate.
 *
 * <p>A user who arrives gets a token and looks again and again until its turn has come. A user who does not look for as
 * long as the timeout loses its place, and those behind move up. An idle room lets the first user in at once, the next
 * one interval later: idle time does not save up turns.
 *
 * <p>There is no timer. Each call first catches up on the time since the last one, turn by turn and timeout by timeout
 * in the order in which they fell due, so turns have the times that a timer would have given them, exactly. Every token
 * is let in at most once and forgotten once: a call costs O(1), amortised. Memory is bounded by the number of tokens.
 *
 * <p>Safe for use by many threads.
 */
public final class WaitingRoom {

    private final WaitingRoomProperties properties;
    private final InstantSource clock;
    private final long intervalNs;
    private final long timeoutNs;

    /** Every token that is not forgotten, the one seen longest ago first. */
    private final LinkedHashMap<String, Ticket> tickets = new LinkedHashMap<>();

    /** Those whose turn has not come, in order of arrival. */
    private final LinkedHashSet<Ticket> queue = new LinkedHashSet<>();

    private long nowNs;
    private long nextTurnNs;
    private long issued;
    private long admitted;
    private long abandoned;

    /** A room whose first turn is free; the clock must not go back. */
    public WaitingRoom(WaitingRoomProperties properties, InstantSource clock) {
        this.properties = properties;
        this.clock = clock;
        this.intervalNs = Math.round(TimeUnit.SECONDS.toNanos(1) / properties.admissionPerSecond());
        this.timeoutNs = properties.tokenTimeout().toNanos();
    }

    /**
     * Gives the caller the next number.
     *
     * @throws WaitingRoomFullException if the room holds as many tokens as it may
     */
    public synchronized Place arrive() {
        catchUp();
        if (tickets.size() >= properties.maxTokens()) {
            throw new WaitingRoomFullException(Duration.ofNanos(oldest().seenNs + timeoutNs - nowNs));
        }
        issued++;
        Ticket ticket = new Ticket(UUID.randomUUID().toString(), issued, nowNs);
        tickets.put(ticket.token, ticket);
        queue.add(ticket);
        catchUp();
        return ticket.place();
    }

    /**
     * Where the holder of a token stands; looking keeps the token alive.
     *
     * @return the place, or nothing if the token was never given out or has been forgotten
     */
    public synchronized Optional<Place> look(String token) {
        catchUp();
        Ticket ticket = tickets.get(token);
        if (ticket == null) {
            return Optional.empty();
        }
        see(ticket, nowNs);
        return Optional.of(ticket.place());
    }

    /** The counts at this moment. */
    public synchronized Statistics statistics() {
        catchUp();
        return new Statistics(queue.size(), admitted, abandoned, issued);
    }

    /** Does all that has fallen due since the last call, in the order in which it fell due. */
    private void catchUp() {
        nowNs = unixNs(clock.instant());
        while (true) {
            long timeoutAtNs = tickets.isEmpty() ? Long.MAX_VALUE : oldest().seenNs + timeoutNs;
            long turnAtNs = queue.isEmpty() ? Long.MAX_VALUE : Math.max(nextTurnNs, queue.getFirst().arrivedNs);
            if (Math.min(timeoutAtNs, turnAtNs) > nowNs) {
                return;
            }
            if (timeoutAtNs <= turnAtNs) {
                forget(oldest());
            } else {
                letIn(queue.getFirst(), turnAtNs);
            }
        }
    }

    private void letIn(Ticket ticket, long turnNs) {
        queue.removeFirst();
        ticket.turnNs = turnNs;
        nextTurnNs = turnNs + intervalNs;
        admitted++;
        // A turn counts as a look, so its holder has the whole timeout to come and learn of it.
        see(ticket, turnNs);
    }

    private void forget(Ticket ticket) {
        tickets.remove(ticket.token);
        if (queue.remove(ticket)) {
            abandoned++;
        }
    }

    private void see(Ticket ticket, long whenNs) {
        ticket.seenNs = whenNs;
        tickets.putLast(ticket.token, ticket);
    }

    private Ticket oldest() {
        return tickets.sequencedValues().getFirst();
    }

    private static long unixNs(Instant instant) {
        return TimeUnit.SECONDS.toNanos(instant.getEpochSecond()) + instant.getNano();
    }

    /**
     * Where one user stands.
     *
     * @param token what the user shows when it looks again
     * @param number the order of arrival, from 1
     * @param turnUnixUs when the user's turn came, in microseconds of Unix time, or null if it is still to come; it
     *     never falls as the number rises
     */
    public record Place(String token, long number, Long turnUnixUs) {

        public boolean canEnter() {
            return turnUnixUs != null;
        }
    }

    /**
     * What became of the tokens: {@code issued = waiting + admitted + abandoned}.
     *
     * @param waiting those whose turn is to come
     * @param admitted those whose turn has come, whether or not they came to see it
     * @param abandoned those who stopped looking before their turn
     * @param issued all that were ever given out
     */
    public record Statistics(long waiting, long admitted, long abandoned, long issued) {}

    private static final class Ticket {

        private static final long NO_TURN = Long.MIN_VALUE;

        private final String token;
        private final long number;
        private final long arrivedNs;
        private long seenNs;
        private long turnNs = NO_TURN;

        Ticket(String token, long number, long arrivedNs) {
            this.token = token;
            this.number = number;
            this.arrivedNs = arrivedNs;
            this.seenNs = arrivedNs;
        }

        Place place() {
            return new Place(token, number, turnNs == NO_TURN ? null : TimeUnit.NANOSECONDS.toMicros(turnNs));
        }
    }
}
