"""A stream of server-sent events: one at once, one after six seconds; a comment each HEARTBEAT_S between, if set."""

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAUSE_S = 6
HEARTBEAT_S = int(os.environ.get("HEARTBEAT_S", "0"))


class Events(BaseHTTPRequestHandler):
    """Answers each request with the same stream, in chunks."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the events; any other page is answered at once."""
        self.send_response(200)
        if self.path != "/events":
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b"data: hello\n\n")
        for _ in range(PAUSE_S // HEARTBEAT_S if HEARTBEAT_S else 1):
            time.sleep(HEARTBEAT_S or PAUSE_S)
            if HEARTBEAT_S:
                self.chunk(b": still here\n\n")
        self.chunk(b"data: goodbye\n\n")
        self.chunk(b"")

    def chunk(self, data: bytes) -> None:
        """Send a piece of the stream; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Holds as many connections as the lesson has users."""

    request_queue_size = 64


Server(("", 3000), Events).serve_forever()
