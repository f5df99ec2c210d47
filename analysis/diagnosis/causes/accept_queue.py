"""The accept queue, for all causes that it has a part in: what to know about it, its knobs, and its remedy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.diagnosis.causes.remedies import more
from analysis.formatting import spoken

if TYPE_CHECKING:
    from analysis.diagnosis.causes.remedies import Recorded, Remedy

KNOBS = {
    "{server}.connections": "how many connections {server} serves at once",
    "{server}.backlog": "how many more may wait in its accept queue",
    "kernel.{server}.net.core.somaxconn": "the kernel's own bound for that queue, which cuts a longer one",
    "{server}.idle": "how long an idle client keeps its place",
}
QUEUE = (
    "Before a program sees a new connection, the kernel of its machine completes it and puts it into the accept queue"
    " of the listening socket. There it waits until the program accepts it. The queue has a limit, and holds one"
    " connection more than that."
)
SILENCE = (
    "When the queue is full, the kernel throws away the first packet of a new connection, the SYN, and says nothing."
    " The client cannot distinguish that from a slow network: it sends the SYN again after longer and longer pauses,"
    " until one finds a place or its connect time-out ends. No log of the server shows it. Only the kernel counts it,"
    " as TcpExt.ListenOverflows."
)


def more_places(run: Recorded) -> Remedy | None:
    """Give more places where most SYNs were dropped: connections that are served, or else those that may wait."""
    role = run.crowded
    each, queue = math.ceil(run.at_once / run.instances(role)), run.queue_of(role)
    connections = run.limit(role, "connections")
    if connections is None:
        why = f"{each} connections may wait for each {role} to accept them; net.core.somaxconn must not be less"
        return more(run, run.limit(role, "backlog"), each, why)
    if run.keeps_connections and run.manifest["path"] == [run.client, role]:
        why = f"{each} connections for each {role}: clients keep theirs{_with_fewer(run, role, each, queue)}"
        return more(run, connections, each, why)
    if queue is None:
        return more(run, connections, each, f"{each} connections may come to each {role} at once")
    why = f"{each} connections for each {role}, less the {queue} + 1 that its accept queue holds"
    return more(run, connections, max(1, each - queue - 1), why)


def _with_fewer(run: Recorded, role: str, each: int, queue: int | None) -> str:
    """Say what becomes of users with as few connections as let nobody fail: that is what a search finds."""
    if queue is None or each <= queue + 1:
        return ", so users in the accept queue wait long"
    idle = run.limit(role, "idle")
    kept = run.knob(idle) if idle else None
    until = "another's connection ends"
    if isinstance(kept, int) and kept:
        until = f"another's idle connection ends, {spoken(kept)} and more"
    waiting = "1 user waits" if queue == 0 else f"{queue + 1} users wait"
    return f". With {each - queue - 1} nobody fails either, but {waiting} in the accept queue until {until}"
