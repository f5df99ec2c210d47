"""Writes a file so that a reader sees the old one or the new one, whole."""

import os
from pathlib import Path


def atomic_write(file: Path, text: str) -> None:
    """Replace a file's content; a link in its place is replaced, not followed.

    Raises:
        OSError: it cannot be written.
    """
    temporary = file.with_name(f".{file.name}.part")
    temporary.unlink(missing_ok=True)  # left behind by a writer that died
    with temporary.open("x") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)
