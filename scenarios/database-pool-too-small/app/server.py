"""A service in front of a database: it takes one of POOL connections for each page, and waits where none is free."""

import json
import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType

from psycopg_pool import ConnectionPool

SIZE = int(os.environ.get("POOL", "10"))
pool = ConnectionPool("host=db user=shop dbname=postgres", min_size=SIZE, max_size=SIZE, timeout=60, open=True)
pool.wait()


class Pages(BaseHTTPRequestHandler):
    """Answers each page after a query of 100 ms; /health asks the database for nothing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Ask the database, over a connection of the pool."""
        if self.path != "/health":
            with pool.connection() as connection:
                connection.execute("select pg_sleep(0.1)")
        body = b"ok\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Holds more connections than the lesson has users."""

    request_queue_size = 64


def end(_number: int, _frame: FrameType | None) -> None:
    """Say what the pool counted, into the container's log."""
    os.write(1, json.dumps(pool.get_stats()).encode() + b"\n")
    os._exit(0)


signal.signal(signal.SIGTERM, end)
Server(("", 3000), Pages).serve_forever()
