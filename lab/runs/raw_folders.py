"""The folders of a run's raw files: two for each instance, open to one container each; taken back after the run.

The roles run as a user of their own, the collectors as root without its way round permissions. As root the lab hands a
role's folder to the role's user. Any other user cannot give files away: it opens both folders to its own group, and the
containers are members of that group.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

from analysis.evidence.rawfiles import Places
from formats.manifest import Removed
from formats.safe_files import OPEN_FOLDER, kind
from formats.sanitize import visible
from lab.engines.container_settings import ROLE_UID, ROOT

# Not 0o777 less the umask: a lax one would let others plant files, a strict one keep the containers out.
_OWN = 0o755
_SHARED = 0o775
_ANY_USER = 0o777
_WITH_RIGHTS = stat.S_ISUID | stat.S_ISGID
# A manifest names what was removed; a path may have any length.
_SHOWN_MAX = 1000


def make_raw_folders(places: Places, instance: str, *, any_user: bool = False) -> None:
    """Make the folders of an instance.

    Args:
        places: of the run.
        instance: which.
        any_user: whether its program may run as another user than the roles', and writes a log all the same.

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
    if any_user:
        # Other users cannot enter the run's folder until it is sealed, and no other container mounts this one.
        role.chmod(_ANY_USER)


def seal_raw_folders(raw: Path, *, ended: bool = True) -> list[Removed]:
    """Take the raw files back from the containers, and remove what is not a plain file of its own.

    What a role left under the name of a raw file may be a link, a named pipe or a second name of another file. Nothing
    of that is followed or opened; what was removed is given, as the manifest records it. Then other users may look into
    the run's folder, unless something is left in it that a lab that is not root could neither take nor remove.

    Unless all has `ended`, something may still write there, and the run's folder stays closed, too.

    Raises:
        OSError: a folder cannot be read or moves meanwhile, or a name cannot be removed.
    """
    removed: list[Removed] = []
    left: list[str] = []
    path: list[str] = [raw.name]
    above: list[tuple[tuple[int, int], list[str]]] = []
    folder = os.open(raw, OPEN_FOLDER)
    try:
        with contextlib.suppress(PermissionError):
            _take(folder)
        inner = _seal_folder(folder, path, removed, left)
        # A role nests folders as deep as it likes: only one is open at a time, and nothing here calls itself.
        while inner or above:
            if not inner:
                here, inner = above.pop()
                folder = _moved(folder, os.open("..", OPEN_FOLDER, dir_fd=folder))
                if _identity(folder) != here:
                    raise OSError(errno.EBUSY, "a folder was moved away", "/".join(path))
                path.pop()
            elif (entered := _entered(inner[-1], folder)) is None:
                left.append(inner.pop())
            else:
                path.append(inner.pop())
                above.append((_identity(folder), inner))
                folder = _moved(folder, entered)
                inner = _seal_folder(folder, path, removed, left)
    finally:
        os.close(folder)
    if ended and not left:
        with contextlib.suppress(PermissionError):
            raw.parent.chmod(_OWN)
    return sorted(removed, key=lambda each: each.file)


def _seal_folder(folder: int, path: list[str], removed: list[Removed], left: list[str]) -> list[str]:
    """Seal what is in a folder, and return the folders in it."""
    inner = []
    for name in os.listdir(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        plain, alone = stat.S_ISREG(status.st_mode), status.st_nlink == 1
        if stat.S_ISDIR(status.st_mode):
            inner.append(name)
        elif not (plain and alone) or (not _taken(name, folder) and status.st_mode & _WITH_RIGHTS):
            try:
                os.unlink(name, dir_fd=folder)
            except PermissionError:
                # A folder that the role made itself is closed to a lab that is not root.
                left.append(name)
                continue
            was = kind(status.st_mode)
            if plain:
                was = "a program with its owner's rights" if alone else "a second name of another file"
            removed.append(Removed(file=visible(_short("/".join((*path, name)))), was=was))
    return inner


def _moved(former: int, folder: int) -> int:
    os.close(former)
    return folder


def _entered(name: str, folder: int) -> int | None:
    """Open a folder in another one and take it back; None for one that is closed to a lab that is not root."""
    try:
        entered = os.open(name, OPEN_FOLDER, dir_fd=folder)
    except PermissionError:
        return None
    with contextlib.suppress(PermissionError):
        _take(entered)
    # What it lets nobody search has no way back either.
    if os.access("..", os.X_OK, dir_fd=entered, effective_ids=True):
        return entered
    os.close(entered)
    return None


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def _short(path: str) -> str:
    half = _SHOWN_MAX // 2
    return path if len(path) <= _SHOWN_MAX else f"{path[:half]}…{path[-half:]}"


def _taken(name: str, folder: int) -> bool:
    """Take a file back, and return whether this user may."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except PermissionError:
        return False
    try:
        _take(descriptor)
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True


def _take(descriptor: int) -> None:
    """Take a file or folder back: as root all of it; another user cannot take what a container's user owns."""
    os.fchown(descriptor, os.geteuid(), os.getegid())
    mode = os.fstat(descriptor).st_mode
    os.fchmod(descriptor, mode & 0o755 | 0o700 if stat.S_ISDIR(mode) else mode & 0o644 | 0o600)
