"""The proof that a server's kernel dropped a SYN that nothing answered, by what it counted around that time."""

import duckdb

from analysis.database import has_rows, make, sql
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import TICK_SLACK_US

# The kernel sends a SYN-ACK again after a second, and somewhat later on a busy machine.
_SYNACK_AGAIN_US = 1_300_000


def build_syn_drop_proof(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
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
