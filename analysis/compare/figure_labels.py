"""Figures as people call them: a sentence begins with a name, and the figure's own identifier stands beside it once."""

from __future__ import annotations

import re

_STATISTICS = {
    "min": "shortest {}",
    "mean": "mean {}",
    "p50": "median {}",
    "p90": "90th percentile of the {}",
    "p95": "95th percentile of the {}",
    "p99": "99th percentile of the {}",
    "max": "longest {}",
}
_TIMES = {"client.latency_ms": "answer time", "client.dial_ms": "time to connect"}
_COUNTS = {
    "client.requests.ok_per_second": "throughput",
    "client.requests.ok": "number of answered requests",
    "client.requests.failed": "number of failed requests",
    "client.users.failed": "number of users that failed",
    "client.users.served": "number of users served",
    "client.dials.total": "number of attempts to connect",
}
_OF_TIMES = re.compile(rf"({'|'.join(map(re.escape, _TIMES))})\.({'|'.join(_STATISTICS)})")


def name_of(figure: str) -> str | None:
    """What people call a figure; None where it has only its identifier."""
    times = _OF_TIMES.fullmatch(figure)
    return _STATISTICS[times[2]].format(_TIMES[times[1]]) if times else _COUNTS.get(figure)


def called(figure: str, *, begins: bool = False) -> str:
    """A figure in a sentence, with its article; `begins`: where the sentence begins with it."""
    name = name_of(figure)
    if name is None:
        return figure
    return f"{'The' if begins else 'the'} {name}"
