"""What the kernels told of the connections of a role: waits in the accept queue, what was sent again, resets."""

from collections.abc import Callable, Mapping

import numpy as np

from analysis.database import sql
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Joined
from analysis.evidence.kernel_events import TABLE
from analysis.evidence.window import Window
from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure, figures_of_times, of_connections
from analysis.figures.run import Run, list_or_statistic, total

_SOURCE = "collector: events.jsonl"
# A tick has one time, and reads the counters, then the queues; a program may lose its processor as it accepts.
_SAMPLE_SLACK_US = 20_000
_TOLD = {Evidence.KERNEL_EVENTS: "events"}

# Figure → which events it counts, and its meaning.
_COUNTS = {
    "queued": ("kind = 'queued' AND local_port = $port", "Connections that entered the accept queue of its port."),
    "accepted": ("kind = 'accepted' AND local_port = $port", "Connections that its program took out of that queue."),
    "connect_ended": ("kind = 'connect_ended'", "Attempts to connect, made by it, that ended without a connection."),
    "syn_retransmissions": ("kind = 'retransmitted' AND contains(flags, 'S')", "SYNs that its kernel sent again."),
    "synack_retransmissions": ("kind = 'synack_retransmitted'", "SYN-ACKs that its kernel sent again."),
    "retransmissions": (
        "kind = 'retransmitted' AND NOT contains(flags, 'S')",
        "Packets after the handshake that its kernel sent again.",
    ),
    "resets_sent": ("kind = 'reset_sent'", "RSTs that its kernel sent."),
    "resets_received": ("kind = 'reset_received'", "RSTs that came for a connection of its kernel's."),
    "dropped": ("kind = 'dropped'", "Packets that its kernel dropped and gave a reason for."),
}
_DIFFERING = {
    "syns": "Connections whose SYNs the client's kernel retransmitted more or less often than the packets show.",
    "synacks": "Connections whose SYN-ACKs the server's kernel retransmitted more or less often than the packets show.",
    "accepts": (
        "Connections that the server's kernel said were accepted at a moment that the samples of the queue rule out."
    ),
    "resets": "Connections for which the kernels sent more or fewer RSTs than the packets show.",
}


def _resting_on(run: Run, instances: list[str], compute: Callable[[Window], Value]) -> Value:
    if not set(instances) <= run.raw.records.kernel_events.keys():
        return unknown("the kernels' events were not asked for (capture.events=kernel)")
    return run.resting_on(instances, _TOLD, compute)


def _count(condition: str) -> Compute:
    query = f"SELECT count(*) FROM {TABLE} WHERE instance = $instance AND time_us BETWEEN $start_us AND $end_us"  # noqa: S608  of our own
    asks_port = "$port" in condition

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        instances, database = run.instances(found["role"]), run.raw.records.database

        def of(window: Window, instance: str) -> int:
            port = {"port": run.raw.written.port_of(instance)} if asks_port else {}
            parameters = {"instance": instance, **window.edges, **port}
            ((count,),) = database.execute(f"{query} AND {condition}", parameters).fetchall()
            return int(count)

        return _resting_on(run, instances, lambda window: total(of(window, each) for each in instances))

    return compute


def _waits(run: Run, found: Mapping[str, str]) -> Value:
    instances, database = run.instances(found["role"]), run.raw.records.database
    query = (
        f"SELECT wait_us FROM {TABLE} WHERE instance = $instance AND kind = 'accepted' AND wait_us IS NOT NULL"  # noqa: S608  of our own
        " AND local_port = $port AND time_us BETWEEN $start_us AND $end_us"
    )

    def of(window: Window) -> Value:
        waits = [
            wait_us
            for each in instances
            for (wait_us,) in database.execute(
                query, {"instance": each, "port": run.raw.written.port_of(each), **window.edges}
            ).fetchall()
        ]
        return list_or_statistic(np.array(waits, dtype=np.int64), found)

    return _resting_on(run, instances, of)


def _differing(column: str) -> Compute:
    def differing(run: Run, joined: Joined, servers: list[str], _found: Mapping[str, str]) -> Value:
        query, slack = sql(__name__, "told_by_kernels"), {"slack_us": _SAMPLE_SLACK_US}
        clients = [hop.client for hop in joined.hops if set(run.raw.manifest.of_role(hop.server)) & set(servers)]
        ends = [*servers, *(each for role in clients for each in run.raw.manifest.of_role(role))]
        return _resting_on(
            run, ends, lambda _: total(joined.row(query, instance=each, **slack)[column] for each in servers)
        )

    return of_connections(differing)


FIGURES: tuple[Figure, ...] = (
    *figures_of_times(
        "events.<role>.accept_wait_ms",
        "How long each connection that was accepted in the window had stood in the accept queue.",
        _SOURCE,
        _waits,
    ),
    *(
        Figure(f"events.<role>.{name}", meaning, _count(condition), _SOURCE)
        for name, (condition, meaning) in _COUNTS.items()
    ),
    *(
        Figure(f"events.<server>.differing.{name}", meaning, _differing(name), f"{_SOURCE}, and the capture")
        for name, meaning in _DIFFERING.items()
    ),
)
