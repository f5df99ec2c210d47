"""Commands that a form asks for, in words that the lab knows; they run one at a time."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence

from formats.sanitize import visible
from lab import paths, terminal
from lab.errors import BadInput, Problem
from lab.lessons.drill.evidence import MORE
from lab.lessons.drill.faults import CAUSES, LEVELS, PLACES
from lab.scenarios import places

_SEED_MAX = 1_000_000


def parse_form(form: Mapping[str, str]) -> list[str]:
    """Return the arguments of `connlab` for a form.

    Raises:
        BadInput: it names something that the lab does not have.
    """
    asked = {
        "run": lambda given: ["run", _slug(given.get("scenario", ""))],
        "exercise": _exercise,
        "drill": _drill,
    }.get(form.get("command", ""))
    if asked is None:
        raise BadInput(Problem("the form names no command", hint="go back, and load the page again"))
    return [*asked(form), *(f"--set={one}" for one in form.get("sets", "").split())]


def parse_drill(seed: str, level: str) -> tuple[int, int]:
    """Return a drill's seed and level.

    Raises:
        BadInput: they are not numbers of a drill.
    """
    if not (seed.isascii() and seed.isdecimal() and int(seed[:9]) <= _SEED_MAX and len(seed) < 9):  # noqa: PLR2004 # digits
        raise BadInput(Problem("a seed is a whole number", hint=f"0 to {_SEED_MAX:,}"))
    if level not in map(str, LEVELS):
        raise BadInput(Problem("there is no such level", hint="1, 2 or 3"))
    return int(seed), int(level)


def _exercise(form: Mapping[str, str]) -> list[str]:
    slug, _, number = form.get("exercise", "").partition("/")
    if not (number.isascii() and number.isdecimal()):
        raise BadInput(Problem("an exercise has a number", hint="such as accept-queue-overflow/1"))
    return ["exercise", f"{_slug(slug)}/{number}"]


def _drill(form: Mapping[str, str]) -> list[str]:
    seed, level = parse_drill(form.get("seed", ""), form.get("level", ""))
    words = ["drill", f"--seed={seed}", f"--level={level}"]
    for name, known in (("more", MORE), ("cause", CAUSES), ("place", PLACES)):
        given = form.get(name)
        if given and given not in known:
            raise BadInput(Problem(f"there is no {name} of this name", hint=", ".join(known)))
        words += [f"--{name}={given}"] if given else []
    return words


def _slug(name: str) -> str:
    if name not in places.slugs():
        raise BadInput(Problem("there is no scenario of this name", hint="'connlab list' shows them"))
    return name


_LINES_KEPT = 500
_SELF = [sys.executable, "-c", "from lab.cli import connlab; connlab()"]


class Started:
    """The last command that was started; what it found lies in results/, and outlives this."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._starting = threading.Lock()
        self.shown = ""
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)

    @property
    def at_work(self) -> bool:
        """Return whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Return its exit code; None where it has none yet."""
        return None if self._process is None else self._process.poll()

    def start(self, arguments: Sequence[str]) -> None:
        """Start `connlab` with arguments, which nothing but `connlab` reads, and say so in the terminal.

        Raises:
            BadInput: another one is at work.
        """
        with self._starting:
            if self.at_work:
                raise BadInput(Problem(f"'{self.shown}' is running", hint="wait until it has ended"))
            self.shown, self.lines = shlex.join(["connlab", *arguments]), deque(maxlen=_LINES_KEPT)
            terminal.problem(f"$ {self.shown}")
            # In a session of its own: Ctrl-C ends it through `end`, which waits for it to clear up.
            self._process = subprocess.Popen(
                [*_SELF, *arguments],
                env=os.environ | {"CONNLAB_RESULTS": str(paths.RESULTS)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._reader = threading.Thread(target=self._read, args=(self._process, self.lines))
            self._reader.start()

    def end(self) -> None:
        """Let the command end in order, if one is at work, and wait until it has."""
        if self._process is not None and self.at_work:
            terminal.problem(f"connlab: ending '{self.shown}'")
            self._process.send_signal(signal.SIGINT)
        self.wait()

    def wait(self) -> None:
        """Wait until the command has ended and all of its words are read."""
        if self._reader is not None:
            self._reader.join()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: deque[str]) -> None:
        with process:
            for line in process.stdout or ():
                lines.append(visible(line.rstrip("\n")))
                terminal.problem(line.rstrip("\n"))
        terminal.problem(f"connlab: it ended with {process.returncode}")
