"""A comparison as one HTML page, and as comparison.json beside it."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from analysis import output
from analysis.compare import comparison_file, figure_labels, intervals, narrative
from analysis.compare.comparison_file import Comparison, MatrixEntry, PairEntry
from analysis.compare.verdict import SeriesVerdict
from analysis.figures.catalogue import find
from analysis.formatting import counted
from analysis.reports import rendering, side_by_side
from formats.knob_types import format_knob_value

_STAGES = {
    "model": "What the model makes of it",
    "counters": "Counters that moved",
    "packets": "Packets",
    "users": "What users felt",
    "lab": "The lab's own account",
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
    """Write comparison.json and comparison.html.

    Args:
        comparison: what is written.
        folder: where.
        results: the folder with the runs that it names.
        verdict: on the series; None where runs are compared that are none.

    Raises:
        OSError: it cannot be written.
    """
    output.write(folder / comparison_file.FILE, comparison.to_json())
    beside = side_by_side.draw_timelines(comparison, results)
    output.write(folder / comparison_file.PAGE, html(comparison, os.path.relpath(results, folder), verdict, beside))


def html(
    comparison: Comparison,
    results: str = "../../..",
    verdict: SeriesVerdict | None = None,
    beside: dict[str, Any] | None = None,
    *,
    reports: Collection[str] | None = None,
) -> str:
    """Return the content of comparison.html.

    Args:
        comparison: what the page shows.
        results: the folder of the runs, as seen from the page's.
        verdict: on the series.
        beside: the time lines of its groups, as `side_by_side` makes them.
        reports: the runs whose reports lie below `results`; None: all.
    """
    pairs = max(len(comparison.pairs), 1)
    rows = min(max(_ROWS // (len(_STAGES) * pairs), _ROWS_MIN), _ROWS_MAX)
    drawn = min(max(_DRAWN // pairs, _DRAWN_MIN), _DRAWN_MAX)
    matrix = _cells(comparison.matrix) if comparison.matrix else None
    return rendering.render(
        "comparison",
        {
            "matrix": matrix,
            "pairs": [_drawn(pair, drawn) for pair in comparison.pairs],
            "about": _about(comparison),
            "search": comparison.search.model_dump(mode="json") if comparison.search else None,
            "beside": beside,
            "results": results,
            "reports": None if reports is None else sorted(reports),
        },
        {
            "comparison": comparison,
            "results": results,
            "reports": reports,
            "verdict": verdict,
            "about": _about(comparison),
            "measured": side_by_side.values_by_run(comparison),
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
            "counted": counted,
            "number": figure_labels.format_number,
            "sample": figure_labels.format_sample,
            "difference": figure_labels.format_difference,
            "remark": figure_labels.remark,
            "small_moves": narrative.count_small_moves,
            "summarize": narrative.summarize_moved,
            "no_moves": narrative.explain_no_moves,
            "setting": _setting,
        },
        styles=("theme",),
        scripts=("timeline", "comparison"),
    )


def _setting(value: object, unit: str | None) -> str:
    """Return a setting as a scenario spells it."""
    return "none" if value is None else format_knob_value(value, unit)


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
    content["units"] = {name: unit for name in figures if (unit := figure_labels.unit_for(name))}
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


def _drawn(pair: PairEntry, count: int) -> dict[str, Any]:
    """Return the part of a pair that its chart shows."""
    shown: list[dict[str, Any]] = []
    for stage in _DRAWN_STAGES:
        of_stage = [each for each in pair.effects if each.stage == stage and each.difference is not None]
        most = of_stage[: count // len(_DRAWN_STAGES)]
        shown += (effect.model_dump(mode="json", include=_EFFECT, exclude=_VALUES) for effect in most)
    return {"a": pair.a, "b": pair.b, "effects": shown}
