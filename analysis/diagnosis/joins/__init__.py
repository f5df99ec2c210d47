"""Joins what client, proxy, server, kernel and wire each saw of a run. docs/data-format.md says how each join is made.

In: a run's raw files, read, and the health of its instruments. Out: tables of one database in memory.
It must not know causes: a table says what belongs together, not why a request failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import duckdb

from analysis.database import Row, Tables, sql
from analysis.diagnosis.health import Health
from analysis.diagnosis.joins import load_tables
from analysis.diagnosis.joins.connections import Hop, build_connections, build_port_shortages, find_hops
from analysis.diagnosis.joins.exchanges import build_data_waits, build_exchanges, link_tries_by_exchange
from analysis.diagnosis.joins.requests import build_cases, build_links
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window

_SOURCES = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)", re.IGNORECASE)

__all__ = ["Hop", "Joined", "Row", "Story", "find_story", "join"]


class Joined(Tables):
    """The joined evidence of a run: the modules of this package describe its tables."""

    def __init__(self, hops: tuple[Hop, ...], database: duckdb.DuckDBPyConnection) -> None:
        super().__init__(database)
        self.hops = hops
        self._later: dict[str, Callable[[], None]] = {}

    def make_later(self, make: Callable[[], None], *tables: str) -> None:
        """Have tables made as soon as a query names one of them: most figures need none."""
        self._later.update(dict.fromkeys(tables, make))

    def need(self, *tables: str) -> None:
        """Make what of these tables is not made yet."""
        for table in tables:
            make = self._later.get(table)
            if make is not None:
                for name in [name for name, other in self._later.items() if other is make]:
                    del self._later[name]
                make()

    def execute(self, query: str, **parameters: object) -> duckdb.DuckDBPyConnection:
        """Run a query, over tables that are made first where it is the first to name them."""
        if self._later:
            self.need(*_SOURCES.findall(query))
        return super().execute(query, **parameters)


def join(raw: RawRun, health: Health, window: Window) -> Joined:
    """Join a run; what is missing leaves holes, it never raises."""
    found = find_hops(raw, health)
    database = load_tables.open_database(raw)
    build_connections(database, raw, found, window)
    build_links(database, raw)
    link_tries_by_exchange(database, raw)
    build_port_shortages(database, raw.manifest)
    joined = Joined(found, database)
    of_cases = ("cases", "behind", "idle_closes", "ended_processes", "full_processes", "turned_away", "inside")
    joined.make_later(partial(build_cases, database, raw), *of_cases)
    joined.make_later(partial(build_exchanges, database, raw), "exchanges", "unread_exchanges")
    joined.make_later(partial(build_data_waits, database, raw), "sent_packets", "data_waits", "unseen_data")
    return joined


def count_outcomes(joined: Joined) -> dict[str, int]:
    """Return how many requests `failed`, were `slow`, and were `ok`, answered in time."""
    return joined.row(sql(__name__, "outcomes"))


@dataclass(frozen=True, slots=True)
class Story:
    """All records of one request.

    Attributes:
        flows: the connections that carried it, first hop first, from every capture that has them: the columns of
            `flows`, and `try`, the row of `tries` that went over it, None for the client's own.
        tries: the servers that the proxy tried, in order.
    """

    case: Row
    flows: list[Row]
    line: Row | None
    tries: list[Row]
    errors: list[Row]


def find_story(joined: Joined, instance: str, request: int) -> Story | None:
    """Return the records of one request of a k6 instance; None if there is no such request."""
    found = joined.rows("SELECT * FROM cases WHERE instance = $instance AND id = $id", instance=instance, id=request)
    if not found:
        return None
    case = found[0]
    line, tries, errors = _at_the_proxy(joined, case)
    keys = [(None, case["flow_observer"], case["flow_id"]), *((each, each["observer"], each["flow"]) for each in tries)]
    return Story(
        case=case,
        flows=[
            {**flow, "try": each}
            for each, observer, id_ in keys
            if observer is not None
            # In every capture that has it.
            for flow in joined.rows(sql(__name__, "captures_of_flow"), observer=observer, id=id_)
        ],
        line=line,
        tries=tries,
        errors=errors,
    )


def _at_the_proxy(joined: Joined, case: Row) -> tuple[Row | None, list[Row], list[Row]]:
    """Return the proxy's access line of a request, the servers that it tried, and what its error log says."""
    if case["line_line"] is None:
        return None, [], []
    key = {"instance": case["line_instance"], "line": case["line_line"]}
    line = joined.row("SELECT * FROM access WHERE instance = $instance AND line = $line", **key)
    tries = joined.rows(sql(__name__, "tries_of_line"), **key)
    errors = joined.rows(
        sql(__name__, "errors_of_request"),
        instance=case["line_instance"],
        connection=case["line_connection"],
        start_us=case["time_us"],
        end_us=case["end_us"],
    )
    return line, tries, errors
