"""What the captures say of the connections between two roles, each counted once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from analysis.account.ports import TIME_WAIT_MS
from analysis.database import sql
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.measured_run import Run, total
from analysis.figures.pattern import Compute, Figure
from analysis.figures.statistics import milliseconds, statistic
from analysis.health import Evidence
from analysis.model.ladder import timer_lateness_ms

if TYPE_CHECKING:
    from analysis.account.joins import Joined
    from analysis.evidence.bulk import Integers
    from analysis.evidence.samples import Samples

_SOURCE = "capture.pcap of one end"

# A sampler that is ready to read may have to wait for a processor first.
_TICK_SLACK_MS = 50

# Figure → its meaning, and SQL that counts the connections of a server in the window (account.joins.connections).
_COUNTS = {
    "total": ("Connections begun.", "count(*)"),
    "established": ("Connections established as the client sees them.", "count(*) FILTER (established)"),
    "refused": ("Connections that the server answered with RST.", "count(*) FILTER (refused)"),
    "unanswered": ("Connections whose SYNs got no answer.", "count(*) FILTER (NOT answered AND NOT refused)"),
    "half_open": (
        "Connections that the server answered but the client did not complete.",
        "count(*) FILTER (answered AND NOT established)",
    ),
    "healed": (
        "Connections established although SYNs were lost: the user sees latency, but no error.",
        "count(*) FILTER (established AND syns_lost > 0)",
    ),
    "syns": ("SYNs, retransmissions included.", "coalesce(sum(syn_count), 0)"),
    "syn_unanswered": ("SYNs without an answer.", "coalesce(sum(syns_lost), 0)"),
    "syn_healed": (
        "Unanswered SYNs of connections whose later SYN was answered.",
        "coalesce(sum(syns_lost) FILTER (answered_us IS NOT NULL), 0)",
    ),
    "syn_failed": (
        "Unanswered SYNs of connections that never got an answer.",
        "coalesce(sum(syns_lost) FILTER (answered_us IS NULL), 0)",
    ),
    "syn_retransmissions": ("Retransmitted SYNs.", "coalesce(sum(syn_retransmissions), 0)"),
    "synack_retransmissions": (
        "Retransmitted SYN-ACKs.",
        "coalesce(sum(synack_count - 1) FILTER (synack_count > 0), 0)",
    ),
    "entered": ("Connections that entered the server's accept queue.", "count(*) FILTER (entered)"),
    # Two processors may each make the connection, and one throws its own away: tcp_v4_syn_recv_sock, own_req.
    "made_at_once": (
        "Connections whose handshake's last ACK and first data came within 50 µs; PassiveOpens may count one twice.",
        "count(*) FILTER (client_first_data_time_us - handshake_ack_time_us < 50)",
    ),
    "perhaps_unknown": (
        "Connections that a SYN cookie may have made; the capture does not show whether the server ever had them.",
        "count(*) FILTER (perhaps_unknown)",
    ),
    "ack_dropped.min": (
        "Packets after the SYN that met a full accept queue (the handshake's last ACK, and data): the lower bound.",
        "coalesce(sum(ack_dropped_min), 0)",
    ),
    "ack_dropped.max": ("The same: the upper bound.", "coalesce(sum(ack_dropped_max), 0)"),
    "closed_by_client": ("Connections that the client closed first.", "count(*) FILTER (closed_by = 'client')"),
    "closed_by_server": ("Connections that the server closed first.", "count(*) FILTER (closed_by = 'server')"),
    "reset_by_client": (
        "Connections whose first RST came from the client.",
        "count(*) FILTER (first_rst_by = 'client')",
    ),
    "reset_by_server": (
        "Connections whose first RST came from the server, refused ones included.",
        "count(*) FILTER (first_rst_by = 'server')",
    ),
    "retransmissions": (
        "Retransmitted packets with data, from either side.",
        "coalesce(sum(client_retransmissions + server_retransmissions), 0)",
    ),
    "port_reuses": (
        "Connections between the same two addresses and ports as an earlier one.",
        "count(*) FILTER (reused_port_of IS NOT NULL)",
    ),
}  # fmt: skip

_OF_SERVER = "in_window AND to_instance = $instance"


def _of_connections(value: Callable[[Run, Joined, list[str], Mapping[str, str]], Value]) -> Compute:
    """A value of the connections to a server role, or to one of its instances."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        if isinstance(joined, Unknown):
            return joined
        servers = run.instances(found["server"])
        observers = run.observers_to(servers)
        if isinstance(observers, Unknown):
            return observers
        evidence = {Evidence.PACKETS: "capture", Evidence.TIMES: ""}
        return run.resting_on(observers, evidence, lambda _: value(run, joined, servers, found))

    return compute


_ALL_COUNTS = f"""
    SELECT {", ".join(f'({sql})::BIGINT AS "{name}"' for name, (_, sql) in _COUNTS.items())}
      FROM connections WHERE {_OF_SERVER}
"""  # noqa: S608  names of our own


def _count(name: str) -> Compute:
    def count(_run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
        return total(joined.row(_ALL_COUNTS, instance=each)[name] for each in servers)

    return _of_connections(count)


def _listed(joined: Joined, servers: list[str], sql: str) -> Integers:
    query = f"SELECT {sql} AS value FROM connections WHERE {_OF_SERVER} AND value IS NOT NULL"  # noqa: S608  names of our own
    return np.array([row["value"] for each in servers for row in joined.rows(query, instance=each)], dtype=np.int64)


def _syns_of_unanswered(_run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
    return tuple(np.sort(_listed(joined, servers, "if(NOT answered AND NOT refused, syn_count, NULL)")).tolist())


def _handshakes(_run: Run, joined: Joined, servers: list[str], found: Mapping[str, str]) -> Value:
    times_us = _listed(joined, servers, "handshake_us")
    return statistic(times_us, found["statistic"]) if "statistic" in found else milliseconds(times_us)


_OVERFLOWS = "TcpExt.TCPTimeWaitOverflow"


def _time_wait(bound: str) -> Compute:
    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined, instances = run.joined, run.instances(found["role"])
        if isinstance(joined, Unknown):
            return joined
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
    short_us = 1000 * (TIME_WAIT_MS - _TICK_SLACK_MS)
    long_us = 1000 * (TIME_WAIT_MS + timer_lateness_ms(TIME_WAIT_MS) + _TICK_SLACK_MS)
    overflows = _Overflows(samples, span.last)
    row = joined.row(
        sql(__name__, "time_wait"),
        instance=instance,
        tick_us=tick_us,
        slack_us=1000 * _TICK_SLACK_MS,
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
        """How many, from the last tick before a time on."""
        return int(self._counts[-1] - self._counts[self._before(time_us)])

    def begin_us(self, time_us: int) -> int:
        """When the first of these may have been: the last tick without it, or the last of all if there is none."""
        first = int(np.searchsorted(self._counts, self._counts[self._before(time_us)], side="right"))
        return self._times_us[first - 1]

    def _before(self, time_us: int) -> int:
        return max(bisect_right(self._times_us, time_us) - 1, 0)


FIGURES: tuple[Figure, ...] = (
    *(
        Figure(f"flows.<server>.{name}", Kind.NUMBER, "", meaning, _SOURCE, _count(name))
        for name, (meaning, _) in _COUNTS.items()
    ),
    Figure(
        "flows.<server>.syns_of_unanswered.list",
        Kind.LIST,
        "SYNs",
        "The number of SYNs of each connection that got no answer.",
        _SOURCE,
        _of_connections(_syns_of_unanswered),
    ),
    Figure(
        "flows.<server>.handshake_ms.list",
        Kind.LIST,
        "ms",
        "From the first SYN of each connection to the packet that completed its handshake.",
        _SOURCE,
        _of_connections(_handshakes),
    ),
    Figure(
        "flows.<server>.handshake_ms.<statistic>",
        Kind.NUMBER,
        "ms",
        "A statistic of that list.",
        _SOURCE,
        _of_connections(_handshakes),
    ),
    Figure(
        "flows.<role>.time_wait.min",
        Kind.NUMBER,
        "sockets",
        "For one instance: the least number of sockets in TIME_WAIT at the window's end. It follows from which side"
        " closed first and when, and from how many the kernel had no room for (TCPTimeWaitOverflow).",
        _SOURCE,
        _time_wait("least"),
    ),
    Figure(
        "flows.<role>.time_wait.max",
        Kind.NUMBER,
        "sockets",
        "The greatest possible number: the kernel's timer and the reading of the samples may be late, and the kernel"
        " also counts sockets in FIN_WAIT2 that no process holds.",
        _SOURCE,
        _time_wait("most"),
    ),
)
