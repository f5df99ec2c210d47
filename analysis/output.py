"""Writes derived files. The run's folder may come from anybody: no link in it leads a writer elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make the folder of derived files, if it is not there; a link in its place is removed."""
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir(exist_ok=True)


def write(path: Path, content: str) -> None:
    """Write a file so that a reader never sees half of it, and an older one stays until the new one is whole."""
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name under which to write a file, which takes its place when it is whole."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    yield partial
    partial.replace(path)
