"""Opens a file below a folder: every part of its path by its name alone, so that no link leads out of the folder."""

import os
from pathlib import Path
from typing import BinaryIO

from formats.safe_open import open_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_below(root: Path, path: str) -> BinaryIO:
    """Open a file below a folder; links on the way to the folder itself are followed.

    Raises:
        OSError: there is no such file, something on the way is a link, or the path leads elsewhere.
    """
    *folders, name = _parts(path)
    descriptor = _entered(root, folders)
    try:
        return open_regular(Path(f"/proc/self/fd/{descriptor}") / name)
    finally:
        os.close(descriptor)


def names_below(root: Path, path: str) -> list[str]:
    """Return the names in a folder, in their order, folders with a `/` at their end; what is hidden is left out.

    Raises:
        OSError: as `open_below`.
    """
    descriptor = _entered(root, _parts(path))
    try:
        with os.scandir(descriptor) as found:
            plain = [one for one in found if not one.name.startswith(".") and not one.is_symlink()]
            return sorted(one.name + "/" * one.is_dir(follow_symlinks=False) for one in plain)
    finally:
        os.close(descriptor)


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if any(part.startswith(".") or not part or "\0" in part for part in parts):
        raise FileNotFoundError(path)
    return parts


def _entered(root: Path, folders: list[str]) -> int:
    """Enter a folder, part by part; the caller closes its descriptor."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for folder in folders:
        try:
            inner = os.open(folder, _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
