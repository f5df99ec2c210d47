"""A comparison as one HTML page, and as comparison.json beside it."""

import json
import os
from itertools import accumulate
from pathlib import Path
from typing import Any

from analysis import output
from analysis.compare import comparison_file, intervals, narrative
from analysis.compare.comparison_file import Comparison, MatrixEntry, PairEntry, Sample
from analysis.compare.verdict import SeriesVerdict
from analysis.figures.catalogue import find
from analysis.formatting import format_count, format_number
from analysis.reports import rendering, run_charts, run_record
from analysis.reports.chart_series import Chart
from analysis.reports.run_record import Record
from analysis.verdicts.derived import DerivedError
from formats.knob_types import format_knob_value

_STAGES = {
    "model": "The model",
    "counters": "Counters",
    "packets": "Packets",
    "users": "Users",
    "lab": "The lab's own records",
}
# The model has no interval to draw.
_DRAWN_STAGES = ("counters", "packets", "users")
# What a chart shows of an effect.
_EFFECT = {"figure", "status", "a", "b", "difference", "low", "high", "noise"}
_VALUES = {"a": {"values"}, "b": {"values"}}
# What a page holds at most, over all cells and pairs: it must stay below 2 MB, and comparison.json has the rest.
_SAMPLES = 3_500
_ROWS = 1_200
_DRAWN = 600
# Rows for one pair: nobody reads more, and fewer show nothing.
_ROWS_MAX, _ROWS_MIN = 40, 4
_DRAWN_MAX, _DRAWN_MIN = 24, 6


def write(comparison: Comparison, folder: Path, results: Path, verdict: SeriesVerdict | None = None) -> None:
    """Write comparison.json and comparison.html into a folder; raise OSError if that fails.

    `results` is the folder with the runs that the comparison names; `verdict` is None where the runs are no series.
    """
    output.write(folder / comparison_file.FILE, comparison.to_json())
    beside = draw_timelines(comparison, results)
    output.write(folder / comparison_file.PAGE, html(comparison, os.path.relpath(results, folder), verdict, beside))


def html(
    comparison: Comparison,
    results: str = "../../..",
    verdict: SeriesVerdict | None = None,
    beside: dict[str, Any] | None = None,
) -> str:
    """Return the content of comparison.html.

    `results` is the folder of the runs, as seen from the page's; `beside` is what `draw_timelines` returns.
    """
    pairs = max(len(comparison.pairs), 1)
    rows = min(max(_ROWS // (len(_STAGES) * pairs), _ROWS_MIN), _ROWS_MAX)
    drawn = min(max(_DRAWN // pairs, _DRAWN_MIN), _DRAWN_MAX)
    matrix = _cells(comparison.matrix) if comparison.matrix else None
    return rendering.render(
        "comparison",
        {
            "matrix": matrix,
            "pairs": [_charted(pair, drawn) for pair in comparison.pairs],
            "about": _about(comparison),
            "search": comparison.search.model_dump(mode="json") if comparison.search else None,
            "beside": beside,
            "results": results,
        },
        {
            "comparison": comparison,
            "results": results,
            "verdict": verdict,
            "about": _about(comparison),
            "measured": _values_by_run(comparison, _samples(comparison)),
            "meaning": _meaning(comparison.figure),
            "repeated": any(sum(run.used for run in group.runs) > 1 for group in comparison.groups),
            "fewest": intervals.FEWEST_OF_TWO,
            "moved": [narrative.find_moved(pair) for pair in comparison.pairs],
            "stages": _STAGES,
            "beside": beside,
            "rows": rows,
            # Those of the charts: their tables stand beside them.
            "figures": matrix["figures"] if matrix else [],
        },
        {
            "format_count": format_count,
            "number": format_number,
            "sample": narrative.format_sample,
            "difference": narrative.format_difference,
            "remark": narrative.remark,
            "small_moves": narrative.count_small_moves,
            "summarize": narrative.summarize_moved,
            "no_moves": narrative.explain_no_moves,
            "setting": lambda value, unit: "none" if value is None else format_knob_value(value, unit),
        },
        scripts=("timeline", "comparison"),
    )


def _meaning(figure: str | None) -> str:
    """Return what a figure counts, or what the list has that it is a statistic of."""
    found = find(figure) if figure else None
    if figure and found and "statistic" in found[1]:
        found = find(f"{figure.rpartition('.')[0]}.list")
    return found[0].meaning if found else ""


def _cells(matrix: MatrixEntry) -> dict[str, Any]:
    """Return the part of a matrix that its charts show: of many cells fewer figures, and runs where they are points."""
    figures = matrix.figures[: _SAMPLES // len(matrix.cells)]
    fields = {"mean", "low", "high"} | ({"values"} if len(matrix.axes) == 1 else set())
    content = matrix.model_dump(mode="json") | {"figures": figures}
    content["units"] = {name: unit for name in figures if (unit := narrative.unit_for(name))}
    for cell in content["cells"]:
        samples = {name: cell["figures"][name] for name in figures if name in cell["figures"]}
        cell["figures"] = {
            name: {key: value for key, value in sample.items() if key in fields} for name, sample in samples.items()
        }
    return content


def _about(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the differences of the figure that the comparison is about, of each pair."""
    return [
        {"pair": [pair.a, pair.b]} | effect.model_dump(mode="json", include=_EFFECT | {"unit"}, exclude=_VALUES)
        for pair in comparison.pairs
        for effect in pair.effects
        if effect.figure == comparison.figure and effect.difference is not None
    ]


def _charted(pair: PairEntry, count: int) -> dict[str, Any]:
    """Return the part of a pair that its chart shows."""
    shown: list[dict[str, Any]] = []
    for stage in _DRAWN_STAGES:
        of_stage = [each for each in pair.effects if each.stage == stage and each.difference is not None]
        most = of_stage[: count // len(_DRAWN_STAGES)]
        shown += (effect.model_dump(mode="json", include=_EFFECT, exclude=_VALUES) for effect in most)
    return {"a": pair.a, "b": pair.b, "effects": shown}


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
    """Return what the page's script draws of the runs below `results`; None where there is no time line at all.

    `last` is in seconds; `left_out` says in sentences what else there would be. `charts` begin with the figure's; each
    has `title`, `says` and `runs`: `group`, `run`, `why` (what its run stands for), `phases`, and `chart` with its
    `table` and `notes`, or `missing`, which says why there is none.
    """
    chosen = _chosen(comparison)
    read = {group: _load(results / run) for group, run, _ in chosen}
    records = {name: record for name, record in read.items() if isinstance(record, Record)}
    if not records:
        return None
    last_s = max(run_charts.duration_s(record) for record in records.values())
    made = {name: run_charts.build_comparable_charts(record, last_s) for name, record in records.items()}
    phases = {name: run_charts.phase_spans(record) for name, record in records.items()}
    first = _chart_of(comparison.figure or "")
    charts: list[tuple[bool, dict[str, Any]]] = []
    for place, example in enumerate(next(iter(made.values()))):
        if any(of_run[place].missing is None for of_run in made.values()):
            runs = [
                {"group": group, "run": run, "why": why, "phases": phases.get(group, [])}
                | _timeline(made[group][place] if group in made else str(read[group]))
                for group, run, why in chosen
            ]
            charts.append((example.id != first, {"title": example.title, "says": example.says, "runs": runs}))
    drawn = [chart for _, chart in sorted(charts, key=lambda each: each[0])]
    shown = sum(size <= _BYTES_MAX for size in accumulate(len(json.dumps(chart)) for chart in drawn))
    left_out = []
    if len(comparison.groups) > len(chosen):
        left_out.append(f"{len(chosen)} of {len(comparison.groups)} cells, from the lowest to the highest value.")
    if len(drawn) > shown:
        titles = "; ".join(chart["title"] for chart in drawn[shown:])
        left_out.append(f"Only in the runs' reports: {titles}.")
    return {"last": last_s, "left_out": left_out, "charts": drawn[:shown]}


def _values_by_run(comparison: Comparison, samples: dict[str, Sample]) -> dict[str, float]:
    """Return the value of the comparison's figure in each run, where it is known which value is whose."""
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
    """Return the groups that have a run that counts, with the median one of each, and its value."""
    samples = _samples(comparison)
    values = _values_by_run(comparison, samples)
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


def _load(folder: Path) -> Record | DerivedError:
    try:
        return run_record.load_record(folder)
    except DerivedError as error:
        return error


def _chart_of(figure: str) -> str:
    if _TIME_WAIT in figure:
        return "time-wait"
    return next((id_ for prefix, id_ in _BY_PREFIX.items() if figure.startswith(f"{prefix}.")), _OF_A_PROGRAM)


def _timeline(chart: Chart | str) -> dict[str, Any]:
    missing = chart if isinstance(chart, str) else chart.missing
    if isinstance(chart, str) or missing is not None:
        return {"chart": None, "missing": missing}
    header, rows = chart.table
    return {"chart": chart.drawn(), "table": {"header": header, "rows": rows}, "notes": chart.notes}
