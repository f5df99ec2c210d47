"""Starts the commands that a page asks for, one at a time, and shows what they say here and on the page."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence

from formats.sanitize import visible
from lab import paths, terminal
from lab.errors import BadInput, Problem

_LINES_KEPT = 500
_SELF = [sys.executable, "-c", "from lab.cli import main; main()"]


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
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code; None where it has none yet."""
        return None if self._process is None else self._process.poll()

    def start(self, arguments: Sequence[str]) -> None:
        """Start `connlab` with arguments, which nothing but `connlab` reads, and say so in the terminal.

        Raises:
            BadInput: another one is at work.
        """
        with self._starting:
            if self.at_work:
                raise BadInput(Problem(f"'{self.shown}' is at work", way_on="wait until it has ended"))
            self.shown, self.lines = shlex.join(["connlab", *arguments]), deque(maxlen=_LINES_KEPT)
            terminal.problem(f"$ {self.shown}")
            # In a session of its own: Ctrl-C ends it through `end`, which waits for it to clear up.
            self._process = subprocess.Popen(
                [*_SELF, *arguments],
                cwd=paths.ROOT,
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
