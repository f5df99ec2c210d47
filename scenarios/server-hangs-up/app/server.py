"""A server that takes bodies up to 8 KiB. What it does with a larger one, REFUSAL says."""

import os
import socket
import socketserver
import time

LIMIT = 8192
# It looks up who may send more.
LOOK_UP_S = 0.02
REFUSAL = os.environ.get("REFUSAL", "answer")


class Connection(socketserver.BaseRequestHandler):
    """Serves one connection, request by request."""

    request: socket.socket

    def handle(self) -> None:
        """Answer until the client leaves, or until a body is too large."""
        unread = b""
        while True:
            while b"\r\n\r\n" not in unread:
                # Not a byte beyond the header: the body stays in the kernel until somebody wants it.
                data = self.request.recv(4096, socket.MSG_PEEK)
                if not data:
                    return
                end = data.find(b"\r\n\r\n")
                unread += self.request.recv(end + 4 if end >= 0 else len(data))
            header, unread = unread, b""
            length = length_of(header)
            if length > LIMIT:
                self.refuse(length)
                return
            self.read(length)
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")

    def read(self, length: int) -> None:
        """Read a body."""
        while length > 0:
            data = self.request.recv(min(length, 65536))
            if not data:
                return
            length -= len(data)

    def refuse(self, length: int) -> None:
        """Leave the connection for the server to close, and before that read the body, or answer, or neither."""
        time.sleep(LOOK_UP_S)
        if REFUSAL == "reset":
            return
        self.read(length)
        if REFUSAL == "answer":
            self.request.sendall(
                b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 10\r\nConnection: close\r\n\r\ntoo large\n"
            )


def length_of(header: bytes) -> int:
    """Return the length of the body that follows."""
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


class Server(socketserver.ThreadingTCPServer):
    """Has a thread for each connection."""

    request_queue_size = 64
    daemon_threads = True

    def shutdown_request(self, request: socket.socket) -> None:
        """Close the connection as a program does that ends with it: by close() alone."""
        request.close()


Server(("", 3000), Connection).serve_forever()
