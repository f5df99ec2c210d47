"""What `connlab list` and `connlab show` tell about scenarios."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab import measure, models
from lab.catalogue import CATALOGUE, show_value
from lab.effective import Effective
from lab.units import format_duration
from lab.verdicts import show as show_measured


def summary(effective: Effective) -> dict[str, Any]:
    """Give one line about a scenario: what `connlab list` shows."""
    scenario = effective.scenario
    return {
        "scenario": effective.slug,
        "experiment": scenario.experiment,
        "title": scenario.title,
        "path": list(scenario.path),
        "load_s": measure.expected_s(effective),
    }


def print_list(console: Console, summaries: list[dict[str, Any]]) -> None:
    """Print the scenarios."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("scenario", "from", "path", "load", "title"):
        table.add_column(column, no_wrap=column == "scenario", overflow="fold")
    for one in summaries:
        load = "" if one["load_s"] is None else f"{one['load_s']:.0f} s"
        table.add_row(one["scenario"], one["experiment"], " → ".join(one["path"]), load, one["title"])
    console.print(table)


def details(effective: Effective) -> dict[str, Any]:
    """Give everything about a scenario with its overrides: what `connlab show` shows."""
    scenario = effective.scenario
    return summary(effective) | {
        "question": scenario.question,
        "warmup_requests": scenario.warmup.requests,
        "drain_ms": scenario.drain,
        "slow_ms": scenario.slow,
        "knobs": {
            name: {"value": effective.values[name], "source": effective.source(name)}
            for name in relevant_knobs(effective)
        },
        "predictions": [
            {**prediction.model_dump(), "known": models.known_before_run(effective, prediction)}
            for prediction in scenario.predictions
        ],
    }


def relevant_knobs(effective: Effective) -> list[str]:
    """Give the knobs that have a say in this scenario: of the roles on its path, and of its workload."""
    workload = effective.scenario.knobs.load.workload
    return [name for name in effective.on_path() if not _of_other_workload(name, workload)]


def _of_other_workload(name: str, workload: str) -> bool:
    readers = CATALOGUE[name].workloads if name in CATALOGUE else None
    return readers is not None and workload not in readers


def print_details(console: Console, effective: Effective, shown: dict[str, Any]) -> None:
    """Print a scenario: question, effective knobs and predictions with the values that are known before a run."""
    console.print(Text.assemble((effective.scenario.title, "bold")))
    console.print(f"{shown['experiment']} · {' → '.join(shown['path'])}", highlight=False)
    console.print(effective.scenario.question, highlight=False)
    window = f"warm-up {shown['warmup_requests']} requests · drain {format_duration(shown['drain_ms'])}"
    console.print(window if shown["slow_ms"] is None else f"{window} · slow above {format_duration(shown['slow_ms'])}")
    console.print(_knob_table(shown))
    console.print(_prediction_table(shown))


def _knob_table(shown: dict[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("knob", "value", "from", "meaning"):
        table.add_column(column, no_wrap=column != "meaning")
    for name, knob in shown["knobs"].items():
        style = "dim" if knob["source"] == "default" else "bold"
        meaning = CATALOGUE[name].description if name in CATALOGUE else "sysctl of the role's network namespace"
        table.add_row(name, show_value(name, knob["value"]), knob["source"], meaning, style=style)
    return table


def _prediction_table(shown: dict[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("prediction", "says", "expression", "known before the run"):
        table.add_column(column, overflow="fold")
    for one in shown["predictions"]:
        known = "\n".join(f"{name} = {show_measured(value)}" for name, value in one["known"].items())
        table.add_row(one["id"], one["says"], one["expression"], known)
    return table
