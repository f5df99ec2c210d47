"""The ledger of a system that the lab only watched: its connections, what became of each, and the cause that is proved.

In: captures and samples of the observed instances. Out: tables of one database in memory.
It must not know requests, nor how anything is shown.

The kernel counts overflows for a whole network namespace, and for each listener only drops, of which overflows are one
kind. So a listener has at least the namespace's overflows less the drops of all other listeners: as many are proved.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np

from analysis.database import Integers, Tables, composed, create, in_memory, insert, sql
from analysis.diagnosis.joins import connections, load_tables
from analysis.diagnosis.joins.load_tables import DROP_COUNTERS, grown
from analysis.evidence import kernel_events, window
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
    kernel_events.load_all(database, raw.written, raw.places, raw.clocks)
    if raw.manifest.observed and raw.manifest.observed.server:
        address, _, port = raw.manifest.observed.server.rpartition(":")
        database.execute("DELETE FROM captured WHERE server_address <> ? OR server_port <> ?", [address, int(port)])
    if raw.inspected:
        database.execute(sql(__name__, "doubled"))
        database.execute(sql(__name__, "captured_once"))
    load_spans(database, raw)
    _load_addresses(database, raw)
    load_listeners(database, raw)
    database.execute(sql(__name__, "flows"))
    database.execute(sql(__name__, "flows_scanned"))
    create(database, "instances", {"instance": "VARCHAR", "role": "VARCHAR"})
    database.execute("INSERT INTO instances VALUES (?, ?)", [PEERS, PEERS])
    database.execute("INSERT INTO instances SELECT DISTINCT to_instance, ? FROM flows", [LISTENER])
    create(database, "hops", connections.HOPS)
    database.execute("INSERT INTO hops SELECT 1, ?, ?, observer FROM captured GROUP BY observer", [PEERS, LISTENER])
    connections.build_connection_tables(database, raw, window)
    if raw.inspected:
        # A few dumps do not say how long a connection stood in the queue.
        database.execute("DELETE FROM accepted")
    database.execute(composed(__name__, "ledger", direction="direction"), window.edges)
    database.execute(sql(__name__, "ledger_both_ends"))
    return Observation(window, database)


def build_ledger_of_run(database: duckdb.DuckDBPyConnection, raw: RawRun, window: Window) -> None:
    """Make the tables `spans` and `ledger` of a run, whose connections are counted once, as coming to their servers.

    The database has `connections`, `accepted` and `syn_drop_proof`.
    """
    load_spans(database, raw)
    database.execute(composed(__name__, "ledger", direction="'in'"), window.edges)


def _load_addresses(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    create(database, "own", {"observer": "VARCHAR", "address": "VARCHAR"})
    for instance, addresses in raw.manifest.addresses.items():
        for address in addresses:
            database.execute("INSERT INTO own VALUES (?, ?)", [instance, address])


def observed_window(raw: RawRun) -> Window | None:
    """Return the window as the manifest has it, or as long as samples go: what ended early leaves what it recorded."""
    planned = window.find_window_of_phases(raw.manifest)
    times_us = [tick.time_us for samples in raw.samples.values() for tick in samples.ticks]
    if raw.inspected:
        packets = ((each.first_us, each.last_us) for each in raw.reductions.values())
        times_us += [us for edges in packets for us in edges if us is not None]
        # All that there is lies within.
        return Window(min(times_us) - 1, max(times_us) + 1, max(times_us) + 1) if times_us else None
    if not times_us:
        return None if isinstance(planned, Unknown) else planned
    first_us, last_us = min(times_us), max(times_us)
    # What ended before the window began has at least what was sampled until then.
    if not isinstance(planned, Unknown) and planned.start_us < last_us:
        first_us, last_us = max(first_us, planned.start_us), min(last_us, planned.end_us)
    return Window(first_us, last_us, last_us) if first_us < last_us else None


def load_spans(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `spans`: from when to when each capture has every packet, as far as it knows.

    `ends`: whether it is known that it went on no longer.
    """
    create(database, "spans", {"observer": "VARCHAR", "start_us": "BIGINT", "end_us": "BIGINT", "ends": "BOOLEAN"})
    for instance, capture in raw.captures.items():
        reduction, report = raw.reductions[instance], capture.report or {}
        start_us, end_us = integer(report, "started_us"), integer(report, "ended_us")
        if start_us is None:
            start_us = reduction.first_us
        if end_us is None or capture.truncated or capture.reason is not None:
            end_us = reduction.last_us
        if start_us is not None and end_us is not None:
            row = [instance, start_us, end_us, not capture.elsewhere]
            database.execute("INSERT INTO spans VALUES (?, ?, ?, ?)", row)


def load_listeners(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `ticks`: a row for each tick and listener, which is named `instance:port`."""
    load_tables.create_ticks(database)
    for instance, samples in raw.samples.items():
        lost = _lost_syns(database, instance) if raw.inspected and samples.ticks else {}
        for port in sorted({*listening_ports(samples), *lost}):
            columns = _columns(samples, port, lost, dumped=raw.inspected)
            unknown = [name for name in _COUNTED if (columns[name] == _UNKNOWN).any()]
            known = "".join(f", nullif({name}, {_UNKNOWN}) AS {name}" for name in unknown)
            kept = f"* EXCLUDE ({', '.join(unknown)})" if unknown else "*"
            insert(database, "ticks", columns, f"'{instance}:{port}' AS instance, {kept}{known}")


# The columns of counters; one that no dump tells is null.
_COUNTED = ("overflows", "listen_drops", "cookies", "syn_queue_drops")
_UNKNOWN = -(1 << 62)


def _lost_syns(database: duckdb.DuckDBPyConnection, instance: str) -> dict[int, Integers]:
    """Return when SYNs to each port of a host got no answer, by its capture: a dump names no port's overflows."""
    found = database.execute(sql(__name__, "lost_syns_by_port"), {"observer": instance}).fetchall()
    return {port: np.array(times_us, dtype=np.int64) for port, times_us in found}


def listening_ports(samples: Samples) -> list[int]:
    """Return every port that listened at any tick."""
    return sorted({listener.port for tick in samples.ticks for listener in tick.listeners})


def _columns(samples: Samples, port: int, lost: Mapping[int, Integers], *, dumped: bool) -> dict[str, Integers]:
    overflows, listen_drops, cookies, syn_queue_drops = map(samples.series, DROP_COUNTERS)
    drops = _dumped_drops if dumped else _drops
    dropped = {each: grown(found) for each in listening_ports(samples) if (found := drops(samples, each)) is not None}
    told = port in dropped
    times_us = np.array([tick.time_us for tick in samples.ticks], dtype=np.int64)
    # Where no dump says what a socket dropped, it is what the capture shows to have got no answer.
    for each, of_port in lost.items():
        dropped.setdefault(each, np.searchsorted(of_port, times_us))
    others = sum((drops for each, drops in dropped.items() if each != port), np.zeros_like(overflows))
    listeners = [[each for each in tick.listeners if each.port == port] for tick in samples.ticks]
    # What no dump says of a socket may have been any of the namespace's.
    own = dropped[port] if told else listen_drops
    counters = [overflows - others, own, cookies, syn_queue_drops - others]
    if dumped:
        uncounted = np.array([not tick.counted for tick in samples.ticks], dtype=bool)
        if told:
            # An overflow is a drop; what a dump of sockets does not list may have had the rest.
            counters[0] = np.minimum(counters[0], counters[0][:1] + own)
        for name, values in zip(DROP_COUNTERS, counters, strict=True):
            if name not in samples.counters and not (told and values is own):
                values[:] = _UNKNOWN
            values[uncounted] = _UNKNOWN
    # Dumps are too far apart to show what grew around one SYN.
    apart = {} if dumped else load_tables.socket_columns(samples)
    return load_tables.tick_columns(samples, listeners, counters) | apart


def _drops(samples: Samples, port: int) -> Integers | None:
    """Return what the sockets of a port had dropped at each tick; None if no tick tells."""
    of_ticks = [[each.drops for each in tick.listeners if each.port == port] for tick in samples.ticks]
    if any(drops is None for each in of_ticks for drops in each):
        return None
    return np.array([sum(drops or 0 for drops in each) for each in of_ticks], dtype=np.int64)


def _dumped_drops(samples: Samples, port: int) -> Integers | None:
    """Return a port's drops from dumps, of which some list no sockets; None if they do not span the counters."""
    of_ticks = [[each.drops for each in tick.listeners if each.port == port] for tick in samples.ticks]
    told = [number for number, found in enumerate(of_ticks) if found and None not in found]
    counted = [number for number, tick in enumerate(samples.ticks) if tick.counted] or told
    if len(told) < 2 or told[0] > counted[0] or told[-1] < counted[-1]:  # noqa: PLR2004  two tell how much it grew
        return None
    last = np.maximum(np.searchsorted(told, np.arange(len(of_ticks)), side="right") - 1, 0)
    return np.array([sum(drops or 0 for drops in of_ticks[told[each]]) for each in last], dtype=np.int64)
