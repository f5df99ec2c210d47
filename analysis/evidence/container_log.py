"""Reads what a server's container printed: processes that ended, and unix sockets that refused a program."""

import contextlib
import re
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from analysis.evidence.logs import lines_of

# Gunicorn's, nginx's, PHP-FPM's and Apache's ways to write a time: in UTC, unless it has a zone.
_TIMES = (
    (re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", re.ASCII), "%Y-%m-%d %H:%M:%S %z"),
    (re.compile(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", re.ASCII), "%Y/%m/%d %H:%M:%S"),
    (re.compile(rb"\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d", re.ASCII), "%d-%b-%Y %H:%M:%S"),
    (re.compile(rb"\w{3} \d\d \d\d:\d\d:\d\d\.\d{6} \d{4}", re.ASCII), "%b %d %H:%M:%S.%f %Y"),
)
# Looked for as they stand, because a log has a line for each request.
_ENDS = (b"exit", b"died", b"killed", b"SIGKILL")
# "Worker exiting (pid: 61)", "[pid 7] AH00052: child pid 12 exit signal", "worker process 12 exited with code 0".
_PID = re.compile(rb"\b(?:pid:? ?|child |process )(\d{1,9})\b", re.IGNORECASE)
# nginx's and Apache's: 2025/11/21 07:26:40 [error] 7#7: *12 connect() to unix:/run/app.sock failed (11: Resource …) …
# [Fri Nov 21 07:26:40.123456 2025] [proxy:error] [pid 8] (11)Resource temporarily unavailable: AH02454: HTTP: attempt
# to connect to Unix domain socket /run/app.sock (localhost:80) failed
_EAGAIN = b"(11"
_SOCKET = re.compile(
    rb"\[\w+\] \d+#\d+: .*connect\(\) to unix:([^ ]+) failed \(11: "
    rb"|\(11\)[^:]*: AH02454: .*Unix domain socket ([^ ]+) ",
    re.ASCII,
)


class Said(NamedTuple):
    """What a log said; a row has the line's number, its second (Unix epoch, in µs), and what it is about.

    Attributes:
        endings: the process that ends, or has ended.
        refusals: the unix socket at which connect() got EAGAIN.
    """

    endings: list[tuple[int, int, int]]
    refusals: list[tuple[int, int, str]]


def read(file: BinaryIO) -> Said:
    """Return what a container's log says; a line without a time says nothing."""
    said = Said([], [])
    for number, line in lines_of(file):
        pids = _PID.findall(line) if any(word in line for word in _ENDS) else []
        socket = _SOCKET.search(line) if _EAGAIN in line else None
        second = _read_second(line) if pids or socket else None
        if second is None:
            continue
        if pids:
            said.endings.append((number, 1_000_000 * second, int(pids[-1])))
        if socket:
            path = (socket[1] or socket[2]).decode("utf-8", "replace")
            said.refusals.append((number, 1_000_000 * second, f"unix:{path}"))
    return said


def _read_second(line: bytes) -> int | None:
    for pattern, layout in _TIMES:
        if match := pattern.search(line):
            with contextlib.suppress(ValueError):
                when = datetime.strptime(match[0].decode(), layout)  # noqa: DTZ007  one zone for all is set below
                return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    return None
