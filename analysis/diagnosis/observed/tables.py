"""Makes the tables of an observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.database import create, in_memory, sql
from analysis.diagnosis.joins import connections, tables
from analysis.diagnosis.observed import listeners, span

if TYPE_CHECKING:
    import duckdb

    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.window import Window

# Who connects to a listener, and who is listening, on the one hop that an observed instance has.
PEERS, LISTENER = "peers", "listener"


class Observation:
    """What was observed.

    Attributes:
        window: the time that it is about.
        database: its tables:
            `connections`, `lost_syns`, `queue_proof`, `accepted`: as analysis.diagnosis.joins.connections makes them; a
            server is named `instance:port`, one elsewhere `instance>address:port`.
            `ledger`: each connection that was alive in the window, with direction, outcome and cause.
            `ticks`: a row for each tick and listener.
    """

    def __init__(self, window: Window, database: duckdb.DuckDBPyConnection) -> None:
        self.window = window
        self.database = database

    def rows(self, query: str, **parameters: object) -> list[dict[str, Any]]:
        """The rows that a query gives, each as a mapping from column to value."""
        found = self.database.execute(query, parameters)
        names = [column[0] for column in found.description]
        return [dict(zip(names, values, strict=True)) for values in found.fetchall()]

    def row(self, query: str, **parameters: object) -> dict[str, Any]:
        """The one row that a query gives."""
        (only,) = self.rows(query, **parameters)
        return only


def observe(raw: RawRun) -> Observation | None:
    """Make the ledger of an observed run; None if nothing was recorded at all."""
    window = span.of_run(raw)
    if window is None:
        return None
    database = in_memory()
    tables.load_captured(database, raw)
    span.load(database, raw)
    _load_addresses(database, raw)
    listeners.load(database, raw)
    database.execute(sql(__name__, "flows"))
    create(database, "instances", {"instance": "VARCHAR", "role": "VARCHAR"})
    database.execute("INSERT INTO instances VALUES (?, ?)", [PEERS, PEERS])
    database.execute("INSERT INTO instances SELECT DISTINCT to_instance, ? FROM flows", [LISTENER])
    create(database, "hops", connections.HOPS)
    database.execute("INSERT INTO hops SELECT 1, ?, ?, observer FROM captured GROUP BY observer", [PEERS, LISTENER])
    connections.follow(database, raw, window)
    database.execute(sql(__name__, "ledger"), {"start_us": window.start_us, "end_us": window.end_us})
    database.execute(sql(__name__, "ledger_both_ends"))
    return Observation(window, database)


def _load_addresses(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    create(database, "own", {"observer": "VARCHAR", "address": "VARCHAR"})
    for instance, addresses in raw.manifest.addresses.items():
        for address in addresses:
            database.execute("INSERT INTO own VALUES (?, ?)", [instance, address])
