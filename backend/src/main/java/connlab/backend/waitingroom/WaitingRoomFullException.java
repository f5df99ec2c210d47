package connlab.backend.waitingroom;

import java.time.Duration;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.web.ErrorResponseException;

/** The waiting room holds as many tokens as it may. Over HTTP: 503, with the seconds until the next one can expire. */
public class WaitingRoomFullException extends ErrorResponseException {

    private static final long serialVersionUID = 1;

    WaitingRoomFullException(Duration untilNextTimeout) {
        super(HttpStatus.SERVICE_UNAVAILABLE);
        setDetail("the waiting room is full");
        // Whole seconds are all that the header can say; rounded down, it would send the caller back too early.
        long seconds = untilNextTimeout.plusSeconds(1).minusNanos(1).toSeconds();
        getHeaders().set(HttpHeaders.RETRY_AFTER, Long.toString(seconds));
    }
}
