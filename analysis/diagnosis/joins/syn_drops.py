"""The proof that a server's kernel dropped a SYN that nothing answered, by what it counted around that time."""

import duckdb

from analysis.database import has_rows, make, sql
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import TICK_SLACK_US


def build_syn_drop_proof(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make `lost_syns`, a row for each of them, and `syn_drop_proof`, a row for each connection that lost some.

    They are made out of `connections` and `ticks`.
    """
    # Where connections were captured at their server, their SYNs and the server's ticks are by one clock.
    elsewhere = has_rows(database, "connections WHERE syns_lost > 0 AND observer <> split_part(to_instance, ':', 1)")
    slack_us = TICK_SLACK_US + (raw.clocks.apart_us or 0 if elsewhere else 0)
    proofs = {sql(__name__, "lost_syns"): {"slack_us": slack_us}, sql(__name__, "syn_drop_proof"): {}}
    make(database, ["connections WHERE syns_lost > 0"], proofs)
