"""Dumps of systems other than Linux: named, and refused."""

import re
from typing import Final

_BSD, _WINDOWS = "FreeBSD or macOS", "Windows"

# What only another system prints, and its name.
_OTHERS: Final = {
    r"^[ \t]*(?:tcp[46]{1,2}|unix)\s+\d+/\d+/\d+\s": _BSD,
    r"Current listen queue sizes \(qlen/incqlen/maxqlen\)": _BSD,
    r"sonewconn: .*[Ll]isten queue overflow": _BSD,
    r"^[ \t]*tcp[46]{1,2}\s+\d+\s+\d+\s+\S+\.(?:\d+|\*)\s+\S+\.(?:\d+|\*)": _BSD,
    r"^[ \t]*\d+/\d+/\d+\s+\S+\.\w+[ \t]*$": _BSD,
    r"^[ \t]*Active Internet connections(?: \(including servers\))?[ \t]*$": _BSD,
    r"^[ \t]*(?:Tcpcb|Socket)\s+(?:Flowhash\s+)?Proto Recv-Q": _BSD,
    r"^tcp:[ \t]*\n\s+\d+ packets? sent": _BSD,
    r"^\t\d+ (?:syncache entries added|listen queue overflows?|packets? sent)$": _BSD,
    r"^[ \t]*TCP[ \t]+\S+:\d+[ \t]+\S+:\d+[ \t]+(?:LISTENING|ESTABLISHED|TIME_WAIT|CLOSE_WAIT)\b": _WINDOWS,
    r"TCP Statistics for IPv[46]|^Active Connections[ \t]*$": _WINDOWS,
}
_MARKS: Final = [(re.compile(mark, re.MULTILINE), name) for mark, name in _OTHERS.items()]


class OtherSystemError(ValueError):
    """The dump is of a system whose counters mean something else."""


def refuse_other_systems(text: str) -> None:
    """Raise OtherSystemError if a dump is of a system other than Linux."""
    for mark, name in _MARKS:
        if mark.search(text):
            raise OtherSystemError(f"a dump of {name}, whose counters and queues mean something else than Linux's")
