"""A report in two parts: the first comes at once, the second after PAUSE_S; a line each second between, if CHATTY."""

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAUSE_S = int(os.environ.get("PAUSE_S", "6"))
CHATTY = os.environ.get("CHATTY") == "true"


class Reports(BaseHTTPRequestHandler):
    """Answers /report in chunks, and any other page at once."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        if not self.path.startswith("/report"):
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.chunk(b"first part\n")
            for _ in range(PAUSE_S):
                time.sleep(1)
                if CHATTY:
                    self.chunk(b"...\n")
            self.chunk(b"second part\n")
            self.chunk(b"")
        except ConnectionError:
            # The client has left.
            self.close_connection = True

    def chunk(self, data: bytes) -> None:
        """Send a piece of the answer; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Holds as many connections as the lesson has users."""

    request_queue_size = 64


Server(("", 3000), Reports).serve_forever()
