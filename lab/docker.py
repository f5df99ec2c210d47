"""Runs the `docker` command line: argument lists, time-outs, and errors that say what to do."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Sequence

from lab.errors import LabError

_STDERR_LINES = 12
_DOCTOR = "'connlab doctor' (make doctor) says what this machine lacks"


class DockerFailed(LabError):
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


def docker(*arguments: str, timeout_s: float = 60, stdin: str | None = None) -> str:
    """Run `docker …` and give what it printed.

    It runs in a process group of its own: Ctrl-C is the lab's to handle, not Docker's.

    Raises:
        DockerFailed: it ended with an error.
        LabError: there is no docker, or it did not answer in time.
    """
    command = ["docker", *arguments]
    process = popen(command, stdin=stdin is not None)
    with process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            what = f"'{' '.join(command[:4])} …' did not end within {timeout_s:g} s"
            raise LabError(what, way_on=f"see whether the Docker Engine is stuck; {_DOCTOR}") from None
        except BaseException:
            _kill(process)
            raise
    if process.returncode != 0:
        raise DockerFailed(command, process.returncode, stderr)
    return stdout


def popen(command: Sequence[str], *, stdin: bool = False) -> subprocess.Popen[str]:
    """Start a command whose output is read as text."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
    except FileNotFoundError:
        raise LabError(f"the command '{command[0]}' is not installed", way_on=_DOCTOR) from None


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()
