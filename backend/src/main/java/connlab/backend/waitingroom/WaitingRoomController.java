package connlab.backend.waitingroom;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** The waiting room over HTTP, for clients that poll. */
@RestController
class WaitingRoomController {

    private final WaitingRoom room;
    private final WaitingRoomProperties properties;

    WaitingRoomController(WaitingRoom room, WaitingRoomProperties properties) {
        this.room = room;
        this.properties = properties;
    }

    /**
     * Gives the caller a token.
     *
     * @throws WaitingRoomFullException 503 if there is no room
     */
    @PostMapping("/api/wait")
    Answer arrive() {
        return answer(room.arrive());
    }

    /**
     * Says whether the holder of a token may enter.
     *
     * @throws ResponseStatusException 400 without a token, 404 if it is unknown or forgotten
     */
    @PostMapping("/api/entry")
    Answer enter(@RequestBody Entry entry) {
        if (entry.token() == null) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST, "the body has no token");
        }
        return room.look(entry.token())
                .map(this::answer)
                .orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND, "unknown or expired token"));
    }

    private Answer answer(WaitingRoom.Place place) {
        return new Answer(
                place.token(),
                place.number(),
                place.canEnter(),
                properties.pollingPeriod().toMillis(),
                place.turnUnixUs());
    }

    record Entry(String token) {}

    /** {@code turnUnixUs} stays in the JSON, as null, while {@code canEnter} is false. */
    record Answer(String token, long number, boolean canEnter, long pollingPeriodMs, Long turnUnixUs) {}
}
