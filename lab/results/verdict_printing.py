"""Prints a run's verdict: the ledger, the predictions, what the evidence lacks, and where it all lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from lab import paths
from lab.results.lacks import Lacks
from lab.runs.reports import REPORT_FILE, STYLES, format_figure


def print_verdict(console: Console, verdict: Mapping[str, Any], folder: Path) -> None:
    """Print what came out.

    First what became of an advice that the run followed; then the ledger, each prediction with what was measured, what
    the instruments lack, the verdict, and where it all lies.
    """
    # They bring the analysis; as in `verdicts.derive`.
    from lab.results import followed, guesses_printing, ledger_printing  # noqa: PLC0415

    became = followed.line(folder)
    if became:
        console.print(Text(became, "bold"), soft_wrap=True)
    lacks = Lacks(verdict.get("problems", []))
    ledger_printing.print_ledger(console, folder, lacks)
    for one in verdict["predictions"]:
        status = (f"{one['status']:<7} ", STYLES[one["status"]])
        console.print(Text.assemble(status, (one["id"], "bold"), f": {one['says']}"), soft_wrap=True)
        for name, value in one["measured"].items():
            console.print(f"        {name} = {format_figure(value)}", style="dim", soft_wrap=True)
        if one.get("why"):
            console.print(f"        why: {lacks.short(one['why'])}", style="yellow", soft_wrap=True)
    for problem in verdict.get("problems", []):
        console.print(Text(f"evidence: {problem['instrument']}: {problem['message']}", "yellow"), soft_wrap=True)
    guesses_printing.print_run(console, folder, verdict)
    console.print(Text.assemble("verdict: ", (verdict["verdict"], STYLES[verdict["verdict"]])))
    console.print(f"result: {paths.shown(folder)}", soft_wrap=True)
    if (folder / REPORT_FILE).is_file():
        console.print(f"report: {paths.shown(folder / REPORT_FILE)}", soft_wrap=True)
