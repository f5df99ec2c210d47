"""A server with TLS whose key lies elsewhere: each handshake waits for its turn, and SIGN_MS for the signature."""

import os
import socket
import socketserver
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler

SIGN_S = int(os.environ.get("SIGN_MS", "10")) / 1000
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/app/certificate.pem", "/app/key.pem")
# What holds the key signs once at a time, in the order in which it is asked.
turn = threading.Lock()


class Pages(BaseHTTPRequestHandler):
    """Answers each page at once; connections are kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        body = b"ok\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(socketserver.ThreadingTCPServer):
    """Takes connections at once, each with a thread of its own, in which its handshake comes first."""

    request_queue_size = 64
    daemon_threads = True

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        """Serve the connection after its handshake."""
        with turn:
            time.sleep(SIGN_S)
        with context.wrap_socket(request, server_side=True) as secured:
            Pages(secured, client_address, self)

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that have left meanwhile."""


Server(("", 8443), Pages).serve_forever()
