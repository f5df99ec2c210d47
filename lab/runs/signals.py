"""Ctrl-C, a closed terminal and a polite kill end every command in order: evidence, then clean-up, then the word."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from lab import terminal
from lab.errors import ConnlabError, Interruption

_SIGNALS = {
    signal.SIGINT: "interrupted (Ctrl-C)",
    signal.SIGTERM: "terminated (SIGTERM)",
    signal.SIGHUP: "the terminal was closed (SIGHUP)",
}


class Interrupted(BaseException):
    """A signal asked the run to end; like KeyboardInterrupt it passes every `except Exception`."""


@dataclass
class _Level:
    """What has become of the signals since `interruptible` began.

    Attributes:
        shields: how many `shielded` are under way.
        pending: the signal that came behind a shield.
    """

    interrupted: bool = False
    shields: int = 0
    pending: Interrupted | None = None
    raised: Interrupted | None = None


_levels: list[_Level] = []


@contextlib.contextmanager
def interruptible(*, to_the_end: bool = False) -> Iterator[None]:
    """Raise Interrupted at the first signal; later ones are answered, but do not disturb the clearing up.

    A signal that this process was started to ignore, as `nohup` has it, is ignored still.

    `to_the_end`: only the command's last word and its exit code come after this, and no signal takes their place.

    Raises:
        Interruption: in the place of an Interrupted that nothing inside has answered, or of what a library made of it.
    """
    level = _Level()

    def handle(number: int, _frame: FrameType | None) -> None:
        if level.interrupted:
            terminal.problem("connlab: still removing what the run started")
            return
        level.interrupted = True
        error = Interrupted(_SIGNALS[signal.Signals(number)])
        if not level.shields:
            level.raised = error
            raise error
        level.pending = error
        terminal.problem(f"connlab: {error}; it ends as soon as everything is written and removed")

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    _levels.append(level)
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    except Interrupted as error:
        raise Interruption(str(error)) from error
    except ConnlabError:
        raise
    except Exception as error:
        # DuckDB has an error of its own in the place of what a handler raised.
        if level.raised is None:
            raise
        raise Interruption(str(level.raised)) from error
    finally:
        for number, handler in before.items():
            # Python itself gives signals back to the kernel as it ends, but for those that are ignored.
            signal.signal(number, signal.SIG_IGN if to_the_end else handler)
        _levels.pop()


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Let no signal break this off: a run's ending, or its clearing up. One that came is raised at the end.

    Raises:
        Interrupted: a signal came meanwhile, and nothing else went wrong.
    """
    level = _levels[-1] if _levels else _Level()
    level.shields += 1
    try:
        yield
    finally:
        level.shields -= 1
    if level.pending is not None and not level.shields:
        error, level.pending = level.pending, None
        raise error
