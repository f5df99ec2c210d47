"""The time lines of a comparison's groups under one another, each of one run, on one scale."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

from analysis.compare.comparison_file import Comparison, Sample
from analysis.compare.figure_labels import format_number
from analysis.reports import run_record, timelines
from analysis.reports.run_record import Record, ReportError
from analysis.reports.time_series import Chart

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
    read = {group: _load(results / run) for group, run, _ in chosen}
    records = {name: record for name, record in read.items() if isinstance(record, Record)}
    if not records:
        return None
    last_s = max(timelines.duration_s(record) for record in records.values())
    made = {
        name: {each.id: each for each in timelines.build_comparable_charts(record, last_s)}
        for name, record in records.items()
    }
    phases = {name: timelines.phase_spans(record) for name, record in records.items()}
    known = {id_ for charts in made.values() for id_, chart in charts.items() if chart.missing is None}
    first = _chart_of(comparison.figure or "")
    charts: list[dict[str, Any]] = []
    for id_, example in sorted(next(iter(made.values())).items(), key=lambda each: each[0] != first):
        runs = [
            {"group": group, "run": run, "why": why, "phases": phases.get(group, [])}
            | _drawn(made[group][id_] if group in made else str(read[group]))
            for group, run, why in chosen
        ]
        if id_ in known:
            charts.append({"title": example.title, "says": example.says, "runs": runs})
    sizes = accumulate(len(json.dumps(chart)) for chart in charts)
    shown = sum(size <= _BYTES_MAX for size in sizes)
    left_out = []
    if len(comparison.groups) > len(chosen):
        left_out.append(f"{len(chosen)} of {len(comparison.groups)} cells, from the least to the most.")
    if len(charts) > shown:
        titles = "; ".join(chart["title"] for chart in charts[shown:])
        left_out.append(f"In the runs' reports alone: {titles}.")
    return {"last": last_s, "left_out": left_out, "charts": charts[:shown]}


def runs_drawn(beside: dict[str, Any] | None) -> list[str]:
    """Return the runs that have a time line, as `draw_timelines` names them."""
    charts = beside["charts"] if beside else []
    return list(dict.fromkeys(run["run"] for chart in charts for run in chart["runs"] if run["chart"] is not None))


def values_by_run(comparison: Comparison) -> dict[str, float]:
    """Return the value of the comparison's figure in each run, where it is known which value is whose."""
    samples = _samples(comparison)
    found: dict[str, float] = {}
    for group in comparison.groups:
        used = [run.run for run in group.runs if run.used]
        sample = samples.get(group.name)
        if sample and len(sample.values) == len(used):
            found |= zip(used, sample.values, strict=True)
    return found


def _samples(comparison: Comparison) -> dict[str, Sample]:
    """Return what each group measured of the comparison's figure."""
    cells = comparison.matrix.cells if comparison.matrix else []
    return {cell.cell: sample for cell in cells if (sample := cell.figures.get(comparison.figure or ""))}


def _chosen(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the groups that have a run that counts, with the one in the middle of each, and what it stands for."""
    values, samples = values_by_run(comparison), _samples(comparison)
    found = []
    for group in comparison.groups:
        used = [run.run for run in group.runs if run.used]
        known = sorted((run for run in used if run in values), key=values.__getitem__)
        if used:
            run = known[(len(known) - 1) // 2] if known else used[0]
            why = f"{comparison.figure} = {format_number(values[run])}" if known else ""
            found.append((group.name, run, why))
    if len(found) > _GROUPS_MAX:
        means = {name: sample.mean for name, sample in samples.items() if sample.mean is not None}
        found.sort(key=lambda each: (each[0] not in means, means.get(each[0], 0)))
        found = [found[round(index * (len(found) - 1) / (_GROUPS_MAX - 1))] for index in range(_GROUPS_MAX)]
    return found


def _load(folder: Path) -> Record | ReportError:
    try:
        return run_record.load_record(folder)
    except ReportError as error:
        return error


def _chart_of(figure: str) -> str:
    if _TIME_WAIT in figure:
        return "time-wait"
    return next((id_ for prefix, id_ in _BY_PREFIX.items() if figure.startswith(f"{prefix}.")), _OF_A_PROGRAM)


def _drawn(chart: Chart | str) -> dict[str, Any]:
    missing = chart if isinstance(chart, str) else chart.missing
    if isinstance(chart, str) or missing is not None:
        return {"chart": None, "missing": missing}
    header, rows = chart.table
    return {"chart": chart.drawn(), "table": {"header": header, "rows": rows}, "notes": chart.notes}
