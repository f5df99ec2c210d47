"""A run's verdict: derived by analysis, printed here, and turned into the command's exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from lab import ledger, paths
from lab.errors import BadInput, ExitCode, LabError, Problem
from lab.lacks import Lacks
from lab.manifest import FILE
from lab.nearest import did_you_mean
from lab.series.record import FILE as SERIES_FILE

VERDICT_FILE = Path("derived") / "verdict.json"
REPORT_FILE = Path("report.html")

_EXIT_CODES = {
    "reproduced": ExitCode.REPRODUCED,
    "not-reproduced": ExitCode.NOT_REPRODUCED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}
STYLES = {
    "reproduced": "bold green",
    "not-reproduced": "bold red",
    "inconclusive": "bold yellow",
    "true": "green",
    "false": "red",
    "unknown": "yellow",
}
_LIST_SHOWN = 6
_DIGITS = 4
_NO_MANIFEST = "a run's folder does, and without it nothing of a run can be read"


def derive(folder: Path) -> dict[str, Any]:
    """Derive everything from a run's raw files and give its verdict, as derived/verdict.json has it.

    Raises:
        BadInput: the folder is no run's.
        LabError: the program that reads captures does not work, or the verdict is none that the lab knows.
    """
    # The analysis brings numpy and duckdb, which a run needs only at its end.
    import analysis  # noqa: PLC0415

    try:
        analysis.analyse(folder)
    except analysis.ManifestError as error:
        raise BadInput(Problem(str(error))) from None
    except analysis.FlowsError as error:
        raise LabError(f"nothing was derived, and all files are as they were: {error}") from None
    verdict = read(folder)
    if verdict.get("verdict") not in _EXIT_CODES:
        raise LabError(f"{folder / VERDICT_FILE} has no verdict that the lab knows")
    return verdict


def read(folder: Path) -> dict[str, Any]:
    """Give what derived/verdict.json says, of a run or of a series."""
    return dict(json.loads((folder / VERDICT_FILE).read_bytes()))


def derive_series(folder: Path) -> dict[str, Any]:
    """Judge a series by its runs' derived files and give its verdict, as its own derived/verdict.json has it.

    Raises:
        LabError: its runs cannot be compared.
    """
    from analysis import compare  # noqa: PLC0415 # as in `derive`

    try:
        compare.series_verdict(folder)
    except compare.CompareError as error:
        raise LabError(str(error)) from None
    return read(folder)


def exit_code(verdict: Mapping[str, Any]) -> ExitCode:
    """Give the exit code that a verdict stands for."""
    return _EXIT_CODES[verdict["verdict"]]


def find_run(name: str) -> Path:
    """Find a run by its folder, by `<scenario>/<run-id>`, or by `<scenario>` for its latest run.

    Raises:
        BadInput: there is no such run.
    """
    results = paths.RESULTS
    for folder in (Path(name), results / name, results / name / "latest"):
        if name and (folder / FILE).is_file():
            return folder.resolve()
    for folder in (Path(name), results / "series" / name):
        if name and (folder / SERIES_FILE).is_file():
            way_on = f"give one of its runs, as {paths.shown(folder / SERIES_FILE)} names them, or make compare MATRIX="
            raise BadInput(Problem(f"'{name}' is a series of runs", way_on=f"{way_on}{folder.resolve().name}"))
    for folder in (Path(name), results / name):
        if name and folder.is_dir():
            inside = max(folder.glob(f"*/{FILE}"), default=None)
            way_on = f"give one of the runs in it, such as {paths.shown(inside.parent)}" if inside else _NO_MANIFEST
            raise BadInput(Problem(f"{paths.shown(folder)} holds no {FILE}", way_on=way_on))
    known = [folder.parent.name for folder in results.glob("*/latest")]
    hint = did_you_mean(name, known) or "give the folder that holds manifest.json"
    raise BadInput(Problem(f"no run at '{name}'" if name else "no run is named", way_on=hint))


def print_verdict(console: Console, verdict: Mapping[str, Any], folder: Path) -> None:
    """Print what came out.

    The ledger, each prediction with what was measured, what the instruments lack, the verdict, and where it all lies.
    """
    from lab.lesson import reveal  # noqa: PLC0415 # brings the analysis; as in `derive`

    lacks = Lacks(verdict.get("problems", []))
    ledger.print_ledger(console, folder, lacks)
    for one in verdict["predictions"]:
        status = (f"{one['status']:<8}", STYLES[one["status"]])
        console.print(Text.assemble(status, (one["id"], "bold"), f": {one['says']}"), soft_wrap=True)
        for name, value in one["measured"].items():
            console.print(f"        {name} = {show(value)}", style="dim", soft_wrap=True)
        if one.get("why"):
            console.print(f"        why: {lacks.short(one['why'])}", style="yellow", soft_wrap=True)
    for problem in verdict.get("problems", []):
        console.print(Text(f"evidence: {problem['instrument']}: {problem['message']}", "yellow"), soft_wrap=True)
    reveal.print_run(console, folder, verdict)
    console.print(Text.assemble("verdict: ", (verdict["verdict"], STYLES[verdict["verdict"]])))
    console.print(f"result: {paths.shown(folder)}", soft_wrap=True)
    if (folder / REPORT_FILE).is_file():
        console.print(f"report: {paths.shown(folder / REPORT_FILE)}", soft_wrap=True)


def show(value: object) -> str:
    """Write a measured value for a reader: rounded, lists cut short."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        from analysis.words import number  # noqa: PLC0415 # as in `derive`

        return number(value, _DIGITS)
    if isinstance(value, list):
        more = f", … {len(value)} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(show, value[:_LIST_SHOWN]))}{more}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {show(inner)}" for key, inner in value.items())
    return str(value)
