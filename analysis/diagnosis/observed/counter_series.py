"""The kernel's counters over time: by how much each grew between readings.

In: a host's samples, which may be a few dumps that somebody pasted. Out: rows of derived/counters.parquet.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from analysis.evidence.samples import Samples
from analysis.evidence.window import Window

Row = tuple[str, int, int, int | None]


def counter_growth(samples: Samples, window: Window, counters: Sequence[str], steps: int) -> Iterator[Row]:
    """Yield each counter that grew: its name, from when to when (µs since the window began), and its growth.

    Of the readings in a step of the window the last counts. Growth is None where a counter was not told or fell.
    """
    readings = _last_of_steps(samples, window, steps)
    for name in counters:
        counter = samples.counters.get(name)
        if counter is None:
            continue
        values = [(time_us, counter.at(tick)) for tick, time_us in readings]
        grown = [
            (name, earlier_us, later_us, None if before is None or after is None or after < before else after - before)
            for (earlier_us, before), (later_us, after) in pairwise(values)
        ]
        if any(growth for *_, growth in grown):
            yield from grown


def _last_of_steps(samples: Samples, window: Window, steps: int) -> list[tuple[int, int]]:
    """Return tick and time of the reading at the window's start, and of the last that counts in each step."""
    width_us = max(window.end_us - window.start_us, 1)
    found: dict[int, tuple[int, int]] = {}
    for number, tick in enumerate(samples.ticks):
        # A dump of sockets alone says nothing of counters.
        if tick.counted and tick.time_us <= window.end_us:
            offset_us = max(tick.time_us - window.start_us, 0)
            step = -1 if tick.time_us <= window.start_us else min(steps * offset_us // width_us, steps - 1)
            found[step] = (number, offset_us)
    return sorted(found.values(), key=lambda each: each[1])
