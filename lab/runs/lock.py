"""One run at a time on a machine: containers have fixed names, and two loads would spoil each other's figures.

The lock file lies in a folder that all users share. It is empty: anybody may lock it, nobody reads it, and the kernel
says which process holds the lock. What that process does stands in a note in this checkout, where other users cannot
write.
"""

import contextlib
import fcntl
import json
import os
import pwd
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from formats.safe_files import atomic_write
from formats.sanitize import visible
from lab import paths
from lab.errors import LabError

_SHARED = Path("/run/lock")
_FALLBACK = Path("/tmp")  # noqa: S108 # not TMPDIR, which may differ from user to user
_NO_TRAP = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no FIFO waited for
# For a holder that is at its end: its note goes before its lock, which a child just forked may share until it is a
# program of its own.
_ENDING_S = 0.5
_LOOK_S = 0.02
_HINT = "wait until it has ended, or end it with Ctrl-C or 'kill {pid}'"


@dataclass(frozen=True)
class Holder:
    """Who holds the lock, by its own note.

    Attributes:
        since: local time.
        folder: the run's, below results/: `<scenario>/<run-id>`; None while there is none.
    """

    pid: int
    what: str
    since: str
    folder: str | None


class Lock:
    """The lock while it is held; `dead` is the note of a holder of this checkout that did not come to its end."""

    def __init__(self, what: str, dead: Holder | None) -> None:
        self._what = what
        self._part: str | None = None
        self._since = time.strftime("%Y-%m-%d %H:%M:%S")
        self.dead = dead

    def begin(self, part: str) -> None:
        """Note which part of a longer command is at work from now on, such as one scenario of all."""
        self._part = part
        self.note()

    def note(self, run: str | None = None, folder: Path | None = None) -> None:
        """Note who holds the lock, for those who are refused, and for who cleans up after a death."""
        parts = ", ".join(filter(None, (self._part, run)))
        what = f"{self._what}: {parts}" if parts else self._what
        below = str(folder.relative_to(paths.RESULTS)) if folder else None
        with contextlib.suppress(OSError):  # a checkout that cannot be written has no run to clear up after
            note_file().parent.mkdir(exist_ok=True)
            atomic_write(note_file(), json.dumps(asdict(Holder(os.getpid(), what, self._since, below))))

    def clear(self) -> None:
        """Remove the note: the holder has come to its end and left nothing behind."""
        with contextlib.suppress(OSError):
            note_file().unlink()


def lock_file() -> Path:
    """Return the file that every user of the machine locks.

    The choice rests on what is the same for all users: where only root can make the file, root locks another one too.
    """
    try:
        shared = _SHARED.stat().st_mode & stat.S_IWOTH
    except OSError:
        shared = 0
    return (_SHARED if shared else _FALLBACK) / "connlab.lock"


def note_file() -> Path:
    """Return the file in which this lab's runs note what they do."""
    return paths.CACHE / "running.json"


def is_ours(status: os.stat_result) -> bool:
    """Return whether only this user or root could have written a file or a folder."""
    return status.st_uid in {0, os.geteuid()} and not status.st_mode & stat.S_IWOTH


@contextlib.contextmanager
def machine_lock(what: str, file: Path | None = None, *, held: Lock | None = None) -> Iterator[Lock]:
    """Hold the machine's lock.

    The kernel drops it with the process, however that ends.

    `held` is the lock that a longer command holds already, of which this is a part; it holds it still afterwards.

    Raises:
        LabError: someone else holds it, and the message says who; or the lock file is not one.
    """
    if held:
        held.begin(what)
        yield held
        return
    descriptor = _open(file or lock_file())
    try:
        _take(descriptor)
        lock = Lock(what, _noted())
        lock.note()
        yield lock
        lock.clear()
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    given_up = time.monotonic() + _ENDING_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= given_up:
                raise _refusal(descriptor) from None
        else:
            return
        time.sleep(_LOOK_S)


def _open(file: Path) -> int:
    """Open the lock file for reading, which is enough to lock it, also if another user owns it; make it if missing."""
    try:
        try:
            descriptor = os.open(file, _NO_TRAP)
        except FileNotFoundError:
            descriptor = _make(file)
    except OSError as error:
        hint = f"see that {file.parent} is a writable folder and that {file.name} in it, if there, is a file that"
        raise LabError(
            f"the lock file {file} cannot be opened: {error.strerror}",
            hint=f"{hint} all may read; its owner or root can remove it",
        ) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LabError(f"the lock file {file} is not a regular file", hint="its owner or root can remove it")
    return descriptor


def _make(file: Path) -> int:
    with contextlib.suppress(FileExistsError):  # another process made it in between
        descriptor = os.open(file, _NO_TRAP | os.O_CREAT | os.O_EXCL, 0o644)
        os.fchmod(descriptor, 0o644)  # whatever the umask: other users must be able to lock it
        return descriptor
    return os.open(file, _NO_TRAP)


def holder() -> Holder | None:
    """Return who of this checkout holds the machine's lock, by its own note; None if nobody does."""
    noted = _noted()
    if noted is None:
        return None
    try:
        descriptor = os.open(lock_file(), _NO_TRAP)
    except OSError:
        return None
    try:
        return noted if noted.pid in _lockers(descriptor) else None
    finally:
        os.close(descriptor)


def _noted() -> Holder | None:
    """Return what a holder of this checkout noted; None where there is no note, or another user may have written it."""
    try:
        with os.fdopen(os.open(note_file(), _NO_TRAP)) as stream:
            return Holder(**json.load(stream)) if is_ours(os.fstat(stream.fileno())) else None
    except (OSError, ValueError, TypeError):
        return None


def _refusal(descriptor: int) -> LabError:
    pids, noted = _lockers(descriptor), _noted()
    if noted and noted.pid in pids:
        what = f"{noted.what} is in progress on this machine since {noted.since} (process {noted.pid})"
        return LabError(what, hint=_HINT.format(pid=noted.pid))
    other = "another run of the lab is in progress on this machine"
    if len(pids) != 1:
        return LabError(other, hint="wait until it has ended")
    (pid,) = pids
    return LabError(f"{other}{_process(pid)}", hint=_HINT.format(pid=pid))


def _lockers(descriptor: int) -> set[int]:
    """Return the processes that hold a lock by flock(2) on an open file, by /proc/locks (see proc_locks(5))."""
    try:
        file = f"{_device(descriptor)}:{os.fstat(descriptor).st_ino}"
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return set()
    # number, FLOCK, ADVISORY, WRITE, process, <device>:<inode>, …; of one that waits, "->" stands second.
    return {int(line[4]) for line in lines if line[1] == "FLOCK" and line[5] == file}


def _device(descriptor: int) -> str:
    """Return the file system of an open file as /proc/locks names it; on btrfs stat(2) names another device."""
    opened = dict(line.split(":", 1) for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines())
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    numbers = next((mount[2] for mount in mounts if mount[0] == opened["mnt_id"].strip()), "0:0")
    major, minor = numbers.split(":")
    return f"{int(major):02x}:{int(minor):02x}"


def _process(pid: int) -> str:
    """Describe, as the kernel knows it, another user's or another checkout's process."""
    folder = Path(f"/proc/{pid}")
    try:
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        uid = folder.stat().st_uid
        # The name of the program, in brackets, may hold blanks; the 20th field after it is the start in ticks.
        ticks = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
        began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return f" (process {pid})"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))
    return f" since {since} (process {pid} of {_user(uid)}: {visible(command)})"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
