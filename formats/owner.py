"""Whether the process that makes a run still lives.

While it does, it holds a lock on a file in the run's folder. The kernel drops the lock with the process, however that
ends. The file also keeps room on the disk for the last manifest.
"""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

from formats.safe_open import open_regular

if TYPE_CHECKING:
    from pathlib import Path

FILE = ".manifest.reserve"


def is_gone(folder: Path) -> bool:
    """Return whether nobody holds a run that has not ended; a folder that cannot tell is taken for held."""
    try:
        with open_regular(folder / FILE) as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
