"""The one way out: everything that a command prints, for people and for programs, on either stream.

Scenarios, runs, other users' processes and containers choose words that are printed. Here each character of them that
would steer a terminal is made visible.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from formats.sanitize import visible_lines

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Outside a terminal nobody's window is too narrow.
_WIDTH_ELSEWHERE = 160
_STDERR = 2
_STEERING = re.compile(r"[^\n -~\u00a1-\u1fff]")


class SafeConsole(Console):
    """Return a console that steers the terminal itself, but lets no printed word do so."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what a renderable consists of; every print, table and live display comes through here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_lines(segment.text))


# What is printed are words of scenarios and of runs, which may look like rich's markup and are none.
_console = partial(SafeConsole, highlight=False, markup=False, emoji=False)


class _Written(io.FileIO):
    """A standard stream that throws away what nobody reads any more: `connlab list | head -1` ends as without it."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as `FileIO` does, unless the reader has gone."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(memoryview(data))


def prepare_streams() -> None:
    """Make the standard streams take whatever is printed; one that is closed is /dev/null from here on.

    Without that, the next file that is opened would be in its place.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__"):  # not a test's
            setattr(sys, name, _taking_all(stream, ("stdout", "stderr").index(name) + 1))


def _taking_all(stream: TextIO | None, descriptor: int) -> TextIO:
    """Return a stream in the place of one, which has no letter that it cannot write."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Written(descriptor, "w", closefd=False)),
        encoding=stream.encoding if stream else None,
        errors="backslashreplace",
        line_buffering=descriptor == _STDERR or os.isatty(descriptor),
    )


def end_streams() -> None:
    """Write out what is left.

    Raises:
        OSError: a stream cannot be written; it is /dev/null from here on, for Python tries again at its own end.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno())
            raise


def stdout() -> Console:
    """Return a console for results."""
    return _console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)


def stderr() -> Console:
    """Return a console for progress and problems."""
    return _console(stderr=True)


def nowhere() -> Console:
    """Return a console that prints nothing."""
    return _console(quiet=True)


def result(lines: Iterable[str]) -> None:
    """Print a result, line by line."""
    print("\n".join(visible_lines(line).replace("\n", "\\n") for line in lines))  # noqa: T201 # the one way out


def result_json(value: Any) -> None:  # noqa: ANN401 # JSON
    """Print a result for a program."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(_STEERING.sub(_as_json, text))  # noqa: T201 # as above


def problem(text: str) -> None:
    """Print at once what went wrong, in one line or several."""
    print(visible_lines(text), file=sys.stderr, flush=True)  # noqa: T201 # as above


def _as_json(found: re.Match[str]) -> str:
    """Spell a character that steers, which JSON itself would let pass: DEL, C1 controls, directions."""
    char = found.group()
    return char if visible_lines(char) == char else json.dumps(char)[1:-1]
