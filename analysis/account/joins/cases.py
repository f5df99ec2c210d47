"""The table `cases`: each request with everything that the joins found to belong to it, in one row.

Columns of the request stand under their own names. Others have a prefix: `dial_`, `flow_` (its connection on the first
hop), `line_` (its line in the proxy's access log), `try_` (the last server that the proxy tried), `first_` (the one it
tried first), `up_` (the proxy's connection to the last).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import create, has_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

_DIAL = {
    "time_us": "BIGINT", "duration_us": "BIGINT", "local": "VARCHAR", "remote": "VARCHAR", "error": "VARCHAR",
    "error_kind": "VARCHAR",
}  # fmt: skip
_LINE = {
    "instance": "VARCHAR", "line": "BIGINT", "time_ms": "BIGINT", "connection": "BIGINT",
    "connection_requests": "BIGINT", "request_time": "DOUBLE", "status": "BIGINT",
}  # fmt: skip
_TRY = {
    "try": "BIGINT", "tries": "BIGINT", "server": "VARCHAR", "status": "BIGINT", "connect_us": "BIGINT",
    "header_us": "BIGINT", "response_us": "BIGINT", "start_us": "BIGINT", "names_dial": "BOOLEAN", "dial": "BIGINT",
    "reused": "BOOLEAN",
}  # fmt: skip
_FIRST = {"server": "VARCHAR", "status": "BIGINT", "start_us": "BIGINT"}
_CONNECTION = {
    "observer": "VARCHAR", "id": "BIGINT", "to_instance": "VARCHAR", "client_address": "VARCHAR",
    "client_port": "BIGINT", "first_time_us": "BIGINT", "last_time_us": "BIGINT", "syn_count": "BIGINT",
    "syn_times_us": "BIGINT[]", "answered": "BOOLEAN", "answered_us": "BIGINT", "established": "BOOLEAN",
    "refused": "BOOLEAN", "syns_lost": "BIGINT", "queued_us": "BIGINT", "handshake_ack_time_us": "BIGINT",
    "ack_dropped_min": "BIGINT", "entered": "BOOLEAN", "aborted": "BOOLEAN", "perhaps_unknown": "BOOLEAN",
    "client_first_data_time_us": "BIGINT", "client_last_data_time_us": "BIGINT",
    "server_first_data_time_us": "BIGINT", "server_last_data_time_us": "BIGINT",
    "client_fin_time_us": "BIGINT", "server_fin_time_us": "BIGINT", "first_rst_by": "VARCHAR",
    "first_rst_time_us": "BIGINT", "closed_by": "VARCHAR", "close_kind": "VARCHAR",
}  # fmt: skip
_ACCEPTED = {"accepted_after_us": "BIGINT", "accepted_before_us": "BIGINT"}
_PROOF = {
    "syns_overflowed": "BIGINT", "syns_syn_queue_full": "BIGINT", "syns_not_dropped": "BIGINT",
    "syns_unsampled": "BIGINT", "depth_min": "BIGINT", "depth_max": "BIGINT", "queue_limit": "BIGINT",
}  # fmt: skip

# What stands at the proxy, of each request that has a line in its access log.
PROXIED = {
    "instance": "VARCHAR", "id": "BIGINT",
    **{f"line_{name}": type_ for name, type_ in _LINE.items()},
    **{f"try_{name}": type_ for name, type_ in _TRY.items()},
    "try_dial_error_kind": "VARCHAR",
    **{f"first_{name}": type_ for name, type_ in _FIRST.items()},
    "up_how": "VARCHAR",
    **{f"up_{name}": type_ for name, type_ in (_CONNECTION | _ACCEPTED | _PROOF).items()},
}  # fmt: skip


def build(database: duckdb.DuckDBPyConnection, slow_ms: int | None) -> None:
    """Make the tables `proxied` and `cases`.

    Args:
        database: with the tables of the other modules of this package.
        slow_ms: a request that takes longer is slow; None for no bound.
    """
    if has_rows(database, "request_links"):
        database.execute(_PROXIED)
    else:
        create(database, "proxied", PROXIED)
    database.execute(_CASES, {"slow_us": None if slow_ms is None else slow_ms * 1000})


def _columns(table: str, prefix: str, names: Iterable[str]) -> str:
    return ", ".join(f"{table}.{name} AS {prefix}_{name}" for name in names)


def _connection(prefix: str) -> str:
    return ", ".join([
        _columns(f"{prefix}s", prefix, _CONNECTION),
        _columns(f"{prefix}_accepted", prefix, _ACCEPTED),
        _columns(f"{prefix}_proof", prefix, _PROOF),
    ])  # fmt: skip


_PROXIED = f"""
    CREATE TABLE proxied AS
    SELECT request_links.instance, request_links.id,
           {_columns("lines", "line", _LINE)},
           {_columns("last_tries", "try", _TRY)}, try_dials.error_kind AS try_dial_error_kind,
           {_columns("first_tries", "first", _FIRST)},
           try_links.how AS up_how,
           {_connection("up")}
      FROM request_links
           JOIN access AS lines
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
"""  # noqa: S608  names of our own

_CASES = f"""
    CREATE TABLE cases AS
    SELECT requests.*, requests.end_us - requests.time_us AS total_us,
           CASE WHEN NOT succeeded(requests.error_code, requests.status) THEN 'failed'
                WHEN requests.end_us - requests.time_us > $slow_us THEN 'slow'
                ELSE 'ok' END AS outcome,
           {_columns("dials", "dial", _DIAL)}, dial_links.how AS flow_how,
           {_connection("flow")},
           proxied.* EXCLUDE (instance, id)
      FROM requests
           LEFT JOIN dials ON dials.instance = requests.instance AND dials.id = requests.dial
           LEFT JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.dial
           LEFT JOIN connections AS flows ON flows.observer = dial_links.observer AND flows.id = dial_links.flow
           LEFT JOIN accepted AS flow_accepted
                ON flow_accepted.observer = flows.observer AND flow_accepted.id = flows.id
           LEFT JOIN queue_proof AS flow_proof ON flow_proof.observer = flows.observer AND flow_proof.id = flows.id
           LEFT JOIN proxied ON proxied.instance = requests.instance AND proxied.id = requests.id
     ORDER BY requests.instance, requests.id
"""  # noqa: S608  names of our own
