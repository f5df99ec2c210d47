"""A notebook over a run: a copy of the lab's own, opened by marimo, which has an environment of its own.

The run may come from anybody. Nothing in its folder is executed: the copy lies in a new folder of the lab's cache, and
that is where marimo works and looks for modules and settings.
"""

import os
import shutil
import tempfile
from pathlib import Path

from lab import paths, setup_scripts
from lab.errors import LabError
from lab.runs import run_results

_PATTERN = paths.ROOT / "notebook" / "run.py"
_COPIES = paths.CACHE / "notebook"
_MARIMO = paths.CACHE / "venv-notebook" / "bin" / "marimo"


def copy_for(folder: Path) -> Path:
    """See to it that a run has what a notebook reads, and give a new copy of the lab's notebook.

    Raises:
        BadInput: the folder is not that of a run.
        LabError: its files cannot be derived, or the copy cannot be written.
    """
    run_results.ensure_report(folder)
    try:
        _COPIES.mkdir(parents=True, exist_ok=True)
        notebook = Path(tempfile.mkdtemp(dir=_COPIES)) / "notebook.py"
        shutil.copyfile(_PATTERN, notebook)
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}") from None
    return notebook


def install() -> None:
    """See to it that marimo's environment is there; what is said of that goes to standard error.

    Raises:
        LabError: it cannot be installed.
    """
    if setup_scripts.run("python.sh", "notebook"):
        raise LabError("the notebook's environment is missing", hint="the lines above say what to do")


def command(notebook: Path, folder: Path) -> list[str]:
    """Return the command that opens a notebook over a run; it binds 127.0.0.1 alone, and prints its address."""
    options = [] if run_results.has_screen() else ["--headless"]
    return [str(_MARIMO), "edit", "--skip-update-check", *options, str(notebook), *over(folder)]


def over(folder: Path) -> list[str]:
    """Return the arguments by which a notebook learns which run it is over."""
    return ["--", "--run", str(folder.resolve())]


def open_(notebook: Path, folder: Path) -> None:
    """Become marimo, in the notebook's folder."""
    arguments = command(notebook, folder)
    os.chdir(notebook.parent)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.execv(arguments[0], arguments)  # noqa: S606 # a program of the lab's own environment
