"""The time lines of a comparison's groups under one another, each of one run, on one scale."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.compare.comparison_file import Comparison, GroupEntry
from analysis.compare.figure_labels import format_number
from analysis.pages.report import run_files, timelines
from analysis.pages.report.charts import Chart
from analysis.pages.report.run_files import Record, ReportError

# A screen shows no more of them at once, and nobody compares more by eye.
_GROUPS_MAX = 6
# The page must stay below 2 MB: what is left of that.
_BYTES_MAX = 500_000
# Which time line shows a figure, by how its name begins or ends.
_BY_PREFIX = {
    "client.latency_ms": "times",
    "client.dial_ms": "times",
    "client.named": "times",
    "client": "requests",
    "ledger": "requests",
    "access": "requests",
    "listen": "queue",
    "flows": "kernel",
    "kernel": "kernel",
    "sockets": "sockets",
    "process": "cpu",
}
_TIME_WAIT = ".time_wait."
_OF_A_PROGRAM = "servers"


def draw_timelines(comparison: Comparison, results: Path) -> dict[str, Any] | None:
    """Return what the page's script draws; None where there is no time line at all.

    Args:
        comparison: whose groups.
        results: the folder with the runs that it names.

    Returns:
        `last`, in seconds; `left_out`, what else there would be, in sentences; and `charts`, the figure's first, each
        with `title`, `says` and `runs`: `group`, `run`, `why` (what its run stands for), `phases`, `chart` (None where
        there is none) with its `table`, and `missing`, which then says why.
    """
    chosen = _chosen(comparison)
    read = {group.name: _read(results / run) for group, run, _ in chosen}
    records = {name: record for name, record in read.items() if isinstance(record, Record)}
    if not records:
        return None
    last_s = max(timelines.lasts_s(record) for record in records.values())
    made = {name: {each.id: each for each in timelines.to_compare(record, last_s)} for name, record in records.items()}
    phases = {name: timelines.phases(record) for name, record in records.items()}
    known = {id_ for charts in made.values() for id_, chart in charts.items() if chart.missing is None}
    charts: list[dict[str, Any]] = []
    for id_, example in _figure_first(comparison.figure, next(iter(made.values()))).items():
        if id_ not in known:
            continue
        runs = [
            {"group": group.name, "run": run, "why": why, "phases": phases.get(group.name, [])}
            | _drawn(made[group.name][id_] if group.name in made else str(read[group.name]))
            for group, run, why in chosen
        ]
        charts.append({"title": example.title, "says": example.says, "runs": runs})
    shown = _that_fit(charts)
    left_out = []
    if len(comparison.groups) > len(chosen):
        left_out.append(f"{len(chosen)} of {len(comparison.groups)} cells, from the least to the most.")
    if len(charts) > len(shown):
        titles = "; ".join(chart["title"] for chart in charts[len(shown) :])
        left_out.append(f"In the runs' reports alone: {titles}.")
    return {"last": last_s, "left_out": left_out, "charts": shown}


def runs_drawn(beside: dict[str, Any] | None) -> list[str]:
    """Return the runs that have a time line, as `draw_timelines` names them."""
    charts = beside["charts"] if beside else []
    return list(dict.fromkeys(run["run"] for chart in charts for run in chart["runs"] if run["chart"] is not None))


def measured(comparison: Comparison) -> dict[str, float]:
    """Return the value of the comparison's figure in each run, where it is known which value is whose."""
    cells = {cell.cell: cell.figures for cell in comparison.matrix.cells} if comparison.matrix else {}
    found: dict[str, float] = {}
    for group in comparison.groups:
        used = [run.run for run in group.runs if run.used]
        sample = cells.get(group.name, {}).get(comparison.figure or "")
        if sample and len(sample.values) == len(used):
            found |= zip(used, sample.values, strict=True)
    return found


def _chosen(comparison: Comparison) -> list[tuple[GroupEntry, str, str]]:
    """Return the groups that have a run that counts, with the one in the middle of each, and what it stands for."""
    cells = {cell.cell: cell.figures for cell in comparison.matrix.cells} if comparison.matrix else {}
    known = measured(comparison)
    found = []
    for group in comparison.groups:
        used = [run.run for run in group.runs if run.used]
        if not used:
            continue
        sample = cells.get(group.name, {}).get(comparison.figure or "")
        values = [known[run] for run in used if run in known]
        place = (
            sorted(range(len(used)), key=lambda index: (values[index], index))[(len(used) - 1) // 2] if values else 0
        )
        why = f"{comparison.figure} = {format_number(values[place])}" if values else ""
        found.append((sample.mean if sample else None, group, used[place], why))
    if len(found) > _GROUPS_MAX:
        found.sort(key=lambda each: (each[0] is None, each[0] or 0))
        steps = [round(index * (len(found) - 1) / (_GROUPS_MAX - 1)) for index in range(_GROUPS_MAX)]
        found = [found[step] for step in steps]
    return [(group, run, why) for _, group, run, why in found]


def _read(folder: Path) -> Record | ReportError:
    try:
        return run_files.read(folder)
    except ReportError as error:
        return error


def _figure_first(figure: str | None, charts: Mapping[str, Chart]) -> dict[str, Chart]:
    first = _chart_of(figure) if figure else ""
    return dict(sorted(charts.items(), key=lambda each: each[0] != first))


def _chart_of(figure: str) -> str:
    if _TIME_WAIT in figure:
        return "time-wait"
    return next((id_ for prefix, id_ in _BY_PREFIX.items() if figure.startswith(f"{prefix}.")), _OF_A_PROGRAM)


def _drawn(chart: Chart | str) -> dict[str, Any]:
    if isinstance(chart, str):
        return {"chart": None, "missing": chart}
    if chart.missing is not None:
        return {"chart": None, "missing": chart.missing}
    header, rows = chart.table
    return {"chart": chart.drawn(), "table": {"header": header, "rows": rows}, "notes": chart.notes}


def _that_fit(charts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return as many of them, from the first on, as the page has room for."""
    shown: list[dict[str, Any]] = []
    room = _BYTES_MAX
    for chart in charts:
        room -= len(json.dumps(chart))
        if room < 0:
            break
        shown.append(chart)
    return shown
