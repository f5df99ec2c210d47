package connlab.backend.delay;

import java.util.Arrays;
import org.springframework.http.HttpStatus;
import org.springframework.web.server.ResponseStatusException;

/** What the slow handler takes, on whichever server. */
public final class Delay {

    static final long MS_MAX = 600_000;
    static final long BYTES_MAX = 10 * 1024 * 1024;

    /** Written as often as needed, so that many large answers at once take no memory of their own. */
    public static final byte[] FILLING = filling(16 * 1024);

    private Delay() {}

    /**
     * Refuses numbers that are out of range.
     *
     * @throws ResponseStatusException 400
     */
    public static void requireValid(long ms, long bytes) {
        requireWithin("ms", ms, MS_MAX);
        requireWithin("bytes", bytes, BYTES_MAX);
    }

    private static void requireWithin(String name, long value, long most) {
        if (value < 0 || value > most) {
            throw new ResponseStatusException(
                    HttpStatus.BAD_REQUEST, name + "=" + value + ": it must be from 0 to " + most);
        }
    }

    private static byte[] filling(int length) {
        byte[] filling = new byte[length];
        Arrays.fill(filling, (byte) 'x');
        return filling;
    }
}
