"""Prints what somebody expected of a run beside what was measured: right, near, or off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from analysis.verdicts import guesses
from analysis.verdicts.figures_file import FILE as FIGURES
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.guesses import GuessOutcome
from formats.manifest import FILE
from formats.safe_open import read_regular
from lab.runs import reports

MARKS = {
    "right": ("✓ right", "green"),
    "near": ("≈ near", "cyan"),
    "off": ("○ off", "yellow"),
    "skipped": ("- passed", "dim"),
    "unknown": ("? unknown", "yellow"),
}


def print_run(console: Console, folder: Path, verdict: Mapping[str, Any]) -> None:
    """Print what was expected of a run; nothing if nobody was asked."""
    manifest = json.loads(read_regular(folder / FILE))
    if not any(one["value"] is not None for one in manifest.get("guesses", [])):
        return
    figures = reports.read_derived(folder, FIGURES, FiguresFile).model_dump(mode="json", by_alias=True)
    console.print(Text("your predictions", "bold"))
    for outcome in guesses.of_run(manifest, verdict, figures):
        print_one(console, outcome)


def print_one(console: Console, one: GuessOutcome) -> None:
    """Print one answer."""
    word, style = MARKS[one.mark]
    yours = "-" if one.guess is None else guesses.written(one.guess, one.unit)
    measured = "unknown" if one.measured is None else guesses.written(one.measured, one.unit)
    console.print(Text.assemble((f"{word:<10}", style), one.asks), soft_wrap=True)
    remark = f" ({one.remark})" if one.remark and one.mark != "skipped" else ""
    console.print(Text(f"          you: {yours}, measured: {measured}{remark}"), soft_wrap=True)
    if one.says and one.mark == "off":
        console.print(Text(f"          {one.says}", "dim"), soft_wrap=True)
