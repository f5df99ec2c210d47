"""A verdict: derived by the analysis, written for a reader, and turned into the command's exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import BadInput, ExitCode, LabError, Problem

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


def show(value: object) -> str:
    """Write a measured value for a reader: rounded, lists cut short."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        from analysis.formatting import number  # noqa: PLC0415 # as in `derive`

        return number(value, _DIGITS)
    if isinstance(value, list):
        more = f", … {len(value)} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(show, value[:_LIST_SHOWN]))}{more}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {show(inner)}" for key, inner in value.items())
    return str(value)
