"""The time that an observation is about, and the time that each of its captures covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import create
from analysis.evidence import window
from analysis.evidence.jsonl import integer
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown

if TYPE_CHECKING:
    import duckdb

    from analysis.evidence.rawrun import RawRun


def of_run(raw: RawRun) -> Window | None:
    """The window as the manifest has it, or as long as samples go: what ended early leaves what it recorded."""
    planned = window.of_phases(raw.manifest)
    times_us = [tick.time_us for samples in raw.samples.values() for tick in samples.ticks]
    if not times_us:
        return None if isinstance(planned, Unknown) else planned
    first_us, last_us = min(times_us), max(times_us)
    # What ended before the window began has at least what was sampled until then.
    if not isinstance(planned, Unknown) and planned.start_us < last_us:
        first_us, last_us = max(first_us, planned.start_us), min(last_us, planned.end_us)
    return Window(first_us, last_us, last_us) if first_us < last_us else None


def load(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `spans`: from when to when each capture has every packet, as far as it knows."""
    create(database, "spans", {"observer": "VARCHAR", "start_us": "BIGINT", "end_us": "BIGINT"})
    for instance, capture in raw.captures.items():
        reduction, report = raw.reductions[instance], capture.report or {}
        start_us, end_us = integer(report, "started_us"), integer(report, "ended_us")
        if start_us is None:
            start_us = reduction.first_us
        if end_us is None or capture.truncated or capture.reason is not None:
            end_us = reduction.last_us
        if start_us is not None and end_us is not None:
            database.execute("INSERT INTO spans VALUES (?, ?, ?)", [instance, start_us, end_us])
