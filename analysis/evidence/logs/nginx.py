"""The logs of nginx, with the lab's log_format; the gateway writes the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from analysis.evidence.logs.access_log import COLUMNS, Format
from analysis.evidence.logs.error_log import Message

ACCESS = Format(COLUMNS)

# 2025/11/21 07:26:40 [error] 7#7: *12 connect() failed (111: Connection refused) while connecting to upstream, …
# A connection's number never has more than 15 digits: a longer one is something else, and may not fit into 64 bits.
_ERROR_LINE = re.compile(
    rb"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d) \[(\w+)\] \d+#\d+: (?:\*(\d{1,15}) )?(.*)", re.ASCII
)
_ERROR_LEVELS = (b"error", b"crit", b"alert", b"emerg")
# Only a warning, but nginx closes connections of clients for it: once a second it says so, without naming them.
_REUSES = b"worker_connections are not enough, reusing connections"


def error(line: bytes) -> Message | None:
    """Return what a line of error.log says; None if it is not an error."""
    match = _ERROR_LINE.fullmatch(line)
    if match is None or not (match[7] in _ERROR_LEVELS or (match[7] == b"warn" and _REUSES in match[9])):
        return None
    try:
        # nginx writes local time, and its container's is UTC; the gateway writes UTC.
        second = datetime(*(int(match[part]) for part in range(1, 7)), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    text = match[9].decode("utf-8", "replace")
    return Message(round(second.timestamp()) * 1_000_000, int(match[8] or 0), text)
