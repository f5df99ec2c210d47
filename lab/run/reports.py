"""A run's report and the index of all runs: written by analysis.reports.run_report, found and opened here."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from analysis.steps import Steps
from formats.manifest import FILE, Manifest, load_manifest
from lab import paths, suggested, terminal
from lab.errors import BadInput, Interruption, LabError, Problem
from lab.run import verdicts
from lab.run.session import tries_out
from lab.run.signals import interruptible

# What a folder says in which this user may not write.
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


def derive(folder: Path) -> dict[str, Any]:
    """Derive everything from a run's raw files, write its report, and give its verdict.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: captures cannot be read, or what was derived cannot be written or read.
        Interruption: a signal came; derived/ has what was written by then, and no verdict.
    """
    steps, profiled = Steps(), _profiled(folder)
    try:
        with interruptible():  # a second signal, after a run that one has ended, ends the analysis alone
            with steps.step("analysis"):
                verdict = verdicts.derive(folder, steps)
            _keep(steps, profiled, folder)
            with steps.step("report"):
                write(folder)
            _keep(steps, profiled, folder)
    except (Interruption, OSError) as error:
        again = suggested.make("analyse", {"RUN": suggested.folder(folder)})
        reason = f"{error.filename or paths.shown(folder)}: {error.strerror}" if isinstance(error, OSError) else error
        what = f"{reason} during the analysis; what was recorded stays in {paths.shown(folder)}"
        kind = LabError if isinstance(error, OSError) else Interruption
        first = "move that folder away, then " if isinstance(error, IsADirectoryError) else ""
        raise kind(what, way_on=f"{first}analyse it again: {again}") from error
    return verdict


def _profiled(folder: Path) -> Manifest | None:
    """Give the manifest of a run that is to say how long its analysis took, and does not say it yet."""
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


def write(folder: Path) -> Path:
    """Write the report of a run that was analysed, and the index.

    Raises:
        LabError: what the analysis derived cannot be read.
    """
    # It brings duckdb, which a run needs only at its end.
    from analysis.reports import run_report  # noqa: PLC0415

    try:
        page = run_report.write(folder)
    except run_report.ReportError as error:
        raise LabError(str(error)) from None
    _write_index(folder)
    return page


def _write_index(folder: Path) -> None:
    from analysis.reports import run_report  # noqa: PLC0415 # as above

    if paths.RESULTS in folder.parents:
        run_report.write_index(paths.RESULTS)


def of_run(folder: Path) -> Path:
    """Write the report of any run; one that was not analysed, or by another version, is analysed first.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: as `derive`.
    """
    from analysis.reports import run_report  # noqa: PLC0415 # as above

    try:
        page = run_report.write(folder)
    except run_report.ReportError as error:
        terminal.problem(f"{error.what}; it is derived again")
        verdicts.derive(folder)
        return write(folder)
    _write_index(folder)
    return page


def to_open(folder: Path) -> Path:
    """Return the report of any run as `of_run`; where it cannot be written, it lies outside the run's folder.

    Raises:
        BadInput, LabError: as `of_run`.
    """
    from analysis.reports import run_report  # noqa: PLC0415 # as above

    try:
        return of_run(folder)
    except OSError as error:
        if error.errno not in CLOSED:
            raise
    try:
        page = Path(tempfile.mkdtemp(prefix="connlab-")) / verdicts.REPORT_FILE
        page.write_text(run_report.render(folder), encoding="utf-8")
    except run_report.ReportError as error:
        raise LabError(str(error)) from None
    return page


def newest() -> Path:
    """The folder of the run that began last; cells of searches and matrices are passed over, if there is another.

    Raises:
        BadInput: there is none.
    """
    found = [path.parent for path in paths.RESULTS.glob(f"*/*/{FILE}") if not path.parent.is_symlink()]
    if not found:
        what = f"no run below {paths.shown(paths.RESULTS)}"
        raise BadInput(Problem(what, way_on="make one: make run SCENARIO=accept-queue-overflow"))
    latest = sorted(found, key=lambda folder: folder.name, reverse=True)
    return next((folder for folder in latest if not _tries_out(folder)), latest[0])


def _tries_out(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return tries_out(load_manifest(folder).series)
    return False


def has_screen() -> bool:
    """Whether a browser would be seen by anybody."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show(page: Path) -> bool:
    """Open a page in the user's browser, if there is one on this screen; say whether there was."""
    if not has_screen():
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False
