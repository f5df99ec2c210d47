"""Prints what somebody expected beside what was measured: right, near, or off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.text import Text

from analysis import guesses
from analysis.guesses import Outcome
from lab import paths
from lab.lesson.answers import Answers
from lab.manifest import FILE
from lab.series.record import Choice, Run

_MARKS = {
    "right": ("✓ right", "green"),
    "near": ("≈ near", "cyan"),
    "off": ("○ off", "yellow"),
    "skipped": ("- passed", "dim"),
    "unknown": ("? unknown", "yellow"),
}


def print_run(console: Console, folder: Path, verdict: Mapping[str, Any]) -> None:
    """Print what was expected of a run; nothing if nobody was asked."""
    manifest = json.loads((folder / FILE).read_bytes())
    if not any(one["value"] is not None for one in manifest.get("guesses", [])):
        return
    figures = json.loads((folder / "derived" / "figures.json").read_bytes())
    console.print(Text("your predictions", "bold"))
    for outcome in guesses.of_run(manifest, verdict, figures):
        _print(console, outcome)


def print_series(console: Console, places: Iterable[Run], verdict: Mapping[str, Any], answers: Answers) -> None:
    """Print what was expected of the runs of each arm, by the middle one of its runs, and of the arms together."""
    if not answers.given:
        return
    done = list(places)
    console.print(Text("your predictions", "bold"))
    for arm, asked in answers.of_arm.items():
        console.print(Text.assemble("arm ", (str(arm), "bold")))
        manifest = {"guesses": [guess.model_dump() for guess in asked]}
        runs = [one.run for one in done if one.cell == arm and one.status == "complete" and one.run]
        found = [guesses.of_run(manifest, *_derived(paths.RESULTS / run)) for run in runs]
        for index, guess in enumerate(asked):
            values = [one[index].measured for one in found]
            known = [value for value in values if value is not None]
            middle = median(known) if known else None
            mark, remark = guesses.compare(guess.value, middle, guess.unit, "no run of the arm gives it")
            says = found[0][index].says if found else ""
            _print(console, Outcome(guess.asks, guess.unit, guess.value, middle, mark, remark, says))
    judged = {one["id"]: one for one in verdict["predictions"]}
    for choice in answers.chosen:
        _print_choice(console, choice, judged.get(choice.prediction, {}))


def _derived(folder: Path) -> Iterable[dict[str, Any]]:
    return (json.loads((folder / "derived" / f"{name}.json").read_bytes()) for name in ("verdict", "figures"))


def _print(console: Console, one: Outcome) -> None:
    word, style = _MARKS[one.mark]
    yours = "-" if one.guess is None else guesses.written(one.guess, one.unit)
    measured = "unknown" if one.measured is None else guesses.written(one.measured, one.unit)
    console.print(Text.assemble((f"{word:<10}", style), one.asks), soft_wrap=True)
    remark = f" ({one.remark})" if one.remark and one.mark != "skipped" else ""
    console.print(Text(f"          you: {yours}, measured: {measured}{remark}"), soft_wrap=True)
    if one.says and one.mark == "off":
        console.print(Text(f"          {one.says}", "dim"), soft_wrap=True)


def _print_choice(console: Console, choice: Choice, prediction: Mapping[str, Any]) -> None:
    other = next(arm for arm in choice.arms if arm != choice.less)
    less = {"true": choice.less, "false": other}.get(prediction.get("status", "unknown"))
    if choice.value is None:
        mark = "skipped"
    elif less is None:
        mark = "unknown"
    else:
        mark = "right" if choice.value == less else "off"
    word, style = _MARKS[mark]
    console.print(Text.assemble((f"{word:<10}", style), f"{choice.asks} Where is it less?"), soft_wrap=True)
    measured = less or f"unknown ({prediction.get('why') or 'the series did not come so far'})"
    console.print(Text(f"          you: {choice.value or '-'}, measured: {measured}"), soft_wrap=True)
