"""How many connections failed behind a count of ListenOverflows: the bounds that the kernel's rules give.

A server's kernel adds one to `TcpExt.ListenOverflows` for each SYN that meets a full accept queue
(tcp_conn_request(), net/ipv4/tcp_input.c). A client that gets no answer sends the next SYN of its ladder until its
connect timeout, so a connection that failed in front of a queue that stayed full cost as many overflows as its
ladder has SYNs by then. docs/estimate.md derives the bounds, and says what they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis import figures
from analysis.database import sql
from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.model_settings import ModelNotApplicable, Settings
from analysis.diagnosis.syn_ladder import (
    LINEAR_TIMEOUTS,
    SYN_RETRIES,
    SYSCTLS,
    TIMEOUT_MAX,
    TIMEOUT_MAX_MS,
    Syn,
    before,
    syn_ladder,
    sysctls_of,
)
from analysis.expressions.values import Unknown, Value, is_number, merge, unknown
from analysis.figures import Run

_OVERFLOWS = "ListenOverflows"
_DEFAULTS = {SYN_RETRIES: 6, TIMEOUT_MAX: TIMEOUT_MAX_MS}

# Clients in production are seldom known. tcp_syn_linear_timeouts came with Linux 6.5, whose commit ccce324dabfe chose
# its default to follow what macOS and iOS had done for long.
_KERNELS = {"Linux before 6.5": 0, "Linux from 6.5 on, macOS, iOS": 4}


@dataclass(frozen=True, slots=True)
class SynTimers:
    """What decides when a client sends SYNs: its kernel's SYSCTLS, and how long it waits for a connection."""

    name: str
    sysctls: Mapping[str, int]
    connect_timeout_ms: int

    @property
    def ladder(self) -> tuple[Syn, ...]:
        """The SYNs of an attempt that nothing answers and no one ends."""
        return syn_ladder(*(self.sysctls[name] for name in SYSCTLS))

    @property
    def syns_ms(self) -> tuple[int, ...]:
        """When the SYNs of an attempt leave that nothing answers, at the earliest, until the connect timeout."""
        return tuple(syn.earliest_ms for syn in before(self.ladder, self.connect_timeout_ms))

    @property
    def next_syn_ms(self) -> int | None:
        """When the first SYN would be due that comes too late; None if the kernel gives up by itself before."""
        ladder, sent = self.ladder, len(self.syns_ms)
        return ladder[sent].earliest_ms if sent < len(ladder) else None

    @property
    def syns_max(self) -> int:
        """The SYNs of a failed connection, at most."""
        return len(self.syns_ms)

    @property
    def syns_min(self) -> int:
        """The SYNs of a failed connection, at least: the kernel's timer may be late, and the last SYN stays away."""
        return sum(syn.latest_ms < self.connect_timeout_ms for syn in self.ladder)


@dataclass(frozen=True, slots=True)
class FailedBounds:
    """Failed connections behind a number of overflows.

    `most` holds whatever else was counted. The least is 0: all may have got in on a later SYN. That every overflow
    belongs to a connection that failed gives `least_if_none_got_in`.
    """

    least_if_none_got_in: int
    most: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bounds of failed connections, for each client and for any mixture of them."""

    overflows: int
    clients: tuple[SynTimers, ...]

    @property
    def bounds(self) -> FailedBounds:
        """For any mixture of the clients."""
        return bounds_by_syns(
            self.overflows,
            min(client.syns_min for client in self.clients),
            max(client.syns_max for client in self.clients),
        )

    def bounds_of(self, client: SynTimers) -> FailedBounds:
        """If all clients were as this one."""
        return bounds_by_syns(self.overflows, client.syns_min, client.syns_max)


def bounds_by_syns(overflows: int, syns_min: int, syns_max: int) -> FailedBounds:
    """Return the bounds where a failed connection sends so many SYNs at the least and at the most."""
    most = overflows // syns_min
    # Rounded up, it may pass `most`: then no number of failures alone makes that many overflows.
    return FailedBounds(min(-(-overflows // syns_max), most), most)


def plausible_clients(connect_timeout_ms: int, sysctls: Mapping[str, int]) -> tuple[SynTimers, ...]:
    """Return the clients that there may be, by their connect timeout, above 0, and what is known of their SYSCTLS.

    The others are at their defaults. Whether there are linear timeouts depends on the kernel, so without them there are
    two kinds of clients.
    """
    known = _DEFAULTS | dict(sysctls)
    if LINEAR_TIMEOUTS in known:
        return (SynTimers("clients with these sysctls", known, connect_timeout_ms),)
    return tuple(
        SynTimers(name, {**known, LINEAR_TIMEOUTS: linear}, connect_timeout_ms) for name, linear in _KERNELS.items()
    )


@dataclass(frozen=True, slots=True)
class CheckedEstimate:
    """An estimate from a run's own counter, beside the true number.

    Attributes:
        estimate: what the counter, the ladder and the connect timeout give.
        failed: dials that ended at the connect timeout.
        servers: the instances whose kernels' counter it is.
        syn_queue_drops: SYNs that met a full SYN queue there, 0 if that is not known; no overflow counts them.
        elsewhere: what other servers of the path counted, by instance, where they counted any.
    """

    estimate: Estimate | Unknown
    failed: int | Unknown
    servers: tuple[str, ...] = ()
    syn_queue_drops: int = 0
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    @property
    def within(self) -> bool | Unknown:
        """Return whether the true number lies within the bounds."""
        if isinstance(self.estimate, Estimate) and isinstance(self.failed, int):
            return self.failed <= self.estimate.bounds.most
        return merge(*(each for each in (self.estimate, self.failed) if isinstance(each, Unknown)))


def estimate_run(run: Run) -> CheckedEstimate:
    """Estimate a run's failed connections at its first hop, and count them."""
    first, *others = run.raw.manifest.path[1:] or [""]
    counts = {
        each: _counter(run, each.replace("-", "_"), _OVERFLOWS) for role in others for each in run.instances(role)
    }
    drops = _counter(run, first, "TCPReqQFullDrop") if first else 0
    return CheckedEstimate(
        _estimate_of(run, first),
        _failed(run),
        tuple(run.instances(first)),
        0 if isinstance(drops, Unknown) else drops,
        {each: count for each, count in counts.items() if isinstance(count, int) and count > 0},
    )


def _counter(run: Run, server: str, name: str) -> int | Unknown:
    return _count(figures.value(run, f"kernel.{server}.TcpExt.{name}"))


def _estimate_of(run: Run, server: str) -> Estimate | Unknown:
    if not server:
        return unknown("the manifest names no server")
    overflows = _counter(run, server, _OVERFLOWS)
    if isinstance(overflows, Unknown):
        return overflows
    settings = Settings(run.raw.manifest)
    try:
        timeout_ms = settings.integer("load.connect_timeout")
        clients = tuple(
            SynTimers(each, sysctls_of(settings, each), timeout_ms)
            for each in settings.instances(settings.manifest.client)
        )
    except ModelNotApplicable as undefined:
        return unknown(str(undefined))
    return Estimate(overflows, clients)


def _failed(run: Run) -> int | Unknown:
    """Return how many dials ended at the connect timeout; this asks only that all were recorded.

    Whether the load was what the scenario asked for does not matter here.
    """
    asked = sql(__name__, "dials_of_clients")
    return _count(
        run.resting_on(
            run.clients,
            {Evidence.DIALS: CLIENT},
            lambda _: run.raw.records.row(asked, instances=run.clients)["kinds"].get("timeout", 0),
        )
    )


def _count(value: Value) -> int | Unknown:
    if isinstance(value, Unknown):
        return value
    return int(value) if is_number(value) else unknown("a count is not a number")
