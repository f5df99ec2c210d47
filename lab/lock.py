"""One run at a time on a machine: containers have fixed names, and two loads would spoil each other's figures."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError

_WAY_ON = "wait until it has ended, or end it with Ctrl-C or 'kill {pid}'"


@dataclass(frozen=True)
class Holder:
    """Who holds the lock: process, what it does, since when, and the run's folder."""

    pid: int
    what: str
    since: str
    folder: str | None


class Lock:
    """The lock while it is held."""

    def __init__(self, descriptor: int, what: str, dead: Holder | None) -> None:
        self._descriptor = descriptor
        self._what = what
        self._part: str | None = None
        self._since = time.strftime("%Y-%m-%d %H:%M:%S")
        self.dead = dead

    def begin(self, part: str) -> None:
        """Say which part of a longer command is at work from now on, such as one scenario of all."""
        self._part = part
        self.note()

    def note(self, run: str | None = None, folder: Path | None = None) -> None:
        """Write into the file who holds it, for those who are refused, and for who cleans up after a death.

        Args:
            run: which one is at work, where there is more than one.
            folder: the run's.
        """
        parts = ", ".join(filter(None, (self._part, run)))
        what = f"{self._what}: {parts}" if parts else self._what
        holder = Holder(os.getpid(), what, self._since, str(folder) if folder else None)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(asdict(holder)).encode(), 0)

    def clear(self) -> None:
        """Say that the holder has come to its end and left nothing behind."""
        os.ftruncate(self._descriptor, 0)


def lock_file() -> Path:
    """Give the file that every user of the machine locks."""
    shared = Path("/run/lock")
    folder = shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    return folder / "connlab.lock"


@contextlib.contextmanager
def machine_lock(what: str, file: Path | None = None, *, held: Lock | None = None) -> Iterator[Lock]:
    """Hold the machine's lock.

    The kernel drops it with the process, however that ends. What a dead holder noted is in `Lock.dead`.

    Args:
        what: what holds it, for those who are refused.
        file: another file than the machine's.
        held: the lock that a longer command holds already, of which this is a part; it holds it still afterwards.

    Raises:
        LabError: someone else holds it; the message says who.
    """
    if held:
        held.begin(what)
        yield held
        return
    descriptor = _open(file or lock_file())
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(_read(descriptor)) from None
        lock = Lock(descriptor, what, _read(descriptor))
        lock.note()
        yield lock
        lock.clear()
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    # Without O_CREAT first: the kernel's protected_regular refuses it, even to root, on another user's file.
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT):
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            with contextlib.suppress(PermissionError):
                os.fchmod(descriptor, 0o666)  # whatever the umask: other users' runs must see it
            return descriptor
    raise LabError(f"the lock file {file} cannot be made", way_on=f"see that {file.parent} is a writable folder")


def _read(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return None  # empty, or half-written by a process that died


def _refusal(holder: Holder | None) -> LabError:
    if holder is None:
        return LabError("another run of the lab is at work on this machine", way_on="wait until it has ended")
    what = f"{holder.what} is at work on this machine since {holder.since} (process {holder.pid})"
    return LabError(what, way_on=_WAY_ON.format(pid=holder.pid))
