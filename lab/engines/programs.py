"""Running another program, such as docker, for an engine: argument lists, timeouts, and no survivors."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from lab.errors import EngineFailed, LabError
from lab.signals import LOOK_S, deferred, signal_waits

_STDERR_LINES = 12


class ProgramFailed(EngineFailed):
    """A command ended with an error of its own.

    Attributes:
        stderr: what it said.
        reason: the last line of that.
    """

    def __init__(
        self, command: Sequence[str], exit_code: int, stderr: str, what: str | None = None, hint: str | None = None
    ) -> None:
        self.stderr = stderr
        lines = [line for line in stderr.strip().splitlines() if line.strip()] or ["(it said nothing)"]
        self.reason = lines[-1]
        said = "\n  ".join(lines[-_STDERR_LINES:])
        super().__init__(what or f"'{' '.join(command[:4])} …' failed with exit code {exit_code}:\n  {said}", hint=hint)


@dataclass(frozen=True)
class CompletedCommand:
    """What a command left: its exit code and what it said; both texts are empty where a file took them."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


class StreamingCommand(Protocol):
    """A command that goes on telling until it is ended; iterating gives its lines as they come."""

    def __iter__(self) -> Iterator[str]:
        """Yield each line that it prints."""

    @property
    def goes_on(self) -> bool:
        """Return whether it still runs."""

    def say(self, line: str) -> None:
        """Write a line to it, if it was started to be talked to; one that has ended does not hear it."""

    def end(self) -> None:
        """End it at once; it has no more lines then."""


class ProgramClient(Protocol):
    """What an engine asks of its program: to run a command to its end, and to follow one."""

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        into: IO[bytes] | None = None,
        unless: Callable[[], object] | None = None,
    ) -> CompletedCommand:
        """Run the program; `into` takes all that it says, in order; it is killed once `unless` gives something true.

        Raises:
            LabError: there is no such program, or it did not end in time.
        """

    def follow(self, arguments: Sequence[str], *, talks: bool = False) -> StreamingCommand:
        """Start the program; it ends with this process, however that ends; `talks` for one that reads its input.

        Raises:
            LabError: there is no such program.
        """


@dataclass(frozen=True)
class CommandLine:
    """A program of the machine.

    Each command runs in a process group of its own: Ctrl-C is the lab's to handle, not the program's.

    Attributes:
        name: of the program.
        stuck: the hint where it does not answer.
        lacking: the hint where it is not there.
    """

    name: str
    stuck: str
    lacking: str

    @deferred()
    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        into: IO[bytes] | None = None,
        unless: Callable[[], object] | None = None,
    ) -> CompletedCommand:
        """Run it as a process; killed when it takes too long, or when the wait for it is interrupted."""
        command = [self.name, *arguments]
        with _input(stdin) as given, self._start(command, stdin=given, into=into) as process:
            try:
                stdout, stderr = _listen(process, timeout_s, unless)
            except subprocess.TimeoutExpired:
                _kill(process)
                what = f"'{' '.join(command[:4])} …' did not end within {timeout_s:g} s"
                raise LabError(what, hint=self.stuck) from None
            except BaseException:
                _kill(process)
                raise
        return CompletedCommand(process.returncode, stdout or "", stderr or "")

    @deferred()
    def follow(self, arguments: Sequence[str], *, talks: bool = False) -> StreamingCommand:
        """Start it as a process that the kernel kills with this one."""
        stdin = subprocess.PIPE if talks else subprocess.DEVNULL
        return _Process(self._start([*_dying_with_us(), self.name, *arguments], stdin=stdin))

    def _start(
        self, command: Sequence[str], *, stdin: int | IO[str], into: IO[bytes] | None = None
    ) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=into or subprocess.PIPE,
                stderr=subprocess.STDOUT if into else subprocess.PIPE,
                text=True,
                errors="replace",
                process_group=0,
            )
        except FileNotFoundError:
            raise LabError(f"the command '{self.name}' is not installed", hint=self.lacking) from None


@contextlib.contextmanager
def _input(text: str | None) -> Iterator[int | IO[str]]:
    """Give a program's input as a file: what `communicate` has not written by its timeout, it never writes."""
    if text is None:
        yield subprocess.DEVNULL
        return
    with open(os.memfd_create("stdin"), "w+", encoding="utf-8") as file:  # noqa: PTH123 # a descriptor
        file.write(text)
        file.seek(0)
        yield file


def _listen(process: subprocess.Popen[str], timeout_s: float, unless: Callable[[], object] | None) -> tuple[str, str]:
    """Return what a process says until its end, or until a signal or `unless` has it killed; raises TimeoutExpired."""
    end = time.monotonic() + timeout_s
    while True:
        left_s = end - time.monotonic()
        try:
            return process.communicate(timeout=min(left_s, LOOK_S))
        except subprocess.TimeoutExpired:
            if signal_waits() or (unless and unless()):
                # What it started may hold its output open: nobody reads on.
                _kill(process)
                return "", ""
            if time.monotonic() >= end:
                raise


class _Process:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def __iter__(self) -> Iterator[str]:
        if self._process.stdout:
            with self._process.stdout as lines:
                yield from lines

    @property
    def goes_on(self) -> bool:
        if self._process.returncode is not None:
            return False
        # Whoever waits for it gives its number back, and with that the name of its group.
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    def say(self, line: str) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()

    @deferred()
    def end(self) -> None:
        _kill(self._process)
        for stream in (self._process.stdin, self._process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _dying_with_us() -> list[str]:
    """Return the command before a command that ends it together with this process, even if that is killed."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL", "--"] if found else []


def _kill(process: subprocess.Popen[str]) -> None:
    """End it and its group at once: what `docker` runs as a program of its own, as Compose, would go on without it.

    The group is there after its leader has ended, too. Its number is safe as long as nobody has waited for the leader.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
