"""What the lab did to a server while a request had to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.reports.stories.parts import Event
from formats import manifest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from analysis.diagnosis.joins import Row

_BEGINS = {"pause": "begins to pause {}", "restart": "begins to restart {}", "stop": "begins to stop {}"}
_OVER = {"pause": "has let {} go on", "restart": "has {} ready again", "stop": "has stopped {}"}


def action_events(case: Row, actions: Iterable[manifest.ActionRecord], servers: Collection[str]) -> Iterator[Event]:
    """Tell of the actions that overlap a request: their beginning, and their end if it came within the request.

    Args:
        case: the request.
        actions: the run's.
        servers: the instances that the request had to do with.
    """
    for place, action in enumerate(actions, start=1):
        start_us, over_us = action.start_us, action.end_us
        if action.instance not in servers or start_us is None or start_us >= case["end_us"]:
            continue
        if over_us is not None and over_us <= case["time_us"]:
            continue
        source = (manifest.FILE, f"action {place}")
        yield Event(start_us, "lab", _BEGINS.get(action.do, "acts on {}").format(action.instance), *source)
        if over_us is not None and over_us < case["end_us"]:
            yield Event(over_us, "lab", _OVER.get(action.do, "is done with {}").format(action.instance), *source)
