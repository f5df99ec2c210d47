"""The table `cases`: each request with everything that the joins found to belong to it, in one row.

Columns of the request stand under their own names. `opaque` says that its connection is by TLS. Others have a prefix:
`dial_`, `flow_` (its connection on the first hop), `line_` (its line in the proxy's access log), `try_` (the last
server that the proxy tried), `first_` (the one it tried first), `up_` (the proxy's connection to the last).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import make, sql

if TYPE_CHECKING:
    import duckdb


def build(database: duckdb.DuckDBPyConnection, slow_ms: int | None) -> None:
    """Make the tables `proxied` and `cases`.

    Args:
        database: with the tables of the other modules of this package.
        slow_ms: a request that takes longer is slow; None for no bound.
    """
    make(database, PROXIED, ["request_links"], lambda: database.execute(sql(__name__, "proxied")))
    database.execute(sql(__name__, "cases"), {"slow_us": None if slow_ms is None else slow_ms * 1000})


# What a run has none of without lines of a proxy.
PROXIED = {
    "proxied": {
        "instance": "VARCHAR", "id": "BIGINT", "line_instance": "VARCHAR", "line_line": "BIGINT",
        "line_time_ms": "BIGINT", "line_connection": "BIGINT", "line_connection_requests": "BIGINT",
        "line_request_time": "DOUBLE", "line_status": "BIGINT", "line_gave_up": "VARCHAR",
        "try_try": "BIGINT", "try_tries": "BIGINT",
        "try_server": "VARCHAR", "try_status": "BIGINT", "try_connect_us": "BIGINT", "try_header_us": "BIGINT",
        "try_response_us": "BIGINT", "try_start_us": "BIGINT", "try_names_dial": "BOOLEAN", "try_dial": "BIGINT",
        "try_reused": "BOOLEAN", "try_dial_error_kind": "VARCHAR", "first_server": "VARCHAR", "first_status": "BIGINT",
        "first_start_us": "BIGINT", "up_how": "VARCHAR", "up_observer": "VARCHAR", "up_id": "BIGINT",
        "up_to_instance": "VARCHAR", "up_client_address": "VARCHAR", "up_client_port": "BIGINT",
        "up_first_time_us": "BIGINT", "up_last_time_us": "BIGINT", "up_syn_count": "BIGINT",
        "up_syn_times_us": "BIGINT[]", "up_answered": "BOOLEAN", "up_answered_us": "BIGINT",
        "up_established": "BOOLEAN", "up_refused": "BOOLEAN", "up_syns_lost": "BIGINT", "up_queued_us": "BIGINT",
        "up_handshake_ack_time_us": "BIGINT", "up_ack_dropped_min": "BIGINT", "up_entered": "BOOLEAN",
        "up_aborted": "BOOLEAN", "up_perhaps_unknown": "BOOLEAN", "up_client_first_data_time_us": "BIGINT",
        "up_client_last_data_time_us": "BIGINT", "up_server_first_data_time_us": "BIGINT",
        "up_server_last_data_time_us": "BIGINT", "up_client_fin_time_us": "BIGINT", "up_server_fin_time_us": "BIGINT",
        "up_first_rst_by": "VARCHAR", "up_first_rst_time_us": "BIGINT", "up_closed_by": "VARCHAR",
        "up_close_kind": "VARCHAR", "up_accepted_after_us": "BIGINT", "up_accepted_before_us": "BIGINT",
        "up_syns_overflowed": "BIGINT", "up_syns_syn_queue_full": "BIGINT", "up_syns_not_dropped": "BIGINT",
        "up_syns_unsampled": "BIGINT", "up_depth_min": "BIGINT", "up_depth_max": "BIGINT", "up_queue_limit": "BIGINT",
    },
}  # fmt: skip
