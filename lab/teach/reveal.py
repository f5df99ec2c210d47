"""Prints what somebody expected of a series beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from analysis.verdicts import figures_file, guesses, verdict_file
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.guesses import GuessOutcome
from analysis.verdicts.verdict_file import Verdict
from formats.series import ExpectedArm, PlannedRun
from lab import paths
from lab.results.guesses_printing import MARKS, print_one
from lab.runs import reports
from lab.series.plan import Answers


def print_series(console: Console, places: Iterable[PlannedRun], verdict: Mapping[str, Any], answers: Answers) -> None:
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
            print_one(console, GuessOutcome(guess.asks, guess.unit, guess.value, middle, mark, remark, says))
    judged = {one["id"]: one for one in verdict["predictions"]}
    for choice in answers.chosen:
        _print_choice(console, choice, judged.get(choice.prediction, {}))


def _derived(folder: Path) -> Iterable[dict[str, Any]]:
    files: dict[Path, type[BaseModel]] = {verdict_file.FILE: Verdict, figures_file.FILE: FiguresFile}
    for file, model in files.items():
        yield reports.read_derived(folder, file, model).model_dump(mode="json", by_alias=True)


def _print_choice(console: Console, choice: ExpectedArm, prediction: Mapping[str, Any]) -> None:
    other = next(arm for arm in choice.arms if arm != choice.less)
    less = {"true": choice.less, "false": other}.get(prediction.get("status", "unknown"))
    if choice.value is None:
        mark = "skipped"
    elif less is None:
        mark = "unknown"
    else:
        mark = "right" if choice.value == less else "off"
    word, style = MARKS[mark]
    console.print(Text.assemble((f"{word:<10}", style), f"{choice.asks} Where is it less?"), soft_wrap=True)
    measured = less or f"unknown ({prediction.get('why') or 'the series did not come so far'})"
    console.print(Text(f"          you: {choice.value or '-'}, measured: {measured}"), soft_wrap=True)
