"""Whose a connection over loopback is: the kernel knows the user of each socket.

The key may get into other hands: a browser hands a cookie to every port of 127.0.0.1, and an address is easily passed
on. A user id cannot be.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_SOCKETS = Path("/proc/self/net/tcp")
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9
# The kernel gives the table in pieces, and an entry can slip from one into another while others come and go.
_LOOKS = 3

_Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def of_users(app: _Wsgi, users: frozenset[int]) -> _Wsgi:
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
        "way on: start it as the user whose browser or ssh connects\n"
    )
