"""The one way to open a file that somebody else may have put there, and to replace one that others read.

Only a regular file is opened, of a size that can be read. A reader sees the old content or the new one, whole.

A run's folder may come from anybody, and a role writes into its own part of it. Under a file's name may stand a link to
a file that only root can read, a named pipe that nobody ever writes to, or a device without an end.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# A manifest has some 100 KiB, and the largest JSON that is derived, of a run of 100,000 users, some MiB.
_BYTES_MAX = 256 << 20

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, by its name alone: no link is followed, and nothing is opened but a regular file.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"is {kind(mode)}", str(path))
    return os.fdopen(descriptor, "rb")


def open_within(folder: Path, file: Path) -> BinaryIO:
    """Open a file of a run's folder: no folder on its way there may be a link either.

    Raises:
        OSError: as `open_regular`.
    """
    for parent in reversed(file.parents[:-1]):
        if (folder / parent).is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", str(folder / parent))
    return open_regular(folder / file)


def read_regular(path: Path) -> bytes:
    """Return the content of a JSON document of a run or a series.

    Raises:
        OSError: as `open_regular`, or it is too large for one.
    """
    with open_regular(path) as file:
        return _content(file, path)


def read_within(folder: Path, file: Path) -> bytes:
    """Return the content of a JSON document of a run's folder.

    Raises:
        OSError: as `open_within`, or it is too large for one.
    """
    with open_within(folder, file) as opened:
        return _content(opened, folder / file)


def _content(file: BinaryIO, path: Path) -> bytes:
    content = file.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise OSError(errno.EFBIG, f"has more than {_BYTES_MAX >> 20} MiB", str(path))
    return content


def kind(mode: int) -> str:
    """Return what stands under a name, by its st_mode."""
    return _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")


_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def open_below(root: Path, path: str) -> BinaryIO:
    """Open a file below a folder, each part of its path by its name alone, so that no link leads out of the folder.

    Links on the way to the folder itself are followed.

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
            inner = os.open(folder, OPEN_FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


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
