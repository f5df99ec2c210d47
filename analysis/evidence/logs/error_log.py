"""What a proxy's error log says, whatever its format."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """One message.

    Attributes:
        time_us: when it was written, Unix epoch, as exact as the log is.
        connection: the client's connection that it is about, as the access log numbers it; 0 if it names none.
        text: what it says.
    """

    time_us: int
    connection: int
    text: str
