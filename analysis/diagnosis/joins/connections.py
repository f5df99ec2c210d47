"""The connections of each hop, one row each: what became of their SYNs, and how long they waited to be accepted.

A hop's connections are counted in the captures of one end alone, so that none counts twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import create, has_rows, make, sql
from analysis.diagnosis.joins import admissions
from analysis.evidence.samples import TICK_SLACK_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from analysis.diagnosis.joins.hops import Hop
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.window import Window


def build(database: duckdb.DuckDBPyConnection, raw: RawRun, hops: Sequence[Hop], window: Window) -> None:
    """Make the tables `flows`, `connections` and `lost_syns`.

    Args:
        database: with the tables of analysis.diagnosis.joins.tables.
        raw: the run.
        hops: the run's.
        window: connections that began outside it are not counted.
    """
    create(database, "hops", HOPS)
    for hop in hops:
        for observer in hop.observers:
            database.execute("INSERT INTO hops VALUES (?, ?, ?, ?)", [hop.number, hop.client, hop.server, observer])
    database.execute(sql(__name__, "flows"))
    follow(database, raw, window)


def follow(database: duckdb.DuckDBPyConnection, raw: RawRun, window: Window) -> None:
    """Make the tables `connections`, `accepted`, `lost_syns` and `queue_proof`.

    Args:
        database: with `instances`, `ticks`, `flows` and `hops`.
        raw: the run.
        window: as in `build`.
    """
    admissions.build(database, raw)
    database.execute(sql(__name__, "connections"), {"start_us": window.start_us, "end_us": window.end_us})
    database.execute(sql(__name__, "connections_raced"))
    database.execute(sql(__name__, "accepted"))
    apart_us = raw.clocks.apart_us or 0
    make(database, OF_LOST_SYNS, ["connections WHERE syns_lost > 0"], lambda: _find_lost_syns(database, apart_us))


def _find_lost_syns(database: duckdb.DuckDBPyConnection, apart_us: int) -> None:
    # Where connections were captured at their server, their SYNs and the server's ticks are by one clock.
    elsewhere = has_rows(database, "connections WHERE syns_lost > 0 AND observer <> split_part(to_instance, ':', 1)")
    database.execute(sql(__name__, "lost_syns"), {"slack_us": TICK_SLACK_US + (apart_us if elsewhere else 0)})
    database.execute(sql(__name__, "queue_proof"))


HOPS = {"hop": "BIGINT", "client": "VARCHAR", "server": "VARCHAR", "observer": "VARCHAR"}

# What a run has none of that lost no SYN.
OF_LOST_SYNS = {
    "lost_syns": {
        "observer": "VARCHAR", "id": "BIGINT", "time_us": "BIGINT", "overflows": "BIGINT", "drops": "BIGINT",
        "depth": "BIGINT", "queue_limit": "BIGINT", "enough": "BOOLEAN", "syn_queue_full": "BOOLEAN",
    },
    "queue_proof": {
        "observer": "VARCHAR", "id": "BIGINT", "syns": "BIGINT", "syns_overflowed": "BIGINT",
        "syns_syn_queue_full": "BIGINT", "syns_not_dropped": "BIGINT", "syns_unsampled": "BIGINT",
        "depth_min": "BIGINT", "depth_max": "BIGINT", "queue_limit": "BIGINT",
    },
}  # fmt: skip
