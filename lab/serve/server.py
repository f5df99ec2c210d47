"""Listens on 127.0.0.1 and serves until a signal comes; a command that was started ends before."""

from __future__ import annotations

import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from waitress.server import BaseWSGIServer, MultiSocketServer, create_server

from lab.errors import LabError
from lab.serve import peer
from lab.serve.app import Keys, make
from lab.serve.started import Started

_HOST = "127.0.0.1"
_THREADS = 4
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Served:
    """A server that listens.

    Attributes:
        address: with the key that a browser shows once.
    """

    address: str
    _server: BaseWSGIServer | MultiSocketServer
    _started: Started

    def serve(self) -> None:
        """Answer until SIGINT, SIGTERM or SIGHUP; then end what was started, in order."""
        before = {number: signal.signal(number, _end) for number in _ENDING}
        try:
            self._server.run()
        finally:
            # A second signal does not leave the command alone in the middle of clearing up.
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            self._started.end()
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def listening(port: int) -> Iterator[Served]:
    """Listen on a port of 127.0.0.1, 0 for any that is free.

    Raises:
        LabError: the port cannot be had.
    """
    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        taken = "something listens there already" if error.errno == errno.EADDRINUSE else str(error.strerror)
        raise LabError(f"port {port} cannot be had: {taken}", way_on="give another: PORT=<n> (--port)") from None
    logging.getLogger("waitress.queue").setLevel(
        logging.ERROR
    )  # a browser asks for more at once than there are threads
    keys, started = Keys.made(), Started()
    app = peer.of_users(make(keys, started), peer.own_users())
    server = create_server(app, sockets=[listener], threads=_THREADS, ident="")
    try:
        yield Served(f"http://{_HOST}:{listener.getsockname()[1]}/?key={keys.entry}", server, started)
    finally:
        server.close()


def _end(_number: int, _frame: FrameType | None) -> None:
    """What the server's loop takes for its end, wherever it is."""
    raise KeyboardInterrupt
