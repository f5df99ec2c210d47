"""Looks at the clocks of the machines on which instances run, where these are not this one."""

from __future__ import annotations

import contextlib
import time

from lab import parallel
from lab.errors import LabError
from lab.run.manifest import Look
from lab.run.session import Session

# What a look takes is what it leaves open: of several, one may be quick.
_LOOKS = 3


def look(session: Session) -> None:
    """Note what the clock of each other machine shows, with this one's before and after.

    A look that fails tells nothing: the analysis says what it lacks.
    """
    nodes = session.manifest.nodes
    first = {node: instance for instance, node in reversed(nodes.items())}
    found = parallel.each(lambda instance: _looks(session, instance), first.values())
    session.manifest.clocks += [each for of_node in found.values() for each in of_node]


def _looks(session: Session, instance: str) -> list[Look]:
    found = []
    with contextlib.suppress(LabError, ValueError):
        for _ in range(_LOOKS):
            asked_us = time.time_ns() // 1000
            shown = session.engine.ask(instance, "date", "+%s%6N")
            told_us = time.time_ns() // 1000
            found.append(Look(instance=instance, asked_us=asked_us, shown_us=int(shown), told_us=told_us))
    return found
