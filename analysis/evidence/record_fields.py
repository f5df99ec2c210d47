"""The fields of the records that grow with the load, and which lines are whole records."""

from __future__ import annotations

from analysis.evidence.jsonl import MOMENT_MAX_US

# k6 counts the statuses from 200 to 399 as success, and so does its http_req_failed.
SUCCEEDED = "error_code = 0 AND status BETWEEN 200 AND 399"

# What a dial can fail with, as dials.jsonl spells it; whatever else stands there counts as the last.
ERROR_KINDS = (
    "timeout",
    "refused",
    "reset",
    "address-not-available",
    "unreachable",
    "canceled",
    "half-open",
    "other",
)


def _whole(*fields: str) -> str:
    """Return SQL that says of a line whether all these fields are there, as integers that can be."""
    within = f"lambda field: field BETWEEN 0 AND {MOMENT_MAX_US}"
    return f"list_count(list_filter([{', '.join(fields)}], {within})) = {len(fields)}"


# Fields of one record, in the order of the file's schema.
REQUESTS = {
    "id": "BIGINT", "vu": "BIGINT", "iteration": "BIGINT", "scenario": "VARCHAR", "name": "VARCHAR",
    "group": "VARCHAR", "method": "VARCHAR", "url": "VARCHAR",
    "time_us": "BIGINT", "end_us": "BIGINT", "blocked_us": "BIGINT",
    "connecting_us": "BIGINT", "tls_us": "BIGINT", "sending_us": "BIGINT", "waiting_us": "BIGINT",
    "receiving_us": "BIGINT", "duration_us": "BIGINT", "status": "BIGINT", "error_code": "BIGINT",
    "error": "VARCHAR", "reused": "BOOLEAN", "remote": "VARCHAR", "dial": "BIGINT",
}  # fmt: skip
DIALS = {
    "id": "BIGINT", "vu": "BIGINT", "time_us": "BIGINT", "duration_us": "BIGINT", "local": "VARCHAR",
    "remote": "VARCHAR", "error": "VARCHAR", "error_kind": "VARCHAR",
}  # fmt: skip
CLOSES = {
    "id": "BIGINT", "time_us": "BIGINT", "bytes_sent": "BIGINT", "bytes_received": "BIGINT", "error": "VARCHAR",
}  # fmt: skip
HEADER = {"kind": "VARCHAR", "schema": "VARCHAR", "instance": "VARCHAR"}

# Which lines are records: those that have what the tables of all observers are joined and told by.
_REQUEST = (
    "id", "vu", "time_us", "end_us", "blocked_us", "connecting_us", "tls_us", "sending_us", "waiting_us",
    "receiving_us", "duration_us", "status", "error_code",
)  # fmt: skip
WHOLE_REQUEST = f"kind IS NULL AND {_whole(*_REQUEST)}"
WHOLE_DIAL = f"kind = 'dial' AND {_whole('id', 'time_us', 'duration_us')}"
WHOLE_CLOSE = f"kind = 'close' AND {_whole('id', 'time_us', 'bytes_sent', 'bytes_received')}"
WHOLE_ACCESS = _whole("time_ms", "status")
