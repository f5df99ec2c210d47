package connlab.backend.delay;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.context.annotation.Profile;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** A handler as slow, and an answer as large, as the request asks for. */
@RestController
@Profile("!netty")
class DelayController {

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
        Delay.requireValid(ms, bytes);
        sleep(ms);
        response.setContentType(MediaType.TEXT_PLAIN_VALUE);
        response.setContentLengthLong(bytes);
        ServletOutputStream body = response.getOutputStream();
        for (long left = bytes; left > 0; left -= Delay.FILLING.length) {
            body.write(Delay.FILLING, 0, (int) Math.min(left, Delay.FILLING.length));
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
}
