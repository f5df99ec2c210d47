"""Answers with a header and a body, over connections that are kept: in two writes, or in one."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b"x" * 200


class Handler(BaseHTTPRequestHandler):
    """Answers each request with 200 bytes."""

    protocol_version = "HTTP/1.1"
    # -1: what is written is kept in a buffer until the answer is whole. 0, Python's default: each write goes out.
    wbufsize = -1 if os.environ["ONE_WRITE"] == "true" else 0
    disable_nagle_algorithm = os.environ["TCP_NODELAY"] == "true"

    def do_GET(self) -> None:
        """Write the headers, then the body."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Write no line for each request."""


ThreadingHTTPServer(("", 8080), Handler).serve_forever()
