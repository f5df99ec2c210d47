"""A run's notebook: a copy beside the run, opened by marimo, which has an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab import paths, reports
from lab.errors import LabError

FILE = Path("notebook.py")
_PATTERN = paths.ROOT / "notebook" / "run.py"
_SETUP = paths.ROOT / "setup" / "python.sh"
_STDERR = 2
_MARIMO = paths.ROOT / ".venv-notebook" / "bin" / "marimo"


def beside(folder: Path) -> Path:
    """See to it that a run has a notebook, and what it reads; one that is there already stays as the user left it.

    Raises:
        BadInput: the folder is no run's.
        LabError: its files cannot be derived or written.
    """
    reports.of_run(folder)
    notebook = folder / FILE
    if not notebook.exists():
        try:
            shutil.copyfile(_PATTERN, notebook)
        except OSError as error:
            raise LabError(f"{notebook}: {error.strerror}") from None
    return notebook


def install() -> None:
    """See to it that marimo's environment is there; what is said of that goes to standard error.

    Raises:
        LabError: it cannot be installed.
    """
    if subprocess.run([str(_SETUP), "notebook"], stdout=_STDERR, check=False).returncode != 0:
        raise LabError("the notebook's environment is missing", way_on="the lines above say what to do")


def command(notebook: Path) -> list[str]:
    """Give the command that opens a notebook; it binds 127.0.0.1 alone, and prints its address."""
    options = [] if reports.has_screen() else ["--headless"]
    return [str(_MARIMO), "edit", "--skip-update-check", *options, str(notebook)]


def open_(notebook: Path) -> None:
    """Become marimo."""
    arguments = command(notebook)
    os.execv(arguments[0], arguments)  # noqa: S606 # a program of the lab's own environment
