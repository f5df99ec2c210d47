"""The folders of a run's raw files: two for each instance, open to one container each; taken back after the run.

The roles run as a user of their own, the collectors as root without its way round permissions. As root the lab hands a
role's folder to the role's user. Any other user cannot give files away: it opens both folders to its own group, and the
containers are members of that group.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from analysis.evidence.rawfiles import Places
from formats.safe_open import kind
from formats.sanitize import visible
from lab.engine.owners import ROLE_UID, ROOT
from lab.run.manifest import Removed

# Not 0o777 less the umask: a lax one would let others plant files, a strict one keep the containers out.
_OWN = 0o755
_SHARED = 0o775


def make(places: Places, instance: str) -> None:
    """Make the folders of an instance.

    Raises:
        OSError: they cannot be made.
    """
    collector, role = places.collector(instance), places.role(instance)
    collector.parent.mkdir(mode=_OWN)
    for folder in (collector, role):
        folder.mkdir(mode=_OWN)
        if os.geteuid() == ROOT:
            folder.chmod(_OWN)
        else:
            os.chown(folder, -1, os.getegid())
            folder.chmod(_SHARED)
    if os.geteuid() == ROOT:
        os.chown(role, ROLE_UID, ROLE_UID)


def seal(raw: Path) -> list[Removed]:
    """Take the raw files back from the containers, which have ended, and remove what is not a plain file of its own.

    What a role left under the name of a raw file may be a link, a named pipe or a second name of another file. Nothing
    of that is followed or opened; what was removed is given, as the manifest records it.

    Raises:
        OSError: a folder cannot be read, or a name cannot be removed.
    """
    removed: list[Removed] = []
    for name, folders, files, descriptor in os.fwalk(raw, follow_symlinks=False):
        with contextlib.suppress(PermissionError):
            _take(descriptor)
        for entry in (*folders, *files):
            status = os.stat(entry, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                with contextlib.suppress(PermissionError):
                    _take_file(entry, descriptor)
                continue
            # A folder that the role made itself is closed to a lab that is not root.
            with contextlib.suppress(PermissionError):
                os.unlink(entry, dir_fd=descriptor)
                was = "a second name of another file" if stat.S_ISREG(status.st_mode) else kind(status.st_mode)
                file = (Path(name) / entry).relative_to(raw.parent).as_posix()
                removed.append(Removed(file=visible(file), was=was))
    return sorted(removed, key=lambda each: each.file)


def _take_file(name: str, folder: int) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        _take(descriptor)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    """Take a file or folder back: as root all of it; another user cannot take what a container's user owns."""
    os.fchown(descriptor, os.geteuid(), os.getegid())
    mode = os.fstat(descriptor).st_mode
    os.fchmod(descriptor, mode & 0o755 | 0o700 if stat.S_ISDIR(mode) else mode & 0o644 | 0o600)
