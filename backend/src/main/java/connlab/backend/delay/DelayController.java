package connlab.backend.delay;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Arrays;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** A handler as slow, and an answer as large, as the request asks for. */
@RestController
class DelayController {

    static final long MS_MAX = 600_000;
    static final long BYTES_MAX = 10 * 1024 * 1024;

    /** Written as often as needed, so that many large answers at once take no memory of their own. */
    private static final byte[] FILLING = filling(16 * 1024);

    /**
     * Holds its thread for {@code ms} milliseconds, like a handler that waits for a database, then answers
     * {@code bytes} times the letter x. POST does the same, but a proxy or client may not repeat it by itself.
     *
     * @throws ResponseStatusException 400 if either number is out of range, 503 if the server stops meanwhile
     */
    @RequestMapping(
            path = "/api/delay",
            method = {RequestMethod.GET, RequestMethod.POST})
    void delay(
            @RequestParam(defaultValue = "0") long ms,
            @RequestParam(defaultValue = "0") long bytes,
            HttpServletResponse response)
            throws IOException {
        requireWithin("ms", ms, MS_MAX);
        requireWithin("bytes", bytes, BYTES_MAX);
        sleep(ms);
        response.setContentType(MediaType.TEXT_PLAIN_VALUE);
        response.setContentLengthLong(bytes);
        ServletOutputStream body = response.getOutputStream();
        for (long left = bytes; left > 0; left -= FILLING.length) {
            body.write(FILLING, 0, (int) Math.min(left, FILLING.length));
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
            throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE, "the server is stopping");
        }
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
