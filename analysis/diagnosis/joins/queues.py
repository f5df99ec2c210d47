"""Loads what samples say of ports on which several sockets listen (SO_REUSEPORT), each with a queue of its own.

The kernel deals connections out to the sockets by a hash of their ends, which no packet shows. The table `tick_queues`
has each queue at each tick; `unaccepted` has the connections that no program had accepted at a reading, and
`unaccepted_readings` each reading, with the number of those that it left out.
"""

from __future__ import annotations

import duckdb

from analysis.database import create, insert_rows
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import Listener, Samples

_TICK_QUEUES = {"instance": "VARCHAR", "n": "BIGINT", "queues": "BIGINT", "queue": "BIGINT", "inode": "BIGINT",
                "depth": "BIGINT", "queue_limit": "BIGINT", "drops": "BIGINT"}  # fmt: skip
_UNACCEPTED = {"instance": "VARCHAR", "time_us": "BIGINT", "port": "BIGINT", "peer": "VARCHAR", "peer_port": "BIGINT"}
_READINGS = {"instance": "VARCHAR", "time_us": "BIGINT", "more": "BIGINT"}


def load_queues(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the three tables, out of `ticks`, whose instances may be instance:port."""
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
