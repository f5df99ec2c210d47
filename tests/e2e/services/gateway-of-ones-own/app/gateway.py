"""A gateway that knows nothing of the lab, and has no pool: it opens a connection to the backend for each request."""

import http.client
import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    """Passes a request on, and answers 500 where it gets no connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # http.server's own name
        """Answer."""
        onward = http.client.HTTPConnection(os.environ["BACKEND"], timeout=10)
        try:
            onward.request("GET", self.path)
            answer = onward.getresponse()
            status, body = answer.status, answer.read()
        except OSError as error:
            status, body = 500, f"{error}\n".encode()
        finally:
            onward.close()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# All users at once have room in its accept queue.
http.server.ThreadingHTTPServer.request_queue_size = 64
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
