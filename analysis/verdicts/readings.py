"""derived/readings.parquet: what was read once a second, in a row for each value.

Sockets by state, what processes used, the connections and threads that programs tell of: levels that have no place in
timeline.parquet's steps of 100 ms. docs/data-format.md describes the names.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.database import over_files
from analysis.evidence import processes, timeline
from analysis.evidence.jsonl import Record, integer, records
from analysis.expressions.values import Unknown
from analysis.output import copy_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.evidence.rawrun import RawRun, Scraped
    from analysis.evidence.window import Window
    from analysis.figures import Run

FILE = Path("derived") / "readings.parquet"

# One value: when it was read, of which instance, its name, and itself.
_Row = tuple[int, str, str, float]


def write(run: Run, folder: Path) -> None:
    """Write the file into a run's folder; that of a run without a window is removed.

    Args:
        run: what was read of it.
        folder: the run's.
    """
    path, window = folder / FILE, run.joined_window
    path.unlink(missing_ok=True)
    if isinstance(window, Unknown):
        return
    rows = sorted(_rows(run.raw, window))
    columns = zip(("time_us", "instance", "name", "value"), zip(*rows, strict=True) if rows else ([],) * 4, strict=True)
    types = {"time_us": "int64", "value": "float64"}
    with over_files() as database:
        database.register(
            "incoming", {name: np.array(values, dtype=types.get(name, "object")) for name, values in columns}
        )
        query = "SELECT time_us, instance::VARCHAR AS instance, name::VARCHAR AS name, value FROM incoming"
        copy_rows(database.execute, query, path)


def _rows(raw: RawRun, window: Window) -> Iterator[_Row]:
    for instance, samples in raw.samples.items():
        counts = [(record["time_us"], _sockets(record)) for record in _inside(samples.sockets, window)]
        for name in {name for _, counted in counts for name in counted}:
            # No socket in a state is not a line of a reading, and a count all the same.
            yield from ((time_us, instance, name, counted[name]) for time_us, counted in counts)
        readings = _inside(samples.processes, window)
        for before, after in pairwise(readings):
            for name, percent in _processor(before, after):
                yield after["time_us"], instance, name, percent
    for scraped in raw.scraped:
        yield from _levels(scraped, window)


def _inside(found: list[Record], window: Window) -> list[Record]:
    inside = timeline.within([record["time_us"] for record in found], window.start_us, window.end_us)
    return [found[index] for index in inside]


def _sockets(record: Record) -> Counter[str]:
    counts: Counter[str] = Counter()
    for group in records(record, "groups"):
        side, state, count = group.get("side"), group.get("state"), integer(group, "count")
        if isinstance(side, str) and isinstance(state, str) and count is not None:
            counts[f"sockets.{side}.{state.lower()}"] += count
    return counts


def _processor(before: Record, after: Record) -> Iterator[tuple[str, float]]:
    """What each program used from one reading to the next, in percent of one processor; and all of the machine."""
    lasted_us = after["time_us"] - before["time_us"]
    if lasted_us <= 0:
        return
    used_ms = {process.get("pid"): integer(process, "cpu_ms") for process in records(before, "processes")}
    of_program: Counter[str] = Counter()
    for process in records(after, "processes"):
        program, cpu_ms = process.get("comm"), integer(process, "cpu_ms")
        if isinstance(program, str) and cpu_ms is not None:
            # A process that is new began in between: all that it used counts.
            of_program[program] += max(cpu_ms - (used_ms.get(process.get("pid")) or 0), 0)
    for program, cpu_ms in of_program.items():
        yield f"cpu_percent.{program}", round(100_000 * cpu_ms / lasted_us, 2)
    first, last = processes.of_machine_ms(before), processes.of_machine_ms(after)
    if first and last and last[0] > first[0]:
        yield "host.cpu_percent", round(100 * (1 - (last[1] - first[1]) / (last[0] - first[0])), 2)


def _levels(scraped: Scraped, window: Window) -> Iterator[_Row]:
    """What a page says: its levels that are figures, too."""
    names = {
        name: f"{scraped.called}.{name}"
        for name, value in scraped.page.values.items()
        if value.says is not None and not value.grows
    }
    times_us = scraped.scrape.times_us
    for index in timeline.within(times_us, window.start_us, window.end_us):
        if index < len(times_us):
            values = scraped.values[index]
            for name, full in names.items():
                if name in values:
                    yield times_us[index], scraped.instance, full, values[name]
