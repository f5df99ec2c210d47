"""Advice: the knob that the main cause of a run's failures points to, its value, and the command that tests it."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import manifest, paths
from lab.catalogue import show_value
from lab.errors import BadInput, Problem
from lab.ledger import LEDGER_FILE
from lab.manifest import Manifest
from lab.units import format_duration

UNEXPLAINED = "unexplained"

# A worker's connections besides the proxied requests: listener, management port and its poll, and nginx's own pipe.
_WORKER_OWN = 8
# Arrivals come in clusters, and the first ones take longer.
_UNEVEN = 2
_PORTS = "1024 65535"
_TIMEOUT_MARGIN_MS = 1000


@dataclass(frozen=True)
class Advice:
    """What to change, and why.

    Attributes:
        cause: the ledger's main cause; None if every request was fine.
        count: the requests that have it.
        knob: what to set; None where no setting of the path would help.
        value: as a scenario writes it.
        why: how the value comes about, or what to do instead.
        command: the one command that tests it.
    """

    cause: str | None
    count: int
    why: str
    knob: str | None = None
    value: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class _Remedy:
    """A knob, its value and how that was computed."""

    knob: str
    value: str
    why: str


class _Run:
    """What of a run's record the remedies read."""

    def __init__(self, recorded: Manifest, ledger: Mapping[str, Any]) -> None:
        self.manifest = recorded
        self.ledger = ledger

    def integer(self, knob: str) -> int:
        """A knob's value; durations in ms."""
        return int(self.manifest.knobs[knob].value)

    @property
    def at_once(self) -> int:
        """Requests, or connections, that the load has under way at the same time at most."""
        workload = self.manifest.knobs["load.workload"].value
        if workload == "sequential":
            return 1
        if workload == "spike":
            arriving = self.integer("load.rate_per_second") * (self.integer("load.duration") / 1000)
            lasting = self.integer("load.rate_per_second") * self.integer("load.handler_delay") / 1000
            return math.ceil(min(arriving, lasting, self.integer("load.max_users")))
        return self.integer("load.users")

    @property
    def keeps_connections(self) -> bool:
        """Whether the clients keep their connections for further requests."""
        knobs = self.manifest.knobs
        return knobs["load.workload"].value != "tcp" and knobs["load.keep_alive"].value is True

    @property
    def backlog(self) -> int:
        """The accept queue's limit, as the kernel has it."""
        somaxconn = self.manifest.sysctls.get("backend-1", {}).get("net.core.somaxconn")
        asked = self.integer("backend.accept_count")
        return min(asked, int(somaxconn)) if somaxconn else asked

    @property
    def drops_at_nginx(self) -> bool:
        """Whether SYNs were dropped before nginx, and not before the backend."""
        dropped: dict[str, int] = {
            hop["to"]: sum(filter(None, hop["dropped_syns"].values())) for hop in self.ledger["hops"]
        }
        return dropped.get("nginx", 0) > dropped.get("backend", 0)


def _places(run: _Run) -> _Remedy:
    users, backends = run.at_once, len(run.manifest.instances.get("backend", [])) or 1
    if run.drops_at_nginx:
        return _Remedy("nginx.listen_backlog", str(users), f"{users} users may wait for nginx to accept them")
    each = math.ceil(users / backends)
    value = max(1, each - run.backlog - 1)
    why = f"{each} connections for each backend, less the {run.backlog} + 1 that its accept queue holds"
    return _Remedy("backend.max_connections", str(value), why)


def _served_at_once(run: _Run) -> _Remedy:
    each = math.ceil(run.at_once / (len(run.manifest.instances.get("backend", [])) or 1))
    return _Remedy("backend.max_connections", str(each), f"{each} connections for each backend, none left in the queue")


def _threads(run: _Run) -> _Remedy:
    value = min(run.at_once, run.integer("backend.max_connections"))
    return _Remedy("backend.threads_max", str(value), f"{value} requests may be under way at once")


def _worker_connections(run: _Run) -> _Remedy:
    workers = run.manifest.knobs["nginx.worker_processes"].value
    count = run.manifest.host.cpus if workers == "auto" else int(workers)
    now = run.integer("nginx.worker_connections")
    value = math.ceil(_UNEVEN * 2 * run.at_once / count) + _WORKER_OWN
    if now >= value:
        return _Remedy("nginx.worker_connections", str(2 * now), f"twice what it was: {now} should have been enough")
    share = f"2 connections for each of {run.at_once} requests at once, over the workers ({count})"
    why = f"{share}, twice that for uneven arrivals, and {_WORKER_OWN} of its own"
    return _Remedy("nginx.worker_connections", str(value), why)


def _ports(run: _Run) -> _Remedy:
    role = "nginx" if "nginx" in run.manifest.path and run.keeps_connections else "k6"
    why = "64,512 ports instead of the range that was held in TIME_WAIT"
    return _Remedy(f"kernel.{role}.net.ipv4.ip_local_port_range", _PORTS, why)


def _idle_before_the_server(run: _Run) -> _Remedy:
    kept_ms = run.integer("backend.keep_alive_timeout")
    value = format_duration(max(kept_ms // 2, kept_ms - _TIMEOUT_MARGIN_MS))
    why = f"the proxy must give up an idle connection before the backend does, after {format_duration(kept_ms)}"
    return _Remedy("nginx.upstream_keepalive_timeout", value, why)


def _patience(run: _Run) -> _Remedy:
    value = format_duration(2 * run.integer("load.handler_delay") + _TIMEOUT_MARGIN_MS)
    return _Remedy("nginx.proxy_read_timeout", value, "twice the time that the handler takes, and a second")


_REMEDIES: Mapping[str, Callable[[_Run], _Remedy]] = {
    "accept-queue-drop": _places,
    "accept-queue-reset": _places,
    "waited-for-syn-retry": _places,
    "waited-in-accept-queue": _served_at_once,
    "waited-for-a-thread": _threads,
    "proxy-connections-exhausted": _worker_connections,
    "ephemeral-ports-exhausted": _ports,
    "stale-keepalive": _idle_before_the_server,
    "upstream-timeout": _patience,
}
_INSTEAD = {
    "slow-handler": "the handler took that time; no setting of the path makes it faster",
    "generator-starved": "the generator, not the path, was too slow: ask for less load, or share it by load.instances",
    "interrupted": "the test ended in the middle of these requests: raise load.max_duration",
    UNEXPLAINED: "no evidence proves a cause; derived/ledger.json says what is missing for each request",
}


def of_run(folder: Path) -> Advice:
    """Give the advice for a run.

    Raises:
        BadInput: the run has no ledger, or its records cannot be read.
    """
    try:
        recorded = manifest.load(folder)
        ledger = json.loads((folder / LEDGER_FILE).read_bytes())
    except (OSError, ValueError):
        what = f"{paths.shown(folder)} has no ledger that can be read"
        raise BadInput(Problem(what, way_on="derive it: 'connlab analyse' (make analyse RUN=…)")) from None
    if ledger["requests"] is None:
        what = f"the ledger of {paths.shown(folder)} is empty: {'; '.join(ledger['lacks'])}"
        raise BadInput(Problem(what, way_on="advise on a run that came to its end"))
    causes = {name: count for name, count in ledger["causes"].items() if count}
    if ledger["unexplained"]:
        causes[UNEXPLAINED] = ledger["unexplained"]
    if not causes:
        return Advice(None, 0, "no request failed or was slow: there is nothing to change")
    cause = max(causes, key=lambda name: (causes[name], name))
    remedy = _REMEDIES.get(cause)
    if remedy is None:
        way_on = "no one knob heals it; 'connlab explain' (make explain) tells the story of a request"
        return Advice(cause, causes[cause], _INSTEAD.get(cause, way_on))
    found = remedy(_Run(recorded, ledger))
    return Advice(cause, causes[cause], found.why, found.knob, found.value, _command(recorded, found))


def _command(recorded: Manifest, remedy: _Remedy) -> str:
    """Write the command that runs the same again with the one change."""
    sets = {
        name: show_value(name, knob.value).replace('""', "")
        for name, knob in recorded.knobs.items()
        if knob.source in ("set", "cell")
    } | {remedy.knob: remedy.value}
    texts = [f"{name}={value}" for name, value in sets.items()]
    if any(" " in text for text in texts):
        options = [
            *([f"--preset {recorded.preset}"] if recorded.preset else []),
            *(f"--set {shlex.quote(text)}" for text in texts),
        ]
        return " ".join([".venv/bin/connlab run", recorded.scenario, *options])
    preset = f" PRESET={recorded.preset}" if recorded.preset else ""
    return f'make run SCENARIO={recorded.scenario}{preset} SET="{" ".join(texts)}"'
