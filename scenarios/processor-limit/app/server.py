"""A server whose pages cost WORK_MS of processor time each; it keeps its connections."""

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORK_S = int(os.environ.get("WORK_MS", "20")) / 1000


class Pages(BaseHTTPRequestHandler):
    """Answers each request with a page that had to be worked out."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Work for as long as a page costs, by the thread's own processor time."""
        until_s = time.thread_time() + (WORK_S if self.path.startswith("/work") else 0)
        while time.thread_time() < until_s:
            pass
        body = b"done\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Holds more connections than the lesson has."""

    request_queue_size = 64


Server(("", 3000), Pages).serve_forever()
