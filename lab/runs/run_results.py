"""Derives a run's verdict, writes its report and the index of all runs, and opens them."""

import contextlib
import errno
import os
import sys
import tempfile
import webbrowser
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis import command_hints, compare, derivation
from analysis.expressions.values import Unknown
from analysis.formatting import format_number
from analysis.output import DerivedFile
from analysis.reports import index, run_report
from analysis.steps import Steps
from analysis.verdicts import derived
from formats.manifest import FILE, Manifest, load_manifest
from lab import paths, terminal
from lab.errors import BadInput, ExitCode, Interruption, LabError, Problem
from lab.runs.run_folders import tries_out
from lab.signals import interruptible

_Model = TypeVar("_Model", bound=DerivedFile)


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
# What a folder says in which this user may not write.
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_LIST_SHOWN = 6
_DIGITS = 4


def derive_run(folder: Path, steps: Steps | None = None) -> dict[str, Any]:
    """Derive everything from a run's raw files and return its verdict, as derived/verdict.json has it.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: the program that reads captures does not work, or the run is too large for this machine.
    """
    try:
        return derivation.analyse(folder, steps).model_dump(mode="json", by_alias=True)
    except derivation.ManifestError as error:
        raise BadInput(Problem(str(error))) from None
    except (derivation.FlowsError, derivation.TooLargeError) as error:
        raise LabError(f"nothing was derived, and all files are as they were: {error}") from None


def read_derived(folder: Path, model: type[_Model]) -> _Model:
    """Read a file of a run's derived/; where it is none that this version writes, say so and derive everything again.

    Raises:
        BadInput, LabError: as `derive_run`.
    """
    try:
        return derived.read(folder, model)
    except derived.DerivedError as error:
        terminal.problem(f"{error.what}; it is derived again")
    derive_run(folder)
    return derived.read(folder, model)


def derive_series(folder: Path) -> dict[str, Any]:
    """Judge a series by its runs' derived files and return its verdict, as its own derived/verdict.json has it.

    Raises:
        LabError: its runs cannot be compared.
    """
    try:
        return compare.judge_series(folder).model_dump(mode="json", by_alias=True)
    except compare.CompareError as error:
        raise LabError(str(error)) from None


def exit_code(verdict: Mapping[str, Any]) -> ExitCode:
    """Return the exit code that a verdict stands for."""
    return _EXIT_CODES[verdict["verdict"]]


def format_figure(value: object) -> str:
    """Write a measured value for a reader: rounded, lists cut short."""
    if value is None or isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format_number(value, _DIGITS)
    if isinstance(value, list):
        more = f", … {len(value)} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(format_figure, value[:_LIST_SHOWN]))}{more}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {format_figure(inner)}" for key, inner in value.items())
    return str(value)


def print_judgement(
    console: Console, status: str, title: Text | str, measured: Mapping[str, str], why: str | None
) -> None:
    """Print what became of a prediction: its status, what was measured, and why it is not decided."""
    console.print(Text.assemble((f"{status:<7} ", STYLES[status]), title), soft_wrap=True)
    for name, value in measured.items():
        console.print(f"        {name} = {value}", style="dim", soft_wrap=True)
    if why:
        console.print(f"        why: {why}", style="yellow", soft_wrap=True)


def format_figures(values: Mapping[str, object]) -> dict[str, str]:
    """Write measured values for a reader, by their names."""
    return {name: format_figure(value) for name, value in values.items()}


def plain_table(*columns: str, whole: Collection[str] = ()) -> Table:
    """Return a table without a frame; `whole` are columns whose cells stay on one line."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="fold")
    return table


def analyse_run(folder: Path) -> dict[str, Any]:
    """Derive everything from a run's raw files, write its report, and return its verdict.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: captures cannot be read, or what was derived cannot be written or read.
        Interruption: a signal came; derived/ has what was written by then, and no verdict.
    """
    steps, profiled = Steps(), _profiled(folder)
    try:
        with interruptible():  # a second signal, after a run that one has ended, ends the analysis alone
            with steps.step("analysis"):
                verdict = derive_run(folder, steps)
            _keep(steps, profiled, folder)
            with steps.step("report"):
                write_report(folder)
            _keep(steps, profiled, folder)
    except (Interruption, OSError) as error:
        again = command_hints.make_command_here("analyse", {"RUN": command_hints.name_folder(folder)})
        reason = f"{error.filename or paths.shown(folder)}: {error.strerror}" if isinstance(error, OSError) else error
        what = f"{reason} during the analysis; what was recorded stays in {paths.shown(folder)}"
        kind = LabError if isinstance(error, OSError) else Interruption
        first = "move that folder away, then " if isinstance(error, IsADirectoryError) else ""
        raise kind(what, hint=f"{first}analyse it again: {again}") from error
    return verdict


def _profiled(folder: Path) -> Manifest | None:
    """Return the manifest of a run that is to say how long its analysis took, and does not say it yet."""
    with contextlib.suppress(OSError, ValueError):
        found = load_manifest(folder)
        if found.profile is not None and "analysis" not in found.profile:
            return found
    return None


def _keep(steps: Steps, profiled: Manifest | None, folder: Path) -> None:
    """Add steps to a run's manifest: once those that the report shows, and once with the report itself."""
    if profiled is not None and profiled.profile is not None:
        profiled.profile |= steps.ms
        profiled.save(folder)


def write_report(folder: Path) -> Path:
    """Write the report of a run that was analysed, and the index.

    Raises:
        LabError: what the analysis derived cannot be read.
    """
    try:
        page = run_report.write(folder)
    except derived.DerivedError as error:
        raise LabError(error.what) from None
    if paths.RESULTS in folder.parents:
        index.write(paths.RESULTS)
    return page


def ensure_report(folder: Path) -> Path:
    """Write the report of any run; one that was not analysed, or by another version, is analysed first.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: as `analyse_run`.
    """
    try:
        return write_report(folder)
    except LabError as error:
        terminal.problem(f"{error.what}; it is derived again")
    derive_run(folder)
    return write_report(folder)


def report_to_open(folder: Path) -> Path:
    """Return the report of any run as `ensure_report`; where it cannot be written, it lies outside the run's folder.

    Raises:
        BadInput, LabError: as `ensure_report`.
    """
    try:
        return ensure_report(folder)
    except OSError as error:
        if error.errno not in CLOSED:
            raise
    try:
        page = Path(tempfile.mkdtemp(prefix="connlab-")) / run_report.FILE
        page.write_text(run_report.render(folder), encoding="utf-8")
    except derived.DerivedError as error:
        raise LabError(str(error)) from None
    return page


def newest_run() -> Path:
    """Return the folder of the newest run; cells of searches and matrices are passed over, if there is another.

    Raises:
        BadInput: there is none.
    """
    found = [path.parent for path in paths.RESULTS.glob(f"*/*/{FILE}") if not path.parent.is_symlink()]
    if not found:
        what = f"no run below {paths.shown(paths.RESULTS)}"
        raise BadInput(
            Problem(
                what, hint=f"make one: {command_hints.make_command_here('run', {'SCENARIO': 'accept-queue-overflow'})}"
            )
        )
    latest = sorted(found, key=lambda folder: folder.name, reverse=True)
    return next((folder for folder in latest if not _tries_out(folder)), latest[0])


def _tries_out(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return tries_out(load_manifest(folder).series)
    return False


def has_screen() -> bool:
    """Return whether a browser would be seen by anybody."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_in_browser(page: Path) -> bool:
    """Open a page in the user's browser, if there is one on this screen; return whether there was."""
    if not has_screen():
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False
