"""What the captures say of the connections between two roles, each counted once."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from analysis.database import Integers, sql
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Joined, Row
from analysis.diagnosis.joins.connections import TIME_WAIT_MS
from analysis.diagnosis.syn_ladder import timer_lateness_ms
from analysis.evidence.logs import ACCESS
from analysis.evidence.samples import TICK_SLACK_US, Samples
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.declaration import Compute, Figure, figures_of_times, of_connections, of_joined
from analysis.figures.run import Run, list_or_statistic, total

_SOURCE = "capture.pcap of one end"
_figure = partial(Figure, source=_SOURCE)

# Figure, a column of connections_to.sql → its meaning.
_COUNTS = {
    "total": "Connections begun.",
    "established": "Connections established as the client sees them.",
    "refused": "Connections that the server answered with RST.",
    "unanswered": "Connections whose SYNs got no answer.",
    "half_open": "Connections that the server answered but the client did not complete.",
    "recovered": "Connections established although SYNs were lost: the user sees latency, but no error.",
    "syns": "SYNs, retransmissions included.",
    "syn_unanswered": "SYNs without an answer.",
    "syn_recovered": "Unanswered SYNs of connections whose later SYN was answered.",
    "syn_failed": "Unanswered SYNs of connections that never got an answer.",
    "syn_retransmissions": "Retransmitted SYNs.",
    "synack_retransmissions": "Retransmitted SYN-ACKs.",
    "entered": "Connections that entered the server's accept queue by the window's end.",
    "perhaps_entered": (
        "Connections that may have done so as the window ended: those that entered after it, and those that were still"
        " open when the capture ended before it could show whether the last ACK or data found room."
    ),
    "made_at_once": (
        "Connections whose handshake's last ACK and first data came within 50 µs; PassiveOpens may count one twice."
    ),
    "perhaps_unknown": (
        "Connections that a SYN cookie may have made; the capture does not show whether the server ever had them."
    ),
    "ack_dropped.min": (
        "Packets after the SYN that met a full accept queue (the handshake's last ACK, and data): the lower bound."
    ),
    "ack_dropped.max": "The same: the upper bound.",
    "in_vain": (
        "Connections that the server got and whose client asked, and left before the server sent anything: the server"
        " has the first request in its queue or at a thread, and nobody waits for the answer."
    ),
    "dropped_late": (
        "How many of `syn_unanswered` and `ack_dropped.min` came after the window's end. The last sample need not have"
        " them."
    ),
    "closed_by_client": "Connections that the client closed first.",
    "closed_by_server": "Connections that the server closed first.",
    "reset_by_client": "Connections whose first RST came from the client.",
    "reset_by_server": "Connections whose first RST came from the server, refused ones included.",
    "retransmissions": "Retransmitted packets with data, from either side.",
    "port_reuses": "Connections between the same two addresses and ports as an earlier one.",
}


def _sum(query: str, column: str) -> Compute:
    """Return the sum over a server's instances of what a query counts at each."""
    return of_connections(
        lambda _run, joined, servers, _found: total(
            joined.row(sql(__name__, query), instance=each)[column] for each in servers
        )
    )


def _checks(run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
    names = [hop.client for hop in joined.hops if set(run.instances(hop.server)) & set(servers)]
    clients = [role for name, role in run.raw.manifest.roles.items() if name in names and role.checks]
    if not clients:
        return 0
    if not any(of in ACCESS for role in clients for of in role.logs.values() if isinstance(of, str)):
        return unknown("the proxy sees no requests, so nothing tells their connections from those of checks")
    return total(joined.row(sql(__name__, "checks_to"), instance=each)["checks"] for each in servers)


# So near to a server's close is a request that its FIN might have met on the way, or a busy server read too late.
_NEAR_US = 50_000


def _kept(column: str, combine: Callable[[list[int]], int], unit_us: int = 1) -> Compute:
    """Return what the closes of idle connections tell of a server."""

    def value(_run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
        asked = (joined.rows(sql(__name__, "kept_by"), instance=each, near_us=_NEAR_US) for each in servers)
        found = [row[column] for rows in asked for row in rows]
        if not found:
            return unknown("it closed fewer than 5 idle connections, or at times that lie far apart")
        return combine(found) if unit_us == 1 else combine(found) / unit_us

    return of_connections(value)


def _listed(joined: Joined, servers: list[str], column: str) -> Integers:
    rows = [row for each in servers for row in joined.rows(sql(__name__, "of_each_connection"), instance=each)]
    return np.array([row[column] for row in rows if row[column] is not None], dtype=np.int64)


def _syns_of_unanswered(_run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
    return tuple(np.sort(_listed(joined, servers, "syns_of_unanswered")).tolist())


def _handshakes(_run: Run, joined: Joined, servers: list[str], found: Mapping[str, str]) -> Value:
    return list_or_statistic(_listed(joined, servers, "handshake_us"), found)


TLS_PREFIX = "flows.<server>.tls."


def _of_tls(value: Callable[[list[Row], Mapping[str, str]], Value]) -> Compute:
    """Return a value of the TLS handshakes with a server."""

    def of_rows(run: Run, joined: Joined, servers: list[str], found: Mapping[str, str]) -> Value:
        reductions = [reduction for reduction in run.raw.reductions.values() if reduction.rows is not None]
        if not all(reduction.knows_tls for reduction in reductions):
            return unknown("an earlier `flows` read the captures, and tells nothing of TLS")
        if any(capture.handshakes_only for capture in run.raw.captures.values()):
            return unknown("the captures have no data, which TLS handshakes are")
        rows = [row for each in servers for row in joined.rows(sql(__name__, "tls_handshakes_to"), instance=each)]
        return value(rows, found)

    return of_connections(of_rows)


def _times_of_tls(column: str) -> Compute:
    def times(rows: list[Row], found: Mapping[str, str]) -> Value:
        known = [row[column] for row in rows if row[column] is not None]
        return list_or_statistic(np.array(known, dtype=np.int64), found)

    return _of_tls(times)


_OVERFLOWS = "TcpExt.TCPTimeWaitOverflow"


def _time_wait(bound: str) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        instances = run.instances(found["role"])
        if len(instances) != 1:
            return unknown("TIME_WAIT is counted by instance")
        observers = run.observers_of(instances[0])
        if isinstance(observers, Unknown):
            return observers
        evidence = {Evidence.PACKETS: "capture", Evidence.TIMES: ""}
        return run.resting_on(observers, evidence, lambda _: _waiting(run, joined, instances[0], bound))

    return compute


def _waiting(run: Run, joined: Joined, instance: str, bound: str) -> Value:
    span, samples = run.spans[instance], run.raw.samples[instance]
    if isinstance(span, Unknown):
        return span
    tick_us = samples.ticks[span.last].time_us
    # By a timer of the kernel, which may be late.
    short_us = 1000 * TIME_WAIT_MS - TICK_SLACK_US
    long_us = 1000 * (TIME_WAIT_MS + timer_lateness_ms(TIME_WAIT_MS)) + TICK_SLACK_US
    overflows = _Overflows(samples, span.last)
    row = joined.row(
        sql(__name__, "time_wait"),
        instance=instance,
        tick_us=tick_us,
        slack_us=TICK_SLACK_US,
        short_us=short_us,
        long_us=long_us,
        overflow_us=overflows.begin_us(tick_us - long_us),
    )
    if bound == "least":
        return max(int(row["least"]) - overflows.since(tick_us - long_us), 0)
    return int(row["most"]) - max(overflows.since(tick_us - short_us) - int(row["gone"]), 0)


class _Overflows:
    """Sockets that an instance's kernel closed for want of room in TIME_WAIT, up to a tick."""

    def __init__(self, samples: Samples, last: int) -> None:
        self._times_us = [tick.time_us for tick in samples.ticks[: last + 1]]
        self._counts = samples.series(_OVERFLOWS)[: last + 1]

    def since(self, time_us: int) -> int:
        """Return how many, from the last tick before a time on."""
        return int(self._counts[-1] - self._counts[self._before(time_us)])

    def begin_us(self, time_us: int) -> int:
        """Return when the first may have been: the last tick without it, or the last of all if there is none."""
        first = int(np.searchsorted(self._counts, self._counts[self._before(time_us)], side="right"))
        return self._times_us[first - 1]

    def _before(self, time_us: int) -> int:
        return max(bisect_right(self._times_us, time_us) - 1, 0)


FIGURES: tuple[Figure, ...] = (
    _figure(
        "flows.<server>.checks",
        "Established connections that no request used, if the proxy in front makes health checks; 0 if it makes none.",
        of_connections(_checks),
    ),
    _figure(
        "flows.<server>.syns_before_socket",
        "SYNs without an answer that came to the server and to no socket of it: its kernel counted no drop around any"
        " of a connection's, and, where no later one was answered, sent no SYN-ACK again. A packet filter takes them,"
        " or connection tracking.",
        _sum("before_socket_of", "syns"),
        unit="SYNs",
    ),
    _figure(
        "flows.<server>.resent",
        "Requests that met a kept connection just as the server closed it, and that the client's side sent again over"
        " another one, without an error; without TLS.",
        _sum("resent_to", "resent"),
    ),
    _figure(
        "flows.<server>.others",
        "Established connections of clients that are not on the path, in the whole capture: of services beside it, or"
        " of what ran before the run, such as the probes of a cluster's node.",
        _sum("others_to", "others"),
    ),
    _figure(
        "flows.<server>.others_dropped",
        "Packets of such clients that met a full accept queue, or may have: SYNs, last ACKs of handshakes, data.",
        _sum("others_to", "dropped"),
        unit="packets",
    ),
    _figure(
        "flows.<server>.kept_ms.low",
        "How long the server kept idle connections, as measured from at least 5 that it closed: nine in ten were kept"
        " for this or longer. Unknown where it closed fewer, or at times that lie far apart, as in a reload.",
        _kept("low_us", min, 1000),
        unit="ms",
    ),
    _figure(
        "flows.<server>.kept_ms.high",
        "The same: nine in ten were kept for this or shorter. Near `low` where the server has a fixed timeout.",
        _kept("high_us", max, 1000),
        unit="ms",
    ),
    _figure(
        "flows.<server>.near_races",
        "Answered requests that came to a kept connection after it had been idle for `kept_ms.low`, less 50 ms, or for"
        " longer: the server was about to close it.",
        _kept("near", sum),
        unit="requests",
    ),
    *(
        _figure(f"flows.<server>.{name}", meaning, _sum("connections_to", name.replace(".", "_")))
        for name, meaning in _COUNTS.items()
    ),
    _figure(
        "flows.<server>.syns_of_unanswered.list",
        "The number of SYNs of each connection that got no answer.",
        of_connections(_syns_of_unanswered),
        kind=Kind.LIST,
        unit="SYNs",
    ),
    *figures_of_times(
        "flows.<server>.handshake_ms",
        "From the first SYN of each connection to the packet that completed its handshake.",
        _SOURCE,
        of_connections(_handshakes),
    ),
    _figure(
        f"{TLS_PREFIX}handshakes",
        "Connections on which the client began a TLS handshake.",
        _of_tls(lambda rows, _: len(rows)),
    ),
    _figure(
        f"{TLS_PREFIX}unanswered",
        "Those of them without a ServerHello.",
        _of_tls(lambda rows, _: sum(row["server_hello_us"] is None for row in rows)),
    ),
    *figures_of_times(
        f"{TLS_PREFIX}handshake_ms",
        "From the ClientHello to the packet that ended the TLS handshake, where its packets were captured.",
        _SOURCE,
        _times_of_tls("handshake_us"),
    ),
    *figures_of_times(
        f"{TLS_PREFIX}server_hello_ms",
        "From the ClientHello to the ServerHello: what the server and its accept queue took.",
        _SOURCE,
        _times_of_tls("server_hello_us"),
    ),
    *figures_of_times(
        f"{TLS_PREFIX}client_reply_ms",
        "From the ServerHello to the client's reply: what the client took, and a round trip at the server's end.",
        _SOURCE,
        _times_of_tls("client_reply_us"),
    ),
    _figure(
        "flows.<role>.time_wait.min",
        "For one instance: the least number of sockets in TIME_WAIT at the window's end. It follows from which side"
        " closed first and when, and from how many the kernel had no room for (TCPTimeWaitOverflow).",
        _time_wait("least"),
        unit="sockets",
    ),
    _figure(
        "flows.<role>.time_wait.max",
        "The greatest possible number: the kernel's timer and the reading of the samples may be late, and the kernel"
        " also counts sockets in FIN_WAIT2 that no process holds.",
        _time_wait("most"),
        unit="sockets",
    ),
)
