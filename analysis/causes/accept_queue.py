"""The accept queue, for all causes that it has a part in: what to know of it, its knobs, and its remedy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.causes.remedies import more

if TYPE_CHECKING:
    from analysis.causes.remedies import Recorded, Remedy

KNOBS = {
    "backend.max_connections": "how many connections Tomcat serves at once",
    "backend.accept_count": "how many more may wait in the accept queue (no more than net.core.somaxconn)",
    "backend.keep_alive_timeout": "how long an idle client keeps its place",
    "nginx.listen_backlog": "how many connections may wait for nginx",
}
QUEUE = (
    "Before a program sees a new connection, the kernel of its machine completes it and puts it into the accept queue"
    " of the listening socket. There it waits until the program accepts it. The queue has a limit, and holds one"
    " connection more than that."
)
SILENCE = (
    "When the queue is full, the kernel throws away the first packet of a new connection, the SYN, and says nothing."
    " The client cannot tell that from a slow network: it sends the SYN again after longer and longer pauses, until one"
    " finds a place or its connect time-out ends. No log of the server tells of it. Only the kernel counts it, as"
    " TcpExt.ListenOverflows."
)


def more_places(run: Recorded) -> Remedy | None:
    """Give more places: connections at the backend, or those that may wait for nginx."""
    users, backends = run.at_once, run.backends
    if run.drops_at_nginx:
        return more(run, "nginx.listen_backlog", users, f"{users} users may wait for nginx to accept them")
    if run.server != "backend":
        return _at_service(run)
    if not run.has("backend.max_connections"):
        return None
    each = math.ceil(users / backends)
    if run.keeps_connections and run.manifest["path"] == ["k6", "backend"]:
        # With fewer nobody fails, but users in the queue wait for another's idle connection to end.
        why = f"{each} connections for each backend: clients keep theirs, so users in the accept queue wait long"
        return more(run, "backend.max_connections", each, why)
    value = max(1, each - run.backlog - 1)
    why = f"{each} connections for each backend, less the {run.backlog} + 1 that its accept queue holds"
    return more(run, "backend.max_connections", value, why)


def _at_service(run: Recorded) -> Remedy | None:
    """Give more places at a service of the scenario's own, by whichever of its limits can be set."""
    server, each = run.server, math.ceil(run.at_once / run.backends)
    limits = run.limits(server)
    if (connections := limits.get("connections")) is not None:
        return more(run, connections, each, f"{each} connections may come to each {server} at once")
    if (backlog := limits.get("backlog")) is not None:
        why = f"{each} connections may wait for each {server} to accept them; net.core.somaxconn must not be less"
        return more(run, backlog, each, why)
    return None
