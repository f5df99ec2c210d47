"""Runs commands, several beside each other where they allow it, and says how long each took and how it ended."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO

_POLL_S = 0.05
_PATIENCE_S = 90
"""For an interrupted command to clean up: a real run removes its containers."""

_NICE = 10
"""Of a command in the background: the others have nine tenths of a processor that both want, and it goes on."""
_NICE_SESSION = f"{{ echo {_NICE} >/proc/$$/autogroup; }} 2>/dev/null || true\n"
"""Where the kernel groups processes by their session, the group has a niceness of its own: see sched(7)."""


class Interrupted(Exception):
    """A signal that asks for an end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass(frozen=True)
class Job:
    """A command for bash. One that is `alone` runs while no other does, and prints as it goes.

    One in the `background` runs beside those too, with a lower priority.
    """

    name: str
    command: str
    alone: bool = False
    background: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative: the signal that ended it), its time, and its output if kept."""

    job: Job
    code: int
    seconds: float
    output: str


@dataclass(frozen=True)
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    began_s: float

    def ended(self) -> Outcome | None:
        """The outcome, once there is one."""
        code = self.process.poll()
        if code is None:
            return None
        return Outcome(self.job, code, time.monotonic() - self.began_s, self._printed())

    def _printed(self) -> str:
        if self.output is None:
            return ""
        with self.output:
            self.output.seek(0)
            return self.output.read().decode(errors="replace")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def run(
    jobs: Sequence[Job], beside: int, began: Callable[[Job], None], ended: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run all jobs, whatever becomes of any: up to `beside` at a time, then those that want to be alone one by one.

    Those in the background go on meanwhile, one by one. The outcomes have the order of the jobs. `began` is called
    before each job and `ended` with its outcome. On SIGINT, SIGTERM or SIGHUP every command at work gets that signal,
    with all that it has started in its process group, and `Interrupted` is raised once they have ended and `ended` has
    their outcomes.
    """
    outcomes: list[Outcome] = []
    running: list[_Running] = []
    with _signals() as asked:
        try:
            waiting = sorted(jobs, key=lambda job: job.alone)
            while waiting or running:
                for job in list(waiting):
                    if _may_begin(job, [one.job for one in running], beside):
                        waiting.remove(job)
                        began(job)
                        running.append(_start(job))
                _pause(asked)
                for one in list(running):
                    if (outcome := one.ended()) is not None:
                        running.remove(one)
                        outcomes.append(outcome)
                        ended(outcome)
        except BaseException:
            _end(running, asked[0] if asked else signal.SIGTERM)
            # What they printed until then may say what lasted.
            for outcome in filter(None, [one.ended() for one in running]):
                ended(outcome)
            raise
    return sorted(outcomes, key=lambda outcome: jobs.index(outcome.job))


def _may_begin(job: Job, running: Sequence[Job], beside: int) -> bool:
    """Those that want to be alone come last, so none of them is at work while another waits."""
    places = 1 if job.background or job.alone else beside
    return sum(one.background == job.background for one in running) < places


def _pause(asked: Sequence[int]) -> None:
    time.sleep(_POLL_S)
    if asked:
        raise Interrupted(asked[0])


def _start(job: Job) -> _Running:
    sys.stdout.flush()
    output = None if job.alone else tempfile.TemporaryFile()  # noqa: SIM115 # closed when it has been read
    nice, before = (["nice", "-n", str(_NICE)], _NICE_SESSION) if job.background else ([], "")
    process = subprocess.Popen(
        [*nice, "bash", "-euo", "pipefail", "-c", before + job.command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if job.alone else subprocess.STDOUT,
        start_new_session=True,
    )
    return _Running(job, process, output, time.monotonic())


def _end(running: Sequence[_Running], number: int) -> None:
    for one in running:
        with suppress(ProcessLookupError):
            os.killpg(one.process.pid, number)
    for one in running:
        try:
            one.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that ask for an end: noted, and nothing more, for one may come while a command is being started."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
