"""Whether the process that makes a run still lives.

While it does, it holds a lock on a file in the run's folder. The kernel drops the lock with the process, however that
ends. The file also keeps room on the disk for the last manifest.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from formats.safe_files import open_regular

FILE = ".manifest.reserve"
_RESERVE_BYTES = 128 << 10
# The reserves that this process holds, by their folders.
_HELD: dict[Path, int] = {}


def hold_run(folder: Path) -> None:
    """Hold a run's folder, and reserve space for a manifest, so that one can still be written on a full disk.

    Raises:
        OSError: there is no space, or it is reserved already.
    """
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as stream:
            stream.write(bytes(_RESERVE_BYTES))
    except OSError:
        os.close(descriptor)
        raise
    # Without a lock, as on some network file systems, a run whose process was killed seems to go on.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    _HELD[folder] = descriptor


def release_run(folder: Path) -> None:
    """Give the space back, just before the last manifest is written."""
    (folder / FILE).unlink(missing_ok=True)
    if (descriptor := _HELD.pop(folder, None)) is not None:
        os.close(descriptor)


def is_abandoned(folder: Path) -> bool:
    """Return whether nobody holds a run that has not ended; a folder that cannot tell is taken for held."""
    try:
        with open_regular(folder / FILE) as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
