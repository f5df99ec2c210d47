"""Finds what belongs to each request: its dial, its connection, its line at the proxy, and the proxy's connection.

Each link says how it was found; what cannot be told apart is not linked, and says so. The table `cases` has each
request with all of this in one row. Columns of the request stand under their own names. `opaque` says that its
connection is by TLS. Others have a prefix: `dial_`, `flow_` (its connection on the first hop), `line_` (its line in
the proxy's access log), `try_` (the last server that the proxy tried), `first_` (the one it tried first), `up_` (the
proxy's connection to the last).
"""

from __future__ import annotations

import duckdb

from analysis.database import has_rows, make, sql

# How far two observers' times of one event may lie apart when both read the same clock. Where they do not,
# `Clocks.apart_us` (analysis.evidence.clocks) comes on top. A program reads the clock, then the kernel sends a packet,
# or the other way round.
CLOCK_SLACK_US = 5_000

# The longest turn of nginx's event loop that is reckoned with: it reads the clock once in each turn, and stamps its
# lines by that, so that a packet may leave so much later than its line says.
NGINX_TURN_US = 50_000


# nginx stamps its lines to the millisecond, from a clock that it reads once in each turn of its event loop.
_NGINX_SLACK_US = 2_000
# How late it may notice that a server closed, or write its line, on a machine without a processor to spare.
_NGINX_LATE_US = 1_000_000
# Within this, only one connection may begin for its try to be told by time alone.
_ALONE_US = 5_000


def build_links(database: duckdb.DuckDBPyConnection, apart_us: int) -> None:
    """Make the tables `dial_links`, `sessions`, `request_links`, `tries` and `try_links`.

    Args:
        database: with the tables of the other modules of this package.
        apart_us: how far the times of two instances may be off against each other.
    """
    slack_us = CLOCK_SLACK_US + apart_us
    database.execute(sql(__name__, "addressed_dials"))
    database.execute(sql(__name__, "dials_of_unknown_port"))
    database.execute(sql(__name__, "dial_links_by_address"), {"slack_us": slack_us})
    if has_rows(database, "dials_of_unknown_port"):
        database.execute(sql(__name__, "dial_links_by_time"), {"slack_us": slack_us})
        database.execute(sql(__name__, "dial_links_by_group"), {"slack_us": slack_us})
    make(database, AT_THE_PROXY, ["access"], lambda: _link_proxy(database, apart_us))


def _link_proxy(database: duckdb.DuckDBPyConnection, apart_us: int) -> None:
    nginx_us, turn_us, late_us = (each + apart_us for each in (_NGINX_SLACK_US, NGINX_TURN_US, _NGINX_LATE_US))
    database.execute(sql(__name__, "sessions"), {"slack_us": CLOCK_SLACK_US + apart_us})
    database.execute(sql(__name__, "request_links"), {"slack_us": nginx_us, "late_us": late_us})
    database.execute(sql(__name__, "tries"))
    database.execute(sql(__name__, "try_links_by_dial"))
    database.execute(sql(__name__, "try_links_by_port"), {"slack_us": nginx_us, "turn_us": turn_us})
    database.execute(sql(__name__, "try_links_by_order"), {"slack_us": nginx_us, "turn_us": turn_us})
    database.execute(sql(__name__, "try_links_by_time"), {"slack_us": nginx_us, "alone_us": _ALONE_US + apart_us})
    database.execute(sql(__name__, "try_links_by_breach"), {"slack_us": nginx_us, "late_us": late_us})


# What a run has none of without lines of a proxy.
AT_THE_PROXY = {
    "sessions": {
        "instance": "VARCHAR", "connection": "BIGINT", "dial_instance": "VARCHAR", "dial": "BIGINT",
        "observer": "VARCHAR", "flow": "BIGINT",
    },
    "request_links": {
        "instance": "VARCHAR", "id": "BIGINT", "place": "BIGINT", "access_instance": "VARCHAR", "line": "BIGINT",
    },
    "tries": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "tries": "BIGINT", "server": "VARCHAR",
        "server_address": "VARCHAR", "server_port": "BIGINT", "status": "BIGINT", "connect_us": "BIGINT",
        "header_us": "BIGINT", "response_us": "BIGINT", "start_us": "BIGINT", "names_dial": "BOOLEAN",
        "dial": "BIGINT", "place": "BIGINT", "reused": "BOOLEAN", "local_port": "BIGINT",
    },
    "try_links": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "observer": "VARCHAR", "flow": "BIGINT",
        "how": "VARCHAR",
    },
}  # fmt: skip


def build_cases(database: duckdb.DuckDBPyConnection, slow_ms: int | None) -> None:
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
