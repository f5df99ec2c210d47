"""Lays samples over the window: the two ticks that enclose it, and the holes between readings.

docs/data-format.md defines the window; `evidence.window` says why its edges are where they are. Readings stay in the
order of their file, which is that of the monotonic clock. Should their times go back all the same, an edge is passed
more than once: the outermost passage counts, so that nothing of the window is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.evidence.jsonl import Record
from analysis.evidence.samples import Samples, Tick
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown, unknown


@dataclass(frozen=True, slots=True)
class Span:
    """The ticks that enclose the window: the last at or before its start, the first at or after its end."""

    first: int
    last: int


def find_enclosing_ticks(ticks: Sequence[Tick], window: Window, gap_ms: float) -> Span | Unknown:
    """Return the ticks that enclose the window; unknown if there are none, or a hole above `gap_ms` lies at an edge."""
    times_us = [tick.time_us for tick in ticks]
    first, last = _up_to(times_us, window.start_us) - 1, _before(times_us, window.end_us)
    if first < 0:
        return unknown("they begin after the measurement did" if ticks else "there are none")
    if last == len(ticks):
        return unknown("they end before the window does")
    for before, edge in ((first, "start"), (max(last - 1, first), "end")):
        hole_ms = hole_between_ms(ticks, before, min(before + 1, last))
        if hole_ms > gap_ms:
            return unknown(f"a gap of {hole_ms:.0f} ms spans the {edge} of the window (limit {gap_ms:.0f} ms)")
    return Span(first, last)


def hole_between_ms(ticks: Sequence[Tick], one: int, other: int) -> float:
    """Return the time between two ticks on the monotonic clock."""
    return (ticks[other].mono_us - ticks[one].mono_us) / 1000


def longest_hole_ms(ticks: Sequence[Tick], span: Span) -> float:
    """Return the longest time between two neighbouring ticks of a span."""
    return max((hole_between_ms(ticks, at, at + 1) for at in range(span.first, span.last)), default=0.0)


def longest_step_ms(samples: Samples, span: Span) -> float:
    """Return how far the wall clock stepped against the monotonic one at most, between two ticks of a span."""
    ticks = samples.ticks[span.first : span.last + 1]
    offsets = [tick.time_us - tick.mono_us for tick in ticks]
    return max((abs(after - before) / 1000 for before, after in pairwise(offsets)), default=0.0)


def indices_from_before_start(times_us: Sequence[int], start_us: int, end_us: int) -> range:
    """Return the readings of a series from the last at or before the start to the last at or before the end."""
    return range(max(_up_to(times_us, start_us) - 1, 0), _before(times_us, end_us + 1))


def indices_enclosing(times_us: Sequence[int], start_us: int, end_us: int) -> range:
    """Return the readings from the last at or before the start to the first at or after the end, if any."""
    return range(max(_up_to(times_us, start_us) - 1, 0), min(_before(times_us, end_us) + 1, len(times_us)))


def readings_from_before_start(series: Sequence[Record], start_us: int, end_us: int) -> list[Record]:
    """Return the records that `indices_from_before_start` finds by their `time_us`."""
    return [
        series[index] for index in indices_from_before_start([each["time_us"] for each in series], start_us, end_us)
    ]


def readings_enclosing(series: Sequence[Record], start_us: int, end_us: int) -> list[Record]:
    """Return the records that `indices_enclosing` finds by their `time_us`."""
    return [series[index] for index in indices_enclosing([each["time_us"] for each in series], start_us, end_us)]


def indices_between(times_us: Sequence[int], start_us: int, end_us: int) -> range:
    """Return the readings from the first at or after the start to the last before the end."""
    return range(_up_to(times_us, start_us - 1), _before(times_us, end_us))


def _up_to(times_us: Sequence[int], edge_us: int) -> int:
    """Return how many readings there are before the first that is later than an edge."""
    return next((index for index, time_us in enumerate(times_us) if time_us > edge_us), len(times_us))


def _before(times_us: Sequence[int], edge_us: int) -> int:
    """Return how many readings there are up to the last that is earlier than an edge."""
    return next((index for index in range(len(times_us), 0, -1) if times_us[index - 1] < edge_us), 0)


def longest_silence_ms(times_us: Sequence[int], start_us: int, end_us: int) -> float:
    """Return the longest part of a stretch of time without a reading, from the last one at or before its start on."""
    readings = [times_us[index] for index in indices_from_before_start(times_us, start_us, end_us)]
    begin_us = min([start_us, *readings])
    return max(after - before for before, after in pairwise(sorted([begin_us, *readings, end_us]))) / 1000
