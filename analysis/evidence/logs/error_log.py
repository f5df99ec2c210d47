"""What a proxy's error log says, whatever its format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

# nginx and HAProxy write shorter ones; the bound keeps a file that is no log from filling memory.
_LINE_BYTES_MAX = 1 << 16


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


def lines_of(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line's number, from 1, and the line without its end; of a line that is too long, its beginning."""
    number, begins = 1, True
    while part := file.readline(_LINE_BYTES_MAX):
        if begins:
            yield number, part.rstrip(b"\r\n")
        begins = part.endswith(b"\n")
        number += begins
