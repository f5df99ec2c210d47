"""A verdict: derived by the analysis, written for a reader, and turned into the command's exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from analysis.expressions.values import Unknown
from analysis.formatting import number
from analysis.steps import Steps
from lab import terminal
from lab.errors import BadInput, ExitCode, LabError, Problem

_Model = TypeVar("_Model", bound=BaseModel)

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
    "not-applicable": "dim",
}
_LIST_SHOWN = 6
_DIGITS = 4


def derive(folder: Path, steps: Steps | None = None) -> dict[str, Any]:
    """Derive everything from a run's raw files and give its verdict, as derived/verdict.json has it.

    Args:
        folder: the run's.
        steps: gets the steps of the analysis.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: the program that reads captures does not work, or the run is too large for this machine.
    """
    # The analysis brings numpy and duckdb, which a run needs only at its end.
    from analysis import derivation  # noqa: PLC0415

    try:
        return derivation.analyse(folder, steps).model_dump(mode="json", by_alias=True)
    except derivation.ManifestError as error:
        raise BadInput(Problem(str(error))) from None
    except (derivation.FlowsError, derivation.TooLargeError) as error:
        raise LabError(f"nothing was derived, and all files are as they were: {error}") from None


def read(folder: Path, file: Path, model: type[_Model]) -> _Model:
    """Give a file of a run's derived/; where it is none that this version writes, say so and derive everything again.

    Args:
        folder: the run's.
        file: its place in the folder.
        model: what the file is written from.

    Raises:
        BadInput, LabError: as `derive`.
    """
    from analysis.verdicts import derived  # noqa: PLC0415 # as in `derive`

    try:
        return derived.read(folder, file, model)
    except derived.DerivedError as error:
        terminal.problem(f"{error.what}; it is derived again")
        derive(folder)
        return derived.read(folder, file, model)


def derive_series(folder: Path) -> dict[str, Any]:
    """Judge a series by its runs' derived files and give its verdict, as its own derived/verdict.json has it.

    Raises:
        LabError: its runs cannot be compared.
    """
    from analysis import compare  # noqa: PLC0415 # as in `derive`

    try:
        return compare.judge_series(folder).model_dump(mode="json", by_alias=True)
    except compare.CompareError as error:
        raise LabError(str(error)) from None


def exit_code(verdict: Mapping[str, Any]) -> ExitCode:
    """Give the exit code that a verdict stands for."""
    return _EXIT_CODES[verdict["verdict"]]


def show(value: object) -> str:
    """Write a measured value for a reader: rounded, lists cut short."""
    if value is None or isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value, _DIGITS)
    if isinstance(value, list):
        more = f", … {len(value)} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(show, value[:_LIST_SHOWN]))}{more}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {show(inner)}" for key, inner in value.items())
    return str(value)
