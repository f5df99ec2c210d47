"""What the commands of series print: a plan before it runs, and what became of one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.text import Text

from formats.knob_types import format_knob_value
from formats.series import PlannedRun, Search, Series
from lab import paths
from lab.runs.run_results import STYLES, format_figure, plain_table, print_judgement
from lab.scenarios.knobs import format_knob
from lab.scenarios.resolved import ResolvedScenario
from lab.series.plan import BESIDES_S, Plan

_MINUTE_S = 60


def plan_details(plan: Plan) -> dict[str, Any]:
    """Return a plan as a program reads it: cells, order and expected time."""
    return {
        "kind": plan.kind,
        "name": plan.name,
        "title": plan.title,
        "question": plan.question,
        "remark": plan.remark,
        "seed": plan.rules.seed,
        "repetitions": plan.rules.repetitions,
        "axes": [axis.model_dump() for axis in plan.axes],
        "baseline": plan.baseline,
        "cells": [planned.cell.model_dump() for planned in plan.cells.values()],
        "order": [{"cell": cell, "repetition": repetition} for cell, repetition in plan.order()],
        "expected_s": round(plan.expected_s()),
    }


def print_plan(console: Console, plan: Plan) -> None:
    """Print what a series would do: its cells, the order, and how long it is expected to take."""
    console.print(Text(plan.title, "bold"))
    console.print(plan.question)
    if plan.remark:
        console.print(Text(plan.remark, "yellow"), soft_wrap=True)
    failing = any("users_failed" in planned.cell.model for planned in plan.cells.values())
    table = plain_table("cell", "sets", "load", *(("users failed, by the model",) if failing else ()))
    for name, planned in plan.cells.items():
        sets = ", ".join(
            f"{knob} = {format_knob(knob, value, planned.resolved.registry.knobs)}"
            for knob, value in planned.cell.knobs.items()
        )
        way = f"path {' '.join(planned.cell.path)}" if planned.resolved.variant.path else ""
        predicted = planned.cell.model.get("users_failed", "?")
        mark = " (baseline)" if name == plan.baseline else ""
        last = (str(predicted),) if failing else ()
        table.add_row(name + mark, ", ".join(filter(None, (way, sets))), f"{planned.cell.load_s:.0f} s", *last)
    console.print(table)
    order = plan.order()
    console.print(f"order, by the seed {plan.rules.seed}:")
    for number, (cell, repetition) in enumerate(order, start=1):
        console.print(f"  {number:>3}  {cell} r{repetition:02}", soft_wrap=True)
    runs = f"{len(plan.cells)} cells x {plan.rules.repetitions} = {len(order)} runs"
    console.print(f"{runs}, expected to take {span(plan.expected_s())}")


def span(seconds: float) -> str:
    """Write how long something takes, for a reader."""
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.0f} min"


def plan_summary(plan: Plan) -> dict[str, Any]:
    """Return one line about a matrix: what `connlab matrix` lists."""
    return {
        "matrix": plan.name,
        "title": plan.title,
        "scenarios": plan.scenarios,
        "cells": len(plan.cells),
        "runs": len(plan.order()),
        "expected_s": round(plan.expected_s()),
    }


def print_plans(console: Console, plans: Iterable[Plan]) -> None:
    """Print the matrices."""
    short = ("matrix", "cells", "runs", "about")
    table = plain_table(*short, "title", whole=short)
    for one in map(plan_summary, plans):
        counts = (str(one["cells"]), str(one["runs"]), span(one["expected_s"]))
        table.add_row(one["matrix"], *counts, one["title"])
    console.print(table)


def print_series(console: Console, series: Series, verdict: Mapping[str, Any], folder: Path) -> None:
    """Print what became of each cell and of each prediction over the whole, the verdict, and where it all lies."""
    table = plain_table("cell", "runs", "evidence", "verdict", "predictions that did not hold")
    for cell in series.cells:
        judged = verdict["cells"].get(cell.cell, {})
        planned = sum(place.cell == cell.cell for place in series.runs)
        found = judged.get("verdict") or "-"
        predictions = judged.get("predictions", [])
        failed = [f"{one['id']} ({one['false']} of {judged['used']})" for one in predictions if one["false"]]
        used, needed = judged.get("used", 0), judged.get("needed", 0)
        counts = (str(planned), str(used) if used >= needed else f"{used} (needs {needed})")
        table.add_row(cell.cell, *counts, Text(found, STYLES.get(found, "")), ", ".join(failed))
    console.print(table)
    for one in verdict["predictions"]:
        _print_prediction(console, one)
    _print_ended(console, series)
    console.print(Text.assemble("verdict: ", (verdict["verdict"], STYLES[verdict["verdict"]])))
    console.print(f"result: {paths.shown(folder)}", soft_wrap=True)


def _print_ended(console: Console, series: Series) -> None:
    console.print(f"the series is {series.status}" + (f": {series.reason}" if series.reason else ""), soft_wrap=True)


def _print_prediction(console: Console, one: Mapping[str, Any]) -> None:
    measured = {}
    for name, value in one["measured"].items():
        interval = "" if value["low"] is None else f", {format_figure(value['low'])} to {format_figure(value['high'])}"
        measured[name] = f"{format_figure(value['mean'])}{interval} ({len(value['values'])} runs)"
    title = Text.assemble((one["id"], "bold"), f": {one['description']}")
    print_judgement(console, one["status"], title, measured, one["why"])


def print_search(console: Console, search: Search, series: Series | None = None, folder: Path | None = None) -> None:
    """Print what a search would do, or what it found, with the model's prediction beside it.

    If some of its runs did not complete, how they ended is printed.
    """
    knob = search.knob

    def shown(value: int) -> str:
        return format_knob_value(value, search.unit)

    if search.outcome == "found" and search.found is not None:
        console.print(Text(f"{search.goal} {knob} for which {search.until}: {shown(search.found)}", "bold"))
    elif search.outcome:
        console.print(Text(f"{search.outcome}: {search.until} over {knob}", "bold"))
    elif series:
        console.print(Text(f"not decided: {search.until} over {knob}", "bold"))
    else:
        where = f"from {shown(search.low)} to {shown(search.high)}, to within {shown(search.step)}"
        console.print(f"{knob} {where}, {search.confirm} runs at each side of the border, until {search.until}")
    if search.why:
        console.print(search.why, soft_wrap=True)
    model = "the model does not say" if search.predicted is None else f"the model says {shown(search.predicted)}"
    console.print(model)
    if series and series.status != "complete":
        _print_ended(console, series)
    if folder:
        console.print(f"result: {paths.shown(folder)}", soft_wrap=True)


class Progress:
    """Prints a line after each run; what the runs took so far tells what those to come will take."""

    def __init__(self, series: Series, cells: Mapping[str, ResolvedScenario], console: Console) -> None:
        self._series = series
        self._cells = cells
        self._console = console
        self._besides_s: list[float] = []

    def title(self, place: PlannedRun) -> str:
        """Return the title of a place while it runs: its number, the time left, its cell."""
        number = self._series.runs.index(place) + 1
        return f"[{number}/{len(self._series.runs)}, {self._left()} left] {place.cell} r{place.repetition:02}"

    def done(self, place: PlannedRun, seconds: float) -> None:
        """Print what became of a place."""
        if place.status == "complete":
            self._besides_s.append(seconds - self._own_s(place))
        done = sum(one.status == "complete" for one in self._series.runs)
        outcome = place.verdict or "recorded" if place.status == "complete" else place.status
        why = f" ({place.reason})" if place.reason else ""
        line = Text.assemble(
            f"{place.cell} r{place.repetition:02}: ",
            (outcome, STYLES.get(outcome, "")),
            f"{why}, {seconds:.0f} s; {done} of {len(self._series.runs)} complete, {self._left()} left",
        )
        self._console.print(line, soft_wrap=True)

    def _own_s(self, place: PlannedRun) -> float:
        """Return how long load and drain of a place are expected to take."""
        cell = next(one for one in self._series.cells if one.cell == place.cell)
        return cell.load_s + self._cells[place.cell].scenario.drain / 1000

    def _left(self) -> str:
        waiting = [place for place in self._series.runs if place.status in ("planned", "running")]
        besides_s = fmean(self._besides_s) if self._besides_s else BESIDES_S
        each_s = besides_s + self._series.cooldown_ms / 1000
        left_s = sum(self._own_s(place) + each_s for place in waiting)
        return f"{left_s:.0f} s" if left_s < _MINUTE_S else f"about {left_s / _MINUTE_S:.0f} min"
