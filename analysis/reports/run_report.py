"""The report of a run: one HTML page in its folder.

In: manifest.json and derived/. Out: report.html, and the index of all runs.
It must not know raw files.
"""

from __future__ import annotations

from pathlib import Path

from analysis.output import write as write_file
from analysis.reports import index, observation, page
from analysis.reports.run_record import ReportError, read, recorded
from analysis.verdicts.derived import DerivedError

__all__ = ["FILE", "ReportError", "html", "write", "write_index"]

FILE = Path("report.html")
write_index = index.write


def write(run_dir: Path) -> Path:
    """Write the report into a run's folder.

    Args:
        run_dir: the folder with manifest.json and derived/.

    Returns:
        The page.

    Raises:
        ReportError: the folder is not that of a run, or was not analysed by this version.
        OSError: the page cannot be written.
    """
    path = run_dir / FILE
    write_file(path, html(run_dir))
    return path


def html(run_dir: Path, linked: str | None = None) -> str:
    """Give a run's report; `linked` is as `rendering.render` takes it.

    Raises:
        ReportError: as `write`.
    """
    content = recorded(run_dir)
    if content.get("observed") is None:
        return page.html(read(run_dir), linked)
    try:
        return observation.html(run_dir, content, linked)
    except DerivedError as error:
        raise ReportError(error.what, run_dir) from None
