"""Lays samples over the window: the two ticks that enclose it, and the holes between readings.

docs/data-format.md defines the window; analysis.window says why its edges are where they are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.values import Unknown, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.samples import Samples, Tick
    from analysis.window import Window


@dataclass(frozen=True, slots=True)
class Span:
    """The ticks that enclose the window: the last at or before its start, the first at or after its end."""

    first: int
    last: int


def enclose(ticks: Sequence[Tick], window: Window, gap_ms: float) -> Span | Unknown:
    """Return the ticks that enclose the window; unknown if there are none, or a hole above `gap_ms` lies at an edge.

    The order of the ticks is that of the file: the wall clock may have been set back in between.
    """
    first = next((index for index in reversed(range(len(ticks))) if ticks[index].time_us <= window.start_us), None)
    if first is None:
        return unknown("they begin after the measurement did" if ticks else "there are none")
    last = next((index for index in range(first, len(ticks)) if ticks[index].time_us >= window.end_us), None)
    if last is None:
        return unknown("they end before the window does")
    for before, edge in ((first, "start"), (max(last - 1, first), "end")):
        hole_ms = hole_between_ms(ticks, before, min(before + 1, last))
        if hole_ms > gap_ms:
            return unknown(f"a gap of {hole_ms:.0f} ms spans the {edge} of the window (limit {gap_ms:.0f} ms)")
    return Span(first, last)


def hole_between_ms(ticks: Sequence[Tick], one: int, other: int) -> float:
    """The time between two ticks on the monotonic clock."""
    return (ticks[other].mono_us - ticks[one].mono_us) / 1000


def longest_hole_ms(ticks: Sequence[Tick], span: Span) -> float:
    """The longest time between two neighbouring ticks of a span."""
    return max((hole_between_ms(ticks, at, at + 1) for at in range(span.first, span.last)), default=0.0)


def longest_step_ms(samples: Samples, span: Span) -> float:
    """How far the wall clock stepped against the monotonic one at most, between two neighbouring ticks of a span."""
    ticks = samples.ticks[span.first : span.last + 1]
    offsets = [tick.time_us - tick.mono_us for tick in ticks]
    return max((abs(after - before) / 1000 for before, after in pairwise(offsets)), default=0.0)


def within(times_us: Sequence[int], start_us: int, end_us: int) -> range:
    """The readings of a series from the last at or before the start to the last at or before the end."""
    return range(max(bisect_right(times_us, start_us) - 1, 0), bisect_right(times_us, end_us))


def around(times_us: Sequence[int], start_us: int, end_us: int) -> range:
    """The readings from the last at or before the start to the first at or after the end, as far as there are any."""
    return range(max(bisect_right(times_us, start_us) - 1, 0), min(bisect_left(times_us, end_us) + 1, len(times_us)))


def longest_silence_ms(times_us: Sequence[int], start_us: int, end_us: int) -> float:
    """The longest part of a stretch of time without a reading, from the last one at or before its start on."""
    readings = [times_us[index] for index in within(times_us, start_us, end_us)]
    begin_us = min([start_us, *readings])
    return max(after - before for before, after in pairwise(sorted([begin_us, *readings, end_us]))) / 1000
