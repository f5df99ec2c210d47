"""How a comparison names figures and writes their values: a name that people use, a mean with its interval."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis import formatting
from analysis.compare.intervals import REPETITIONS_MAX
from analysis.figures.catalogue import find

if TYPE_CHECKING:
    from analysis.compare.comparison_file import Effect, Sample

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


def label_for(figure: str) -> str | None:
    """Return what people call a figure; None where it has only its identifier."""
    times = _OF_TIMES.fullmatch(figure)
    return _STATISTICS[times[2]].format(_TIMES[times[1]]) if times else _COUNTS.get(figure)


def in_sentence(figure: str, *, begins: bool = False) -> str:
    """Return a figure's label with its article, or its identifier; `begins`: where the sentence begins with it."""
    label = label_for(figure)
    return figure if label is None else f"{'The' if begins else 'the'} {label}"


def unit_for(figure: str) -> str:
    """Return a figure's unit, empty for a count."""
    found = find(figure)
    return found[0].unit if found else ""


def with_unit(value: str, unit: str) -> str:
    """Return a number with its unit, if it has one."""
    return f"{value} {unit}" if unit else value


def format_number(value: float | None, *, signed: bool = False) -> str:
    """Return a number as a reader gets it, or that it is unknown."""
    if value is None:
        return "unknown"
    return f"{'+' if signed and value > 0 else ''}{formatting.number(value)}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f" [{format_number(low)}, {format_number(high)}]"


def format_sample(sample: Sample | None) -> str:
    """Return a mean, with its interval where the runs differ."""
    if sample is None or sample.mean is None:
        return "unknown"
    return format_number(sample.mean) + ("" if sample.low == sample.high else _interval(sample.low, sample.high))


def format_difference(effect: Effect) -> str:
    """Return a difference with its interval."""
    if effect.difference is None:
        return ""
    return format_number(effect.difference, signed=True) + _interval(effect.low, effect.high)


def remark(effect: Effect) -> str:
    """Return why a difference is none to build on, and how many runs it would take; nothing of one that is."""
    if effect.status == "changed":
        return ""
    if effect.status == "noise":
        return "within the noise"
    needed = effect.repetitions_needed
    takes = f"; it takes {'more than ' if needed == REPETITIONS_MAX else ''}{needed} of each" if needed else ""
    return f"{effect.why}{takes}"
