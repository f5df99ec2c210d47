"""The table `cases`: each request with everything that the joins found to belong to it, in one row.

Columns of the request stand under their own names. Others have a prefix: `dial_`, `flow_` (its connection on the first
hop), `line_` (its line in the proxy's access log), `try_` (the last server that the proxy tried), `first_` (the one it
tried first), `up_` (the proxy's connection to the last).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_DIAL = ("time_us", "duration_us", "local", "remote", "error", "error_kind")
_LINE = ("instance", "line", "time_ms", "connection", "connection_requests", "request_time", "status")
_TRY = (
    "try", "tries", "server", "status", "connect_us", "header_us", "response_us", "start_us", "names_dial", "dial",
    "reused",
)  # fmt: skip
_FIRST = ("server", "status", "start_us")
_CONNECTION = (
    "observer", "id", "to_instance", "client_address", "client_port", "first_time_us", "last_time_us",
    "syn_count", "syn_times_us", "answered", "answered_us", "established", "refused", "syns_lost", "queued_us",
    "handshake_ack_time_us", "ack_dropped_min", "entered", "aborted", "perhaps_unknown",
    "client_first_data_time_us", "client_last_data_time_us", "server_first_data_time_us", "server_last_data_time_us",
    "client_fin_time_us", "server_fin_time_us", "first_rst_by", "first_rst_time_us", "closed_by", "close_kind",
)  # fmt: skip
_ACCEPTED = ("accepted_after_us", "accepted_before_us")
_PROOF = (
    "syns_overflowed", "syns_syn_queue_full", "syns_not_dropped", "syns_unsampled", "depth_min", "depth_max",
    "queue_limit",
)  # fmt: skip


def build(database: duckdb.DuckDBPyConnection, slow_ms: int | None) -> None:
    """Make the table.

    Args:
        database: with the tables of the other modules of this package.
        slow_ms: a request that takes longer is slow; None for no bound.
    """
    database.execute(_CASES, {"slow_us": None if slow_ms is None else slow_ms * 1000})


def _columns(table: str, prefix: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name} AS {prefix}_{name}" for name in names)


def _connection(prefix: str) -> str:
    return ", ".join([
        _columns(f"{prefix}s", prefix, _CONNECTION),
        _columns(f"{prefix}_accepted", prefix, _ACCEPTED),
        _columns(f"{prefix}_proof", prefix, _PROOF),
    ])  # fmt: skip


_CASES = f"""
    CREATE TABLE cases AS
    SELECT requests.*, requests.end_us - requests.time_us AS total_us,
           CASE WHEN NOT succeeded(requests.error_code, requests.status) THEN 'failed'
                WHEN requests.end_us - requests.time_us > $slow_us THEN 'slow'
                ELSE 'ok' END AS outcome,
           {_columns("dials", "dial", _DIAL)}, dial_links.how AS flow_how,
           {_connection("flow")},
           {_columns("lines", "line", _LINE)},
           {_columns("last_tries", "try", _TRY)}, try_dials.error_kind AS try_dial_error_kind,
           {_columns("first_tries", "first", _FIRST)},
           try_links.how AS up_how,
           {_connection("up")}
      FROM requests
           LEFT JOIN dials ON dials.instance = requests.instance AND dials.id = requests.dial
           LEFT JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.dial
           LEFT JOIN connections AS flows ON flows.observer = dial_links.observer AND flows.id = dial_links.flow
           LEFT JOIN accepted AS flow_accepted
                ON flow_accepted.observer = flows.observer AND flow_accepted.id = flows.id
           LEFT JOIN queue_proof AS flow_proof ON flow_proof.observer = flows.observer AND flow_proof.id = flows.id
           LEFT JOIN request_links
                ON request_links.instance = requests.instance AND request_links.id = requests.id
           LEFT JOIN access AS lines
                ON lines.instance = request_links.access_instance AND lines.line = request_links.line
           LEFT JOIN tries AS last_tries
                ON last_tries.instance = lines.instance AND last_tries.line = lines.line
               AND last_tries.try = last_tries.tries
           LEFT JOIN tries AS first_tries
                ON first_tries.instance = lines.instance AND first_tries.line = lines.line AND first_tries.try = 1
           LEFT JOIN dials AS try_dials
                ON try_dials.instance = last_tries.instance AND try_dials.id = last_tries.dial
           LEFT JOIN try_links
                ON try_links.instance = lines.instance AND try_links.line = lines.line
               AND try_links.try = last_tries.try
           LEFT JOIN connections AS ups ON ups.observer = try_links.observer AND ups.id = try_links.flow
           LEFT JOIN accepted AS up_accepted ON up_accepted.observer = ups.observer AND up_accepted.id = ups.id
           LEFT JOIN queue_proof AS up_proof ON up_proof.observer = ups.observer AND up_proof.id = ups.id
     ORDER BY requests.instance, requests.id
"""  # noqa: S608  names of our own
