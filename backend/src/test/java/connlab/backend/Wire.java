package connlab.backend;

import com.jayway.jsonpath.JsonPath;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * One connection that speaks HTTP/1.1: unlike a client library it opens no second one, retries nothing and reports when
 * the server closes.
 */
public final class Wire implements AutoCloseable {

    /** Only a hang takes this long, even on a busy machine. */
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    private final Socket socket;
    private final InputStream input;

    public Wire(int port) throws IOException {
        this(InetAddress.getLoopbackAddress().getHostAddress(), port);
    }

    public Wire(String address, int port) throws IOException {
        socket = new Socket(address, port);
        socket.setSoTimeout(Math.toIntExact(PATIENCE.toMillis()));
        input = new BufferedInputStream(socket.getInputStream());
    }

    /** @throws EOFException if the server hung up */
    public Response get(String path) throws IOException {
        send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
        return receive();
    }

    /** @throws EOFException if the server hung up */
    public Response post(String path, String json) throws IOException {
        send("POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: "
                + json.length() + "\r\n\r\n" + json);
        return receive();
    }

    /** Sends the text unchanged and waits for nothing. */
    public void send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    }

    /** Whether the server closes by itself within {@code patience}. */
    public boolean isClosedWithin(Duration patience) throws IOException {
        socket.setSoTimeout(Math.toIntExact(patience.toMillis()));
        try {
            return input.read() < 0;
        } catch (SocketTimeoutException stillOpen) {
            return false;
        } finally {
            socket.setSoTimeout(Math.toIntExact(PATIENCE.toMillis()));
        }
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * The answer to what was sent.
     *
     * @throws EOFException if the server hung up
     */
    public Response receive() throws IOException {
        int status = Integer.parseInt(line().split(" ")[1]);
        Map<String, String> headers = new HashMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            String[] parts = line.split(": *", 2);
            headers.put(parts[0].toLowerCase(Locale.ROOT), parts[1]);
        }
        byte[] body = headers.containsKey("content-length")
                ? bytes(Integer.parseInt(headers.get("content-length")))
                : chunks();
        return new Response(status, headers, new String(body, StandardCharsets.UTF_8));
    }

    private byte[] chunks() throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        while (true) {
            int length = Integer.parseInt(line(), 16);
            body.write(bytes(length));
            line();
            if (length == 0) {
                return body.toByteArray();
            }
        }
    }

    private byte[] bytes(int length) throws IOException {
        byte[] bytes = input.readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException();
        }
        return bytes;
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = input.read(); next != '\n'; next = input.read()) {
            if (next < 0) {
                throw new EOFException();
            }
            line.append((char) next);
        }
        return line.toString().strip();
    }

    /** An answer; the names of its headers are in lower case. */
    public record Response(int status, Map<String, String> headers, String body) {

        /** What a JSON path finds in the body. */
        public <T> T json(String path) {
            return JsonPath.read(body, path);
        }
    }
}
