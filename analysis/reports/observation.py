"""The page of a system that the lab only watched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analysis.database import over_files
from analysis.diagnosis import causes
from analysis.diagnosis.causes import Cause
from analysis.evidence.rawfiles import descriptor_path
from analysis.formatting import counted
from analysis.reports import labels, rendering
from analysis.verdicts import connections_file, derived
from analysis.verdicts.connections_file import QUEUES, Connections
from formats.safe_open import open_within

_WIDTH, _HEIGHT = 720, 120


@dataclass(frozen=True)
class Caused:
    """How often a cause was proved at a server."""

    server: str
    cause: Cause
    count: int


@dataclass(frozen=True)
class Chart:
    """An accept queue over time."""

    id: str
    title: str
    steps: int
    limit: int
    drawing: str


def html(folder: Path, recorded: dict[str, Any], linked: str | None = None) -> str:
    """The content of report.html; raises DerivedError if the run was not analysed by this version."""
    account = derived.read(folder, connections_file.FILE, Connections)
    found = [
        Caused(server.server, causes.cause_named(name), count)
        for target in account.targets
        for server in target.servers
        for name, count in server.causes.items()
    ]
    return rendering.render(
        "observed",
        None,
        {
            "run": recorded,
            "account": account,
            "causes": sorted(found, key=lambda each: -each.count),
            "charts": _charts(folder),
        },
        {"number": labels.number, "counted": counted},
        styles=("theme", "report"),
        linked=linked,
        scripts=(),
        charts=False,
    )


def _charts(folder: Path) -> list[Chart]:
    """A chart for each queue that ever held a connection."""
    try:
        file = open_within(folder, QUEUES)
    except OSError:
        return []
    with file, over_files() as database:
        try:
            rows = database.execute(
                "SELECT server, step, depth, queue_limit FROM read_parquet($path, hive_partitioning = false)"
                " ORDER BY server, step",
                {"path": descriptor_path(file)},
            ).fetchall()
        except duckdb.Error:
            raise derived.DerivedError(f"{folder / QUEUES}: damaged", folder) from None
    queues: dict[str, list[tuple[int, int]]] = {}
    for server, _, depth, limit in rows:
        queues.setdefault(server, []).append((depth, limit))
    return [
        Chart(f"queue-{number}", f"Accept queue of {server}", len(steps), max(limit for _, limit in steps), _svg(steps))
        for number, (server, steps) in enumerate(queues.items(), start=1)
    ]


def _svg(steps: list[tuple[int, int]]) -> str:
    """Bars for the depth and a line for the limit; numbers alone go into it."""
    limit = max(limit for _, limit in steps)
    top = max(limit + 1, *(depth for depth, _ in steps))
    width = _WIDTH / len(steps)
    bars = "".join(
        f'<rect x="{number * width:.1f}" y="{_HEIGHT - _HEIGHT * depth / top:.1f}" width="{max(width - 0.5, 0.5):.1f}"'
        f' height="{_HEIGHT * depth / top:.1f}" fill="currentColor" opacity="0.55"/>'
        for number, (depth, _) in enumerate(steps)
        if depth
    )
    at = _HEIGHT - _HEIGHT * limit / top
    line = f'<line x1="0" x2="{_WIDTH}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>'
    axis = f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="currentColor"/>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" role="img" aria-hidden="true">{bars}{line}{axis}</svg>'
