"""A server on 127.0.0.1 for the user who started it; at a signal, a command that was started ends first."""

import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from waitress.server import BaseWSGIServer, MultiSocketServer, create_server

from lab.errors import LabError
from lab.serve.app import Keys, make_app
from lab.serve.commands import Started

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
        raise LabError(f"port {port} is not available: {taken}", hint="give another: PORT=<n> (--port)") from None
    logging.getLogger("waitress.queue").setLevel(
        logging.ERROR
    )  # a browser asks for more at once than there are threads
    keys, started = Keys.made(), Started()
    app = admit_users(make_app(keys, started), own_users())
    server = create_server(app, sockets=[listener], threads=_THREADS, ident="")
    try:
        yield Served(f"http://{_HOST}:{listener.getsockname()[1]}/?key={keys.entry}", server, started)
    finally:
        server.close()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the server's loop, wherever it is."""
    raise KeyboardInterrupt


_SOCKETS = Path("/proc/self/net/tcp")
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9
# The kernel gives the table in pieces, and an entry can slip from one into another while others come and go.
_LOOKS = 3

_Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def admit_users(app: _Wsgi, users: frozenset[int]) -> _Wsgi:
    """Return the application with every request refused but those of these users."""

    def admitting(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        client = (environ["REMOTE_ADDR"], int(environ["REMOTE_PORT"]))
        user = user_of(client, int(environ["SERVER_PORT"]))
        if user in users:
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [_refusal(user).encode()]

    return admitting


def own_users() -> frozenset[int]:
    """Return who may look: who started the lab, also by sudo, and root, who may do everything anyway."""
    sudo = os.environ.get("SUDO_UID", "")
    return frozenset({0, os.getuid(), *([int(sudo)] if sudo.isascii() and sudo.isdecimal() else [])})


def user_of(client: tuple[str, int], port: int) -> int | None:
    """Return the user id of the process that connected from an address to a port of 127.0.0.1; None if none has it."""
    local, remote = _spelt(*client), _spelt("127.0.0.1", port)
    for _ in range(_LOOKS):
        with _SOCKETS.open() as table:
            for fields in map(str.split, table):
                if fields[_LOCAL : _REMOTE + 1] == [local, remote]:
                    # A socket that its process has closed has no inode, and counts as root's.
                    return int(fields[_UID]) if fields[_INODE] != "0" else None
    return None


def _spelt(address: str, port: int) -> str:
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"


def _refusal(user: int | None) -> str:
    whose = "a process that has ended" if user is None else f"the user with the id {user}"
    return (
        f"This connection is of {whose}. Only the user who started 'connlab serve' may look.\n"
        "hint: start it as the user whose browser or ssh connects\n"
    )
