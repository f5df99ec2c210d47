"""The table `waits`: where the time went of each request that was slow, or ended without an answer.

Each part is what the evidence proves, 0 where it proves none; the parts need not add up to the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import make, sql
from analysis.diagnosis.health import limits

if TYPE_CHECKING:
    import duckdb


def build(database: duckdb.DuckDBPyConnection, *, proxied: bool, silent: list[str], apart_us: int) -> None:
    """Make the table.

    Args:
        database: with the tables of analysis.diagnosis.joins.
        proxied: whether a proxy stands between the client and the backend.
        silent: servers none of whose pages tells of their threads.
        apart_us: how far the times of two instances may be off against each other.
    """
    database.execute(sql(__name__, "scraped"), {"gap_us": 1000 * limits.SECONDLY_GAP_MS})
    database.execute(sql(__name__, "queued_ticks"))
    database.execute(sql(__name__, "idle_spans"))
    if proxied:
        database.execute(sql(__name__, "served_over_a_proxy"))
    else:
        database.execute(sql(__name__, "served_directly"), {"apart_us": apart_us})
    make(database, ACTED, ["actions"], lambda: database.execute(sql(__name__, "acted")))
    database.execute(sql(__name__, "waits"), {"silent": silent})


# What a run has none of without actions of the lab.
ACTED = {
    "acted": {"instance": "VARCHAR", "id": "BIGINT", "overlap_us": "BIGINT", "paused": "VARCHAR", "says": "VARCHAR"},
}
