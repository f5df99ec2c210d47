"""Advice: the knob that the main cause of a run's failures points to, its value, and the command that tests it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.formatting import duration
from analysis.pages.report import reasons
from analysis.pages.report.again import again
from analysis.pages.report.reasons import UNEXPLAINED
from analysis.pages.report.record import Record

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
        cause: the run's main cause; None if every request was fine.
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
    """A knob, its value and how that was computed; `besides`: what has to go with it, as knobs and values."""

    knob: str
    value: str
    why: str
    besides: Mapping[str, str] = field(default_factory=dict)


class _Run:
    """What of a run's record the remedies read."""

    def __init__(self, manifest: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.ledger = ledger

    def knob(self, name: str) -> Any:  # noqa: ANN401  whatever a knob may be
        """A knob's value; durations in ms."""
        return self.manifest["knobs"][name]["value"]

    def integer(self, name: str) -> int:
        """The value of a knob that is a number; durations in ms."""
        return int(self.knob(name))

    def has(self, knob: str) -> bool:
        """Whether the path has the role that a knob is of."""
        first, second = knob.split(".")[:2]
        return (second if first == "kernel" else first) in self.manifest["path"]

    @property
    def backends(self) -> int:
        """How many backends there are."""
        return len(self.manifest["instances"].get("backend", [])) or 1

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
        """Whether the clients keep their connections for further requests."""
        return self.knob("load.workload") != "tcp" and self.knob("load.keep_alive") is True

    @property
    def backlog(self) -> int:
        """The accept queue's limit, as the kernel has it."""
        somaxconn = self.manifest.get("sysctls", {}).get("backend-1", {}).get("net.core.somaxconn")
        asked = self.integer("backend.accept_count")
        return min(asked, int(somaxconn)) if somaxconn else asked

    @property
    def drops_at_nginx(self) -> bool:
        """Whether SYNs were dropped before nginx, and not before the backend."""
        dropped: dict[str, int] = {
            hop["to"]: sum(filter(None, hop["dropped_syns"].values())) for hop in self.ledger["hops"]
        }
        return dropped.get("nginx", 0) > dropped.get("backend", 0)


def _more(run: _Run, knob: str, value: int, why: str, shown: Callable[[int], str] = str) -> _Remedy | None:
    """A greater value; None where the path has no such knob, or the value is no greater."""
    return _Remedy(knob, shown(value), why) if run.has(knob) and run.integer(knob) < value else None


def _other(run: _Run, knob: str, value: str, why: str) -> _Remedy | None:
    """A value of a sysctl; None where the path has nobody to set it for, or has set it."""
    now = run.manifest["knobs"].get(knob, {}).get("value")
    return _Remedy(knob, value, why) if run.has(knob) and now != value else None


def _places(run: _Run) -> _Remedy | None:
    users, backends = run.at_once, run.backends
    if run.drops_at_nginx:
        return _more(run, "nginx.listen_backlog", users, f"{users} users may wait for nginx to accept them")
    if not run.has("backend.max_connections"):
        return None
    each = math.ceil(users / backends)
    if run.keeps_connections and run.manifest["path"] == ["k6", "backend"]:
        # With fewer nobody fails, but users in the queue wait for another's idle connection to end.
        why = f"{each} connections for each backend: clients keep theirs, so users in the accept queue wait long"
        return _more(run, "backend.max_connections", each, why)
    value = max(1, each - run.backlog - 1)
    why = f"{each} connections for each backend, less the {run.backlog} + 1 that its accept queue holds"
    return _more(run, "backend.max_connections", value, why)


def _served_at_once(run: _Run) -> _Remedy | None:
    each = math.ceil(run.at_once / run.backends)
    why = f"{each} connections for each backend, none left in the queue"
    return _more(run, "backend.max_connections", each, why)


def _threads(run: _Run) -> _Remedy | None:
    value = min(run.at_once, run.integer("backend.max_connections"))
    return _more(run, "backend.threads_max", value, f"{value} requests may be under way at once")


def _worker_connections(run: _Run) -> _Remedy:
    workers = run.knob("nginx.worker_processes")
    count = run.manifest["host"]["cpus"] if workers == "auto" else int(workers)
    now = run.integer("nginx.worker_connections")
    value = math.ceil(_UNEVEN * 2 * run.at_once / count) + _WORKER_OWN
    if now >= value:
        return _Remedy("nginx.worker_connections", str(2 * now), f"twice what it was: {now} should have been enough")
    share = f"2 connections for each of {run.at_once} requests at once, over the workers ({count})"
    why = f"{share}, twice that for uneven arrivals, and {_WORKER_OWN} of its own"
    return _Remedy("nginx.worker_connections", str(value), why)


def _ports(run: _Run) -> _Remedy | None:
    proxy = next((role for role in run.manifest["path"] if role in ("nginx", "gateway")), None)
    # Who keeps connections to the proxy opens few of them: then the ports are the proxy's.
    role = proxy if proxy and run.keeps_connections else "k6"
    if role == "gateway" and (pool := _pool(run)):
        return pool
    why = "64,512 ports instead of the range that was held in TIME_WAIT"
    return _other(run, f"kernel.{role}.net.ipv4.ip_local_port_range", _PORTS, why)


def _pool(run: _Run) -> _Remedy | None:
    """A pool with room for all; None where that is not what the gateway lacks."""
    wanted = {
        "gateway.max_idle_conns": run.at_once,
        "gateway.max_idle_conns_per_host": math.ceil(run.at_once / run.backends),
    }
    # For max_idle_conns, 0 means any number.
    small = [name for name, most in wanted.items() if 0 < run.integer(name) < most]
    if not small or run.knob("gateway.disable_keep_alives") is True:
        return None
    first, *rest = sorted(small, key=run.integer)
    why = (
        f"{run.at_once} requests may be under way at once; the pool keeps {run.integer(first)} of their connections:"
        " each other one is closed after its request and holds its port for 60 s"
    )
    besides = {name: str(wanted[name]) for name in rest}
    if besides:
        why += (
            f"; {' and '.join(f'{name} to {value}' for name, value in besides.items())} with it, for the smaller counts"
        )
    return _Remedy(first, str(wanted[first]), why, besides)


def _connections(run: _Run) -> _Remedy | None:
    """More connections to each backend; None where no gateway limits them."""
    now = run.integer("gateway.max_conns_per_host") if "gateway" in run.manifest["path"] else 0
    if not now:
        return None
    each = math.ceil(run.at_once / run.backends)
    if now >= each:
        return _Remedy("gateway.max_conns_per_host", "0", f"no limit: {now} for each backend should have been enough")
    why = f"{each} connections for each backend: {run.at_once} requests may be under way at once"
    return _Remedy("gateway.max_conns_per_host", str(each), why)


def _cookies(run: _Run) -> _Remedy | None:
    role = "nginx" if run.drops_at_nginx else "backend"
    why = "the kernel then answers SYNs for which its queue has no place"
    return _other(run, f"kernel.{role}.net.ipv4.tcp_syncookies", "1", why)


def _idle_before_the_server(run: _Run) -> _Remedy | None:
    if run.manifest["path"] != ["k6", "nginx", "backend"]:
        return None
    knob = "nginx.upstream_keepalive_timeout"
    kept_ms = run.integer("backend.keep_alive_timeout")
    value_ms = max(kept_ms // 2, kept_ms - _TIMEOUT_MARGIN_MS)
    why = f"the proxy must give up an idle connection before the backend does, after {duration(kept_ms)}"
    return _Remedy(knob, duration(value_ms), why) if run.integer(knob) > value_ms else None


def _patience(run: _Run) -> _Remedy | None:
    value_ms = 2 * run.integer("load.handler_delay") + _TIMEOUT_MARGIN_MS
    why = "twice the time that the handler takes, and a second"
    return _more(run, "nginx.proxy_read_timeout", value_ms, why, duration)


_REMEDIES: Mapping[str, Callable[[_Run], _Remedy | None]] = {
    "accept-queue-drop": _places,
    "accept-queue-reset": _places,
    "syn-queue-drop": _cookies,
    "waited-for-syn-retry": _places,
    "waited-for-another-server": _places,
    "no-live-upstream": _places,
    "waited-in-accept-queue": _served_at_once,
    "waited-for-a-connection": _connections,
    "waited-for-a-thread": _threads,
    "proxy-connections-exhausted": _worker_connections,
    "ephemeral-ports-exhausted": _ports,
    "stale-keepalive": _idle_before_the_server,
    "upstream-timeout": _patience,
}
_INSTEAD = {
    "slow-handler": "the handler took that time; no setting of the path makes it faster",
    "generator-starved": "the generator, not the path, was too slow: ask for less load, or share it by load.instances",
    UNEXPLAINED: "no evidence proves a cause; derived/ledger.json says what is missing for each request",
}


def of_run(record: Record) -> Advice:
    """Give the advice on the main cause of a run, whose ledger has requests."""
    main = next(iter(reasons.of_run(record)), None)
    if main is None:
        return Advice(None, 0, "no request failed or was slow: there is nothing to change")
    return of_cause(record.manifest, record.ledger, main.name, main.count)


def of_cause(manifest: Mapping[str, Any], ledger: Mapping[str, Any], cause: str, count: int) -> Advice:
    """Give the advice on one cause of a run, which so many requests have.

    Args:
        manifest: the content of manifest.json.
        ledger: that of derived/ledger.json, which has requests.
        cause: of the closed list.
        count: the requests that have it.
    """
    remedy = _REMEDIES.get(cause)
    try:
        found = remedy(_Run(manifest, ledger)) if remedy else None
    except KeyError as missing:  # an older run's, from before there was such a knob
        return Advice(cause, count, f"its manifest does not have {missing.args[0]}, which the value rests on")
    if found is None:
        way_on = "no one knob heals it; 'connlab explain' (make explain) tells the story of a request"
        return Advice(cause, count, _INSTEAD.get(cause, way_on))
    test = again(manifest, {found.knob: found.value, **found.besides})
    why = f"{found.why}; {test.instead}" if test.instead else found.why
    return Advice(cause, count, why, found.knob, found.value, test.command)
