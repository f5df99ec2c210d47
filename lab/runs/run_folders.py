"""The folders of runs in results/: their names, how they are made, and which is the `latest`."""

import os
import time
from pathlib import Path

from analysis.evidence import rawfiles
from formats.series import split_id
from lab import paths, terminal
from lab.errors import LabError

_SAME_SECOND_S = 0.1
# What a container or another user could write to would be theirs to replace.
_FOLDER_MODE = 0o755
# A run's folder while containers write in it: root in one of them can make programs there that run with its rights.
CLOSED = 0o700


def unwritable(error: OSError, folder: Path) -> LabError:
    """Return the error for a folder of results that cannot be written."""
    hint = f"see that {paths.shown(paths.RESULTS)} is writable, with space left"
    return LabError(f"{error.filename or folder}: {error.strerror}", hint=hint)


def make_run_folder(parent: Path, name: str) -> Path:
    """Make a run's folder, closed to other users until its raw files are sealed, and the folder of these."""
    folder = make_folder(parent, name, CLOSED)
    (folder / rawfiles.FOLDER).mkdir(mode=_FOLDER_MODE)
    return folder


def make_folder(parent: Path, name: str, mode: int = _FOLDER_MODE) -> Path:
    """Make a folder named after this second; where it exists, the next second will do."""
    while True:
        folder = parent / f"{stamp()}-{name}"
        try:
            folder.mkdir(mode=mode)
        except FileExistsError:
            time.sleep(_SAME_SECOND_S)
        else:
            return folder


def stamp() -> str:
    """Return this second, as a folder's name begins with it."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def tries_out(series: str | None) -> bool:
    """Return whether the runs of a series try settings out: no cell of a search or a matrix stands for its scenario."""
    return series is not None and split_id(series)[0] in ("search", "matrix")


def point_latest(folder: Path) -> None:
    """Point `latest` beside a run or a series point at it; relative, so that results/ can be moved."""
    link = folder.parent / "latest"
    temporary = folder.parent / f".latest.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.name)
    try:
        temporary.replace(link)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        terminal.problem(f"connlab: {link} was not set: {error.strerror}")  # a run is not lost for it
