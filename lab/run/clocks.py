"""Looks at the clocks of the machines on which instances run, where these are not this one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial

from formats.manifest import Look
from lab import parallel
from lab.errors import LabError
from lab.run.session import Session

# What a look takes is what it leaves open: of several, one may be quick.
_LOOKS = 3


def look(session: Session) -> None:
    """Note what the clock of each other machine shows, with this one's before and after.

    A look that fails tells nothing: the analysis says what it lacks.
    """
    nodes = session.manifest.nodes
    first = {node: instance for instance, node in reversed(nodes.items())}
    found = parallel.each(lambda instance: looks(instance, partial(session.engine.ask, instance)), first.values())
    session.manifest.clocks += [each for of_node in found.values() for each in of_node]


def looks(instance: str, ask: Callable[..., str]) -> list[Look]:
    """Note what the clock of an instance's machine shows; `ask` runs a command there. None if that fails."""
    found = []
    with contextlib.suppress(LabError, ValueError):
        for _ in range(_LOOKS):
            asked_us = time.time_ns() // 1000
            shown = ask("date", "+%s%6N")
            told_us = time.time_ns() // 1000
            found.append(Look(instance=instance, asked_us=asked_us, shown_us=int(shown), told_us=told_us))
    return found
