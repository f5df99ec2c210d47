"""The hops of a run's path, and the connections of each: their SYNs, and how long they waited to be accepted.

A hop's connections are counted in the captures of one end alone, so that none counts twice.

Where several sockets listen on a port (SO_REUSEPORT), each has a queue of its own. The kernel deals connections out to
them by a hash of their ends, which no packet shows. The table `tick_queues` has each queue at each tick; `unaccepted`
has the connections that no program had accepted at a reading, and `unaccepted_readings` each reading, with the number
of those that it left out.

The table `port_shortages` has what held the ports of a client, or of a proxy, when a dial or a try found none: a client
needs a port of its range for each connection to one server's address and port. A connection that the client closed
first holds its port for 60 s more, in TIME_WAIT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb

from analysis.database import create, has_rows, insert_rows, make, sql
from analysis.diagnosis.health import Evidence, Health
from analysis.diagnosis.joins.admissions import build_admissions
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.logs import NO_PORT
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import TICK_SLACK_US, Listener, Samples
from analysis.evidence.window import Window
from formats.manifest import PORT_RANGE, Manifest, port_count


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop.

    Attributes:
        number: its place on the path, from 1.
        observers: the instances whose captures count its connections, all of one end; none if nothing captured it.
    """

    number: int
    client: str
    server: str
    observers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client} → {self.server}"


def find_hops(raw: RawRun, health: Health) -> tuple[Hop, ...]:
    """Return the hops of a run, from the client to the backend."""
    pairs = pairwise(raw.manifest.path)
    return tuple(
        Hop(number, client, server, _observers(raw, health, client, server))
        for number, (client, server) in enumerate(pairs, start=1)
    )


def _observers(raw: RawRun, health: Health, client: str, server: str) -> tuple[str, ...]:
    """Return the server's end, where dropped SYNs arrive, if its captures are as good as those of the client's end."""
    ends = [tuple(raw.manifest.of_role(role)) for role in (server, client)]
    captured = [end for end in ends if end and all(instance in raw.captures for instance in end)]
    sound = [
        end for end in captured if not any(health.spoilt(Evidence.PACKETS, f"capture/{instance}") for instance in end)
    ]
    return next(iter([*sound, *captured]), ())


def build_connections(database: duckdb.DuckDBPyConnection, raw: RawRun, hops: Sequence[Hop], window: Window) -> None:
    """Make `flows`, `connections` and `lost_syns`; connections that began outside the window are not counted."""
    create(database, "hops", HOPS)
    for hop in hops:
        for observer in hop.observers:
            database.execute("INSERT INTO hops VALUES (?, ?, ?, ?)", [hop.number, hop.client, hop.server, observer])
    database.execute(sql(__name__, "flows"))
    build_connection_tables(database, raw, window)


def build_connection_tables(database: duckdb.DuckDBPyConnection, raw: RawRun, window: Window) -> None:
    """Make `arriving_flows`, `connections`, `accepted`, `told_accepts`, `ahead`, `lost_syns` and `syn_drop_proof`.

    They are made out of `instances`, `ticks`, `flows` and `hops`.
    """
    _load_queues(database, raw)
    database.execute(sql(__name__, "counted"))
    build_admissions(database, raw)
    database.execute(sql(__name__, "arriving_flows"), window.edges)
    database.execute(sql(__name__, "arriving_flows_raced"), {"order_us": _ORDER_US})
    database.execute(sql(__name__, "connections"))
    database.execute(sql(__name__, "accepted"))
    make(database, ["tick_queues"], {sql(__name__, "accepted_as_listed"): {"slack_us": TICK_SLACK_US}})
    for name in ("told_accepts", "accepted_as_told", "ahead"):
        database.execute(sql(__name__, name))
    _build_syn_drop_proof(database, raw)


_TICK_QUEUES = {"instance": "VARCHAR", "n": "BIGINT", "queues": "BIGINT", "queue": "BIGINT", "inode": "BIGINT",
                "depth": "BIGINT", "queue_limit": "BIGINT", "drops": "BIGINT"}  # fmt: skip
_UNACCEPTED = {"instance": "VARCHAR", "time_us": "BIGINT", "port": "BIGINT", "peer": "VARCHAR", "peer_port": "BIGINT"}
_READINGS = {"instance": "VARCHAR", "time_us": "BIGINT", "more": "BIGINT"}


def _load_queues(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the three tables of queues, out of `ticks`, whose instances may be instance:port."""
    create(database, "tick_queues", _TICK_QUEUES)
    create(database, "unaccepted", _UNACCEPTED)
    create(database, "unaccepted_readings", _READINGS)
    found = database.execute("SELECT DISTINCT instance FROM ticks WHERE listeners > 1 ORDER BY instance").fetchall()
    for (name,) in found:
        instance, _, port = name.partition(":")
        samples = raw.samples[instance]
        rows = [row for n in range(len(samples.ticks)) for row in _of_tick(samples, n, int(port) if port else None)]
        insert_rows(database, "tick_queues", _TICK_QUEUES, [(name, *row) for row in rows])
    for instance in dict.fromkeys(name.partition(":")[0] for (name,) in found):
        readings = [each for each in raw.samples[instance].sockets if isinstance(each.get("unaccepted"), list)]
        named = [(instance, reading["time_us"], *end) for reading in readings for end in _unaccepted(reading)]
        insert_rows(database, "unaccepted", _UNACCEPTED, named)
        more = [(instance, each["time_us"], integer(each, "unaccepted_more") or 0) for each in readings]
        insert_rows(database, "unaccepted_readings", _READINGS, more)


def _of_tick(samples: Samples, n: int, port: int | None) -> list[tuple[object, ...]]:
    """Return the queues of a port at a tick, in the order in which the program made them; none if nothing tells it."""
    listeners = samples.traffic(n) if port is None else [one for one in samples.ticks[n].listeners if one.port == port]
    told: list[tuple[int, Listener]] = sorted(
        ((one.inode, one) for one in listeners if one.inode is not None), key=lambda each: each[0]
    )
    return [
        (n, len(told), place, inode, one.depth, one.limit, one.drops)
        for place, (inode, one) in enumerate(told, start=1)
    ]


def _unaccepted(reading: Record) -> list[tuple[object, ...]]:
    ends = (
        (integer(one, "port"), one.get("peer"), integer(one, "peer_port")) for one in records(reading, "unaccepted")
    )
    return [end for end in ends if isinstance(end[1], str) and None not in end]


# The kernel sends a SYN-ACK again after a second, and somewhat later on a busy machine.
_SYNACK_AGAIN_US = 1_300_000


def _build_syn_drop_proof(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make `lost_syns`, a row for each; `queue_drops`, `syn_drop_proof` and `before_socket`: of connections with some.

    They are made out of `connections`, `ticks` and `tick_queues`.
    """
    # Where connections were captured at their server, their SYNs and the server's ticks are by one clock.
    elsewhere = has_rows(database, "connections WHERE syns_lost > 0 AND observer <> split_part(to_instance, ':', 1)")
    slack_us = TICK_SLACK_US + (raw.clocks.apart_us or 0 if elsewhere else 0)
    proofs: dict[str, dict[str, int]] = {
        sql(__name__, "lost_syns"): {"slack_us": slack_us},
        sql(__name__, "queue_drops"): {},
        sql(__name__, "syn_drop_proof"): {},
    }
    proofs |= {sql(__name__, "before_socket"): {"slack_us": slack_us, "again_us": _SYNACK_AGAIN_US}}
    make(database, ["connections WHERE syns_lost > 0"], proofs)


HOPS = {"hop": "BIGINT", "client": "VARCHAR", "server": "VARCHAR", "observer": "VARCHAR"}

# By how much the order of packets in a capture may differ from that in which processors took them.
_ORDER_US = 100

# TCP_TIMEWAIT_LEN (include/net/tcp.h).
TIME_WAIT_MS = 60_000


def build_port_shortages(database: duckdb.DuckDBPyConnection, manifest: Manifest) -> None:
    """Make the tables `port_ranges`, `port_levels` and `port_shortages`."""
    create(database, "port_ranges", {"instance": "VARCHAR", "ports": "BIGINT"})
    for instance in manifest.sysctls:
        ports = port_count(manifest.sysctl(instance, PORT_RANGE))
        if ports is not None:
            database.execute("INSERT INTO port_ranges VALUES (?, ?)", [instance, ports])
    sources = [
        f"dials WHERE error_kind = '{_NO_PORT_KIND}'",
        f"access WHERE gave_up = '{NO_PORT}' OR resolution_us IS NOT NULL AND status >= 500",
    ]
    behind = (
        "requests WHERE status >= 500" if len(manifest.path) > len(manifest.request_path) else "requests WHERE false"
    )
    levels = {sql(__name__, "port_levels"): {"time_wait_us": 1000 * TIME_WAIT_MS}}
    make(database, [*sources, behind], levels)
    constants = {"error_kind": _NO_PORT_KIND, "gave_up": NO_PORT}
    make(database, sources, {sql(__name__, "port_shortages"): constants})


# What is known about a dial that found no port.
_NO_PORT_KIND = "address-not-available"
