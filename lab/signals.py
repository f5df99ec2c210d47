"""Ctrl-C, a closed terminal and a polite kill end every command in order: evidence, then clean-up, then the word."""

import contextlib
import os
import signal
import sys
import threading
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
_AGAIN_S = 0.01
# How often what is `deferred` looks whether a signal waits.
LOOK_S = 0.2


class Interrupted(BaseException):
    """A signal asked the run to end; like KeyboardInterrupt it passes every `except Exception`."""


@dataclass
class _Level:
    """What has become of the signals since `interruptible` began.

    Attributes:
        came: the first of them.
        shields: how many `shielded` are under way.
        deferrals: how many `deferred`.
        pending: what is raised when they have ended.
    """

    came: signal.Signals | None = None
    shields: int = 0
    deferrals: int = 0
    pending: Interrupted | None = None
    raised: Interrupted | None = None

    def raise_pending(self) -> None:
        """Raise what came, unless something still holds it back."""
        if self.pending is not None and not self.shields and not self.deferrals:
            self.raised, self.pending = self.pending, None
            raise self.raised


_levels: list[_Level] = []


def _current_level() -> _Level:
    """Return the level that signals reach; they come to the main thread alone, and another one has none."""
    is_main = threading.current_thread() is threading.main_thread()
    return _levels[-1] if _levels and is_main else _Level()


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
        if level.came:
            terminal.problem("connlab: still removing what the run started")
            return
        level.came = signal.Signals(number)
        level.pending = Interrupted(_SIGNALS[level.came])
        if level.shields:
            terminal.problem(f"connlab: {level.pending}; it ends as soon as everything is written and removed")
        level.raise_pending()

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    _levels.append(level)
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        with _sent_again_if_dropped(level):
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
def _sent_again_if_dropped(level: _Level) -> Iterator[None]:
    """Python drops what is raised in a finalizer: send such a signal again, for when that has ended."""
    hook_before = sys.unraisablehook

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if level.came is None or level.raised is None or dropped.exc_value is not level.raised:
            hook_before(dropped)
            return
        # First it has not come: the timer's thread may be the faster one.
        number, level.came = level.came, None
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number)).start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = hook_before


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Let no signal break this off: a run's ending, or its clearing up. One that came is raised at the end.

    Raises:
        Interrupted: a signal came meanwhile, and nothing else went wrong.
    """
    level = _current_level()
    level.shields += 1
    try:
        yield
    finally:
        level.shields -= 1
    level.raise_pending()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Let a signal wait until this has ended; what takes long asks `signal_waits`, and ends early.

    For waits that hold locks of Python's own, as those of `subprocess` and `concurrent.futures` do: what a handler
    raises amid them can leave a lock held for good. As a decorator it covers the removal of the function's variables.

    Raises:
        Interrupted: a signal came meanwhile, whatever else went wrong.
    """
    level = _current_level()
    level.deferrals += 1
    try:
        yield
    finally:
        level.deferrals -= 1
        level.raise_pending()


def signal_waits() -> bool:
    """Return whether a signal waits for the end of what is `deferred`; a run's ending does not end early."""
    level = _current_level()
    return level.pending is not None and not level.shields
