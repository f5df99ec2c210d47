"""Ctrl-C, a closed terminal and a polite kill end a run in order: first the containers go, then the program."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from lab.errors import Interruption

_SIGNALS = {
    signal.SIGINT: "interrupted (Ctrl-C)",
    signal.SIGTERM: "terminated (SIGTERM)",
    signal.SIGHUP: "the terminal was closed (SIGHUP)",
}


class Interrupted(BaseException):
    """A signal asked the run to end; like KeyboardInterrupt it passes every `except Exception`."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted at the first signal; later ones are answered, but do not disturb the clearing up.

    A signal that this process was started to ignore, as `nohup` has it, is ignored still.

    Raises:
        Interruption: in the place of an Interrupted that nothing inside has answered.
    """
    interrupted = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            print("connlab: still removing what the run started", file=sys.stderr, flush=True)  # noqa: T201 # a handler must not enter rich
            return
        interrupted = True
        raise Interrupted(_SIGNALS[signal.Signals(number)])

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    except Interrupted as error:
        raise Interruption(str(error)) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
