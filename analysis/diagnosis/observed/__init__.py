"""The ledger of a system that the lab only watched: its connections, what became of each, and the cause that is proved.

In: captures and samples of the observed instances. Out: tables of one database in memory.
It must not know requests, nor how anything is shown.

The kernel counts overflows for a whole network namespace, and for each listener only drops, of which overflows are one
kind. So a listener has at least the namespace's overflows less the drops of all other listeners: as many are proved.
"""

from __future__ import annotations

import duckdb
import numpy as np

from analysis.database import Integers, Tables, create, in_memory, sql
from analysis.diagnosis.joins import connections, load_tables
from analysis.diagnosis.joins.load_tables import DROP_COUNTERS, TICKS, insert
from analysis.evidence import window
from analysis.evidence.jsonl import integer
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import Samples
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown

# Who connects to a listener, and who is listening, on the one hop that an observed instance has.
PEERS, LISTENER = "peers", "listener"


class Observation(Tables):
    """What was observed.

    Attributes:
        database: its tables:
            `connections`, `lost_syns`, `syn_drop_proof`, `accepted`: as analysis.diagnosis.joins.connections makes
            them; a server is named `instance:port`, one elsewhere `instance>address:port`.
            `ledger`: each connection that was alive in the window, with direction, outcome and cause.
            `ticks`: a row for each tick and listener.
    """

    def __init__(self, window: Window, database: duckdb.DuckDBPyConnection) -> None:
        super().__init__(database)
        self.window = window


def observe(raw: RawRun) -> Observation | None:
    """Make the ledger of an observed run; None if nothing was recorded at all."""
    window = observed_window(raw)
    if window is None:
        return None
    database = in_memory()
    load_tables.load_captured(database, raw)
    load_spans(database, raw)
    _load_addresses(database, raw)
    load_listeners(database, raw)
    database.execute(sql(__name__, "flows"))
    create(database, "instances", {"instance": "VARCHAR", "role": "VARCHAR"})
    database.execute("INSERT INTO instances VALUES (?, ?)", [PEERS, PEERS])
    database.execute("INSERT INTO instances SELECT DISTINCT to_instance, ? FROM flows", [LISTENER])
    create(database, "hops", connections.HOPS)
    database.execute("INSERT INTO hops SELECT 1, ?, ?, observer FROM captured GROUP BY observer", [PEERS, LISTENER])
    connections.build_connection_tables(database, raw, window)
    database.execute(sql(__name__, "ledger"), window.edges)
    database.execute(sql(__name__, "ledger_both_ends"))
    return Observation(window, database)


def _load_addresses(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    create(database, "own", {"observer": "VARCHAR", "address": "VARCHAR"})
    for instance, addresses in raw.manifest.addresses.items():
        for address in addresses:
            database.execute("INSERT INTO own VALUES (?, ?)", [instance, address])


def observed_window(raw: RawRun) -> Window | None:
    """Return the window as the manifest has it, or as long as samples go: what ended early leaves what it recorded."""
    planned = window.find_window_of_phases(raw.manifest)
    times_us = [tick.time_us for samples in raw.samples.values() for tick in samples.ticks]
    if not times_us:
        return None if isinstance(planned, Unknown) else planned
    first_us, last_us = min(times_us), max(times_us)
    # What ended before the window began has at least what was sampled until then.
    if not isinstance(planned, Unknown) and planned.start_us < last_us:
        first_us, last_us = max(first_us, planned.start_us), min(last_us, planned.end_us)
    return Window(first_us, last_us, last_us) if first_us < last_us else None


def load_spans(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `spans`: from when to when each capture has every packet, as far as it knows."""
    create(database, "spans", {"observer": "VARCHAR", "start_us": "BIGINT", "end_us": "BIGINT"})
    for instance, capture in raw.captures.items():
        reduction, report = raw.reductions[instance], capture.report or {}
        start_us, end_us = integer(report, "started_us"), integer(report, "ended_us")
        if start_us is None:
            start_us = reduction.first_us
        if end_us is None or capture.truncated or capture.reason is not None:
            end_us = reduction.last_us
        if start_us is not None and end_us is not None:
            database.execute("INSERT INTO spans VALUES (?, ?, ?)", [instance, start_us, end_us])


def load_listeners(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `ticks`: a row for each tick and listener, which is named `instance:port`."""
    create(database, "ticks", {"instance": "VARCHAR", **dict.fromkeys(TICKS, "BIGINT")})
    for instance, samples in raw.samples.items():
        for port in listening_ports(samples):
            insert(database, "ticks", _columns(samples, port), f"'{instance}:{port}' AS instance, *")


def listening_ports(samples: Samples) -> list[int]:
    """Return every port that listened at any tick."""
    return sorted({listener.port for tick in samples.ticks for listener in tick.listeners})


def _columns(samples: Samples, port: int) -> dict[str, Integers]:
    overflows, _, cookies, syn_queue_drops = map(samples.series, DROP_COUNTERS)
    dropped = {each: _grown(_drops(samples, each)) for each in listening_ports(samples)}
    others = sum((drops for each, drops in dropped.items() if each != port), np.zeros_like(overflows))
    listeners = [[each for each in tick.listeners if each.port == port] for tick in samples.ticks]
    counters = (overflows - others, dropped[port], cookies, syn_queue_drops - others)
    return load_tables.tick_columns(samples, listeners, counters)


def _drops(samples: Samples, port: int) -> Integers:
    of_ticks = [sum(each.drops for each in tick.listeners if each.port == port) for tick in samples.ticks]
    return np.array(of_ticks, dtype=np.int64)


def _grown(counts: Integers) -> Integers:
    """Return how much a count grew since the first tick; a listener that was opened again counts anew."""
    return np.cumsum(np.clip(np.diff(counts, prepend=counts[:1]), 0, None))
