"""The one door to the `docker` command line: argument lists, time-outs, and errors that say what to do."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from lab.errors import EngineFailed, LabError

_STDERR_LINES = 12
_LOOK_S = 0.5
_DOCTOR = "'connlab doctor' (make doctor) says what this machine lacks"


class DockerFailed(EngineFailed):
    """A docker command ended with an error of its own.

    Attributes:
        stderr: what it said.
        reason: the last line of that.
    """

    def __init__(self, command: Sequence[str], exit_code: int, stderr: str) -> None:
        self.stderr = stderr
        lines = [line for line in stderr.strip().splitlines() if line.strip()] or ["(it said nothing)"]
        self.reason = lines[-1]
        said = "\n  ".join(lines[-_STDERR_LINES:])
        super().__init__(
            f"'{' '.join(command[:4])} …' failed with exit code {exit_code}:\n  {said}", way_on=_way_on(stderr)
        )


def _way_on(stderr: str) -> str | None:
    if "Cannot connect to the Docker daemon" in stderr or "permission denied" in stderr:
        return f"start the Docker Engine, or let this user reach it; {_DOCTOR}"
    if "No such image" in stderr or "pull access denied" in stderr:
        return "build the images: setup/images.sh (make setup)"
    if "no space left on device" in stderr:
        return "free space on the disk"
    return None


@dataclass(frozen=True)
class Ended:
    """What a command left: its exit code and what it said; both texts are empty where a file took them."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


class Following(Protocol):
    """A command that goes on telling until it is ended; iterating gives its lines as they come."""

    def __iter__(self) -> Iterator[str]:
        """Give each line that it prints."""

    @property
    def goes_on(self) -> bool:
        """Whether it still runs."""

    def end(self) -> None:
        """End it at once; it has no more lines then."""


class Client(Protocol):
    """What the lab asks of Docker: to run a command to its end, and to follow one."""

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        into: IO[bytes] | None = None,
        unless: Callable[[], object] | None = None,
    ) -> Ended:
        """Run `docker …`; `into` takes all that it says, in order; it is killed once `unless` gives something true.

        Raises:
            LabError: there is no docker, or it did not answer in time.
        """

    def follow(self, arguments: Sequence[str]) -> Following:
        """Start `docker …`; it ends with this process, however that ends.

        Raises:
            LabError: there is no docker.
        """


def docker(
    *arguments: str, timeout_s: float = 60, stdin: str | None = None, unless: Callable[[], object] | None = None
) -> str:
    """Run `docker …` and give what it printed; `unless` says when nobody need wait for it any more.

    Raises:
        DockerFailed: it ended with an error, or nobody waited for it.
        LabError: there is no docker, or it did not answer in time.
    """
    ended = client.run(arguments, timeout_s=timeout_s, stdin=stdin, unless=unless)
    if ended.exit_code != 0:
        raise DockerFailed(["docker", *arguments], ended.exit_code, ended.stderr)
    return ended.stdout


def save(into: IO[bytes], *arguments: str, timeout_s: float) -> int:
    """Run `docker …`, write all that it says into a file, and give its exit code; raises LabError as `docker`."""
    return client.run(arguments, timeout_s=timeout_s, into=into).exit_code


def follow(*arguments: str) -> Following:
    """Start a `docker …` that goes on telling; raises LabError where there is no docker."""
    return client.follow(arguments)


class CommandLine:
    """The program `docker`.

    Each command runs in a process group of its own: Ctrl-C is the lab's to handle, not Docker's.
    """

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        into: IO[bytes] | None = None,
        unless: Callable[[], object] | None = None,
    ) -> Ended:
        """Run it as a process; killed when it takes too long, or when the wait for it is interrupted."""
        command = ["docker", *arguments]
        process = _start(command, stdin=stdin is not None, into=into)
        with process:
            try:
                stdout, stderr = _talk(process, stdin, timeout_s, unless)
            except subprocess.TimeoutExpired:
                _kill(process)
                what = f"'{' '.join(command[:4])} …' did not end within {timeout_s:g} s"
                raise LabError(what, way_on=f"see whether the Docker Engine is stuck; {_DOCTOR}") from None
            except BaseException:
                _kill(process)
                raise
        return Ended(process.returncode, stdout or "", stderr or "")

    def follow(self, arguments: Sequence[str]) -> Following:
        """Start it as a process that the kernel kills with this one."""
        return _Process(_start([*_dying_with_us(), "docker", *arguments]))


def _talk(
    process: subprocess.Popen[str], stdin: str | None, timeout_s: float, unless: Callable[[], object] | None
) -> tuple[str, str]:
    """Give what a process says until its end, or until `unless` has it killed; raises TimeoutExpired."""
    end = time.monotonic() + timeout_s
    while True:
        left_s = end - time.monotonic()
        try:
            return process.communicate(stdin, timeout=min(left_s, _LOOK_S) if unless else left_s)
        except subprocess.TimeoutExpired:
            if unless and unless():
                # What it started may hold its output open: nobody reads on.
                _kill(process)
                return "", ""
            if time.monotonic() >= end:
                raise
        stdin = None  # it has it


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
        return self._process.poll() is None

    def end(self) -> None:
        _kill(self._process)
        if self._process.stderr:
            self._process.stderr.close()


def _dying_with_us() -> list[str]:
    """Give the command before a command that ends it together with this process, even if that is killed."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL", "--"] if found else []


def _start(command: Sequence[str], *, stdin: bool = False, into: IO[bytes] | None = None) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=into or subprocess.PIPE,
            stderr=subprocess.STDOUT if into else subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
    except FileNotFoundError:
        raise LabError("the command 'docker' is not installed", way_on=_DOCTOR) from None


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()


client: Client = CommandLine()
