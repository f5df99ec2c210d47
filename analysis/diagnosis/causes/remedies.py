"""Remedies: the knob that helps against a cause, and its value, computed from what a run had set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analysis.formatting import format_count, format_knob, format_ms
from formats.field_types import Scalar
from formats.manifest import SOMAXCONN, Manifest

TIMEOUT_MARGIN_MS = 1000
NO_KNOB = "no single setting fixes it; 'connlab explain' (make explain) explains single requests"


@dataclass(frozen=True)
class Remedy:
    """A knob, its value and how that was computed.

    Attributes:
        besides: what has to go with it, as knobs and values.
        choices: where more than one value helps, each with what it is for, the smallest first.
    """

    knob: str
    value: str
    why: str
    besides: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


class AdvisedRun:
    """A run that a remedy is for: its settings, its ledger, and where its cause lies.

    Args:
        manifest: what it was made of.
        ledger: the content of derived/ledger.json.
        hop: the two roles between which most requests met the cause; the first two of the path if nobody says so.
    """

    def __init__(self, manifest: Manifest, ledger: Mapping[str, Any], hop: tuple[str, str] | None = None) -> None:
        self.manifest = manifest
        self.ledger = ledger
        self._hop = hop

    def knob(self, name: str) -> Scalar | None:
        """Return a knob's value, durations in ms; raise KeyError if the path has no such knob."""
        return self.manifest.knobs[name].value

    def integer(self, name: str) -> int:
        """Return the value of a knob that is a number, durations in ms; raise KeyError where there is none."""
        value = self.knob(name)
        if value is None:
            raise KeyError(name)
        return int(value)

    def shown(self, name: str) -> str:
        """Return a knob's value with the lines of the user's configuration that say it."""
        knob = self.manifest.knobs.get(name)
        return "" if knob is None else ", ".join([format_knob(knob), *(knob.where or ())])

    def has(self, knob: str) -> bool:
        """Return whether the path has the role that a knob is of."""
        first, second = knob.split(".")[:2]
        return (second if first == "kernel" else first) in self.manifest.path

    @property
    def client(self) -> str:
        """The client: the path begins with it."""
        return self.manifest.path[0]

    @property
    def server(self) -> str:
        """The role that answers the requests."""
        return self.manifest.request_path[-1]

    @property
    def behind(self) -> tuple[str, str] | None:
        """The service that answers and the server that it asks, if that is the hop on which the cause lies."""
        return self._hop if self._hop == self.manifest.behind else None

    @property
    def hop(self) -> tuple[str, str]:
        """The two roles between which most requests met the cause."""
        if self._hop is not None:
            return self._hop
        first, *others = self.manifest.request_path
        return first, next(iter(others), first)

    @property
    def dial_timer(self) -> str:
        """Which setting says how long the hop's client waits for a connection, behind a semicolon; nothing if none."""
        knob = self.limit(self.hop[0], "connect_timeout")
        return f"; {knob}, now {self.shown(knob)}, says how long {self.hop[0]} waits" if knob else ""

    @property
    def proxy(self) -> str | None:
        """The last proxy of the path, or the one on whose hop the cause lies; None where there is none."""
        if self.behind and self.manifest.roles[self.behind[0]].limiting_knobs():
            return self.behind[0]
        return next((role for role in reversed(self.manifest.path) if self.manifest.kind_of(role) == "proxy"), None)

    @property
    def backends(self) -> int:
        """How many instances the last server has."""
        return self.instances(self.server)

    def instances(self, role: str) -> int:
        """Return how many instances a role has."""
        return len(self.manifest.of_role(role)) or 1

    def limit(self, role: str | None, what: str) -> str | None:
        """Return the knob that bounds this at a role; None where there is none, or its program has it fixed."""
        declared = self.manifest.roles.get(role or "")
        return declared.limiting_knobs().get(what) if declared else None

    @property
    def at_once(self) -> int:
        """Requests, or connections, that the load has under way at the same time at most."""
        workload = self.knob("load.workload")
        if workload == "sequential":
            return 1
        if workload == "spike":
            arriving = self.integer("load.rate_per_second") * (self.integer("load.duration") / 1000)
            # Without a delay of the handler's nothing says how long a request lasts.
            lasting = self.integer("load.rate_per_second") * self.integer("load.handler_delay") / 1000 or arriving
            return math.ceil(min(arriving, lasting, self.integer("load.max_users")))
        beside = {"slow_clients": "load.slow_users", "half_open": "load.half_open"}.get(str(workload))
        return self.integer("load.users") + (self.integer(beside) if beside else 0)

    @property
    def keeps_connections(self) -> bool:
        """Return whether the clients keep their connections for further requests."""
        return self.knob("load.workload") != "tcp" and self.knob("load.keep_alive") is True

    def setting(self, role: str, what: str) -> str | None:
        """Return a setting of a service's own program, with its line in the scenario's files; None if unknown."""
        found = self.manifest.settings.get(role, {}).get(what)
        if found is None:
            return None
        place = f"{found.where}: {found.text}" if found.where else "no file of the scenario sets it"
        return f"{found.program}'s {found.setting} ({place})"

    def or_more_workers(self, role: str) -> str:
        """Return the setting that lets a service serve more at once, behind a semicolon; nothing if unknown."""
        own = self.setting(role, "workers")
        return f"; or let it serve more at once: raise {own}" if own else ""

    def holders_of(self, role: str) -> list[dict[str, Any]]:
        """Return who held the connections of a role's instances while others waited, as the ledger has it."""
        instances = self.manifest.of_role(role)
        return [one for one in self.ledger.get("holders", ()) if one["instance"] in instances]

    def queue_of(self, role: str) -> int | None:
        """Return the limit of a role's accept queue, as the kernel has it; None where no knob is its backlog."""
        knob = self.limit(role, "backlog")
        if knob is None:
            return None
        somaxconn = self.manifest.sysctl(next(iter(self.manifest.of_role(role)), role), SOMAXCONN)
        return min(self.integer(knob), int(somaxconn)) if somaxconn else self.integer(knob)

    def queues_of(self, role: str) -> int:
        """Return how many accept queues an instance has at one address and port: several with SO_REUSEPORT."""
        instance = next(iter(self.manifest.of_role(role)), role)
        port = self.manifest.port_of(instance)
        counts = Counter(one.address for one in self.manifest.listeners.get(instance, ()) if one.port == port)
        return max(counts.values(), default=1)

    @property
    def crowded(self) -> str:
        """The role before which most SYNs of requests were dropped; the one that answers where all are alike."""
        dropped: dict[str, int] = {
            hop["to"]: sum(filter(None, hop["dropped_syns"].values())) for hop in self.ledger["hops"]
        }
        return max(reversed(self.manifest.request_path[1:]), key=lambda role: dropped.get(role, 0))


def raise_knob(
    run: AdvisedRun, knob: str | None, value: int, why: str, shown: Callable[[int], str] = str
) -> Remedy | None:
    """Return a greater value; None where there is no such knob, or the value is no greater."""
    return Remedy(knob, shown(value), why) if knob is not None and run.integer(knob) < value else None


def set_sysctl(run: AdvisedRun, knob: str, value: str, why: str) -> Remedy | None:
    """Return a value of a sysctl; None where the path has nobody to set it for, or has set it."""
    return Remedy(knob, value, why) if run.has(knob) and run.manifest.value_of(knob) != value else None


KNOBS = {
    "{server}.connections": "how many connections {server} serves at once",
    "{server}.backlog": "how many more may wait in its accept queue",
    "kernel.{server}.net.core.somaxconn": "the kernel's upper limit for that queue",
    "{server}.idle": "how long an idle client keeps its place",
}
QUEUE = (
    "The kernel completes a new connection and puts it into the accept queue of the listening socket, where it waits"
    " until the program accepts it. The queue holds limit + 1 connections."
)
SILENCE = (
    "When the queue is full, the kernel drops the SYN of a new connection and sends no answer. The client cannot"
    " distinguish that from a slow network: it retransmits the SYN after longer and longer pauses, until one finds a"
    " place or the connect timeout ends. No log of the server shows the drop. Only the kernel counts it, as"
    " TcpExt.ListenOverflows."
)


def share_a_queue(run: AdvisedRun, role: str) -> str | None:
    """Return advice for a role with several accept queues at one port; None for one with a single queue."""
    queues = run.queues_of(role)
    if queues == 1:
        return None
    return (
        f"{role} has {queues} accept queues at one port, one for each socket that listens there (SO_REUSEPORT), and the"
        " kernel deals connections out by a hash of their ends, be a queue full or not: find out which process does"
        " not accept, or let all of them share one socket; longer queues only let more connections wait for it"
        f" (listen.{role}.full_beside_empty says how often one was full beside an empty one)"
    )


def more_files(role: str, process: str, files: int) -> str:
    """Return the advice for a process that had as many files open as it may."""
    return (
        f"a process of {role}, {process}, had {files:,} files open, as many as it may, and each connection is one:"
        " raise its limit of open files (ulimit -n, LimitNOFILE of its unit, ulimits.nofile of its container)"
    )


def files_of_the_queue(run: AdvisedRun, role: str) -> str | None:
    """Return that advice for a role that accepted no more connections because of it; None for others."""
    found = [one for one in run.holders_of(role) if one.get("files") is not None]
    return more_files(role, found[0]["process"], found[0]["files"]) if found else None


def leave_silent_clients(run: AdvisedRun, role: str) -> str | None:
    """Return who must wait less, where clients that had sent nothing held most of a role's places; None elsewhere."""
    found = run.holders_of(role)
    silent, held = (sum(one[name] for one in found) for name in ("silent", "held"))
    if 2 * silent <= held:
        return None
    own = run.setting(role, "silence")
    return (
        f"of {format_count(held, 'connection')} that {role} held while others waited, clients had sent nothing on"
        f" {silent:,}: let it wait less for a request ({own or 'its timeout for the header of one'}), or let a silent"
        f" client take none of its places (a proxy before it, or a server that waits for many clients at once)"
        f"{run.or_more_workers(role)}"
    )


def more_places(run: AdvisedRun) -> Remedy | str | None:
    """Return more places where most SYNs were dropped: connections that are served, or else those that may wait."""
    role = run.crowded
    if told := share_a_queue(run, role) or files_of_the_queue(run, role) or leave_silent_clients(run, role):
        return told
    own = run.setting(role, "backlog")
    if own and not run.limit(role, "connections") and not run.limit(role, "backlog"):
        return (
            f"more connections must find a place to wait until {role} accepts them: raise {own};"
            f" kernel.{role}.net.core.somaxconn must not be less{run.or_more_workers(role)}"
        )
    each = math.ceil(run.at_once / run.instances(role))
    if found := _more_connections(run, role, each):
        return found
    why = f"{each} connections may wait for each {role} to accept them; net.core.somaxconn must not be less"
    return raise_knob(run, run.limit(role, "backlog"), each, why)


def _more_connections(run: AdvisedRun, role: str, each: int) -> Remedy | None:
    """Return more connections at once, for `each` that may come; None where a role has enough, or they are unknown."""
    connections, queue = run.limit(role, "connections"), run.queue_of(role)
    if connections is None or connections not in run.manifest.knobs:
        return None
    if queue is None:
        return raise_knob(run, connections, each, f"{each} connections may come to each {role} at once")
    held = queue + 1
    kept = run.keeps_connections and run.manifest.path[:2] == [run.client, role]
    # Who waits for a client that keeps its connection waits long, so that there all are served at once.
    value = each if kept else max(1, each - held)
    remedy = raise_knob(
        run, connections, value, f"{each} connections for each {role}, whose accept queue holds {queue} + 1"
    )
    if remedy is None or each <= held:
        return remedy
    waiting = (
        f"{held} {'user waits' if held == 1 else 'users wait'} in the accept queue until {_ends(run, role, kept=kept)}"
    )
    found = {each - held: f"nobody fails, but {waiting}", each: "nobody waits"}
    now = run.integer(connections)
    return replace(remedy, choices={str(value): effect for value, effect in found.items() if value > now})


def _ends(run: AdvisedRun, role: str, *, kept: bool) -> str:
    """Return what a connection in the accept queue waits for."""
    idle = run.limit(role, "idle")
    if not kept or idle is None or not isinstance(idle_ms := run.knob(idle), int) or not idle_ms:
        return "another's connection ends"
    return f"another's idle connection ends, after {format_ms(idle_ms)} or more"
