"""The logs of HAProxy, with the lab's log-format; times in it are milliseconds, and -1 is what did not come to be."""

from __future__ import annotations

import re
from datetime import datetime

from analysis.evidence.logs.access import Format
from analysis.evidence.logs.errors import Message

# The second letter of `termination` is the phase in which the request ended; none went to a server out of the queue.
_TRIED = "server_address <> '' AND queue_ms >= 0 AND termination[2] NOT IN ('R', 'Q')"
_SERVER = "(server_address || ':' || server_port)"


def _seconds(ms: str) -> str:
    return f"printf('%.3f', ({ms}) / 1000)"


def _of_last_try(value: str) -> str:
    """The tries before the last one failed to connect, all to the same server; the log does not say when or why."""
    return f"if({_TRIED}, repeat('-, ', retries) || coalesce({value}, '-'), '')"


ACCESS = Format(
    fields={
        "time_ms": "BIGINT", "accepted_ms": "VARCHAR", "requests": "VARCHAR", "client_address": "VARCHAR",
        "client_port": "BIGINT", "frontend_address": "VARCHAR", "method": "VARCHAR", "uri": "VARCHAR",
        "status": "BIGINT", "bytes_sent": "BIGINT", "request_ms": "BIGINT", "queue_ms": "BIGINT",
        "connect_ms": "BIGINT", "response_ms": "BIGINT", "active_ms": "BIGINT", "termination": "VARCHAR",
        "retries": "INTEGER", "server_address": "VARCHAR", "server_port": "VARCHAR",
    },
    columns={
        "connection": "try(65536 * try_cast(accepted_ms AS BIGINT) + client_port)",
        "connection_requests": "try_cast(requests AS BIGINT)",
        "remote_addr": "client_address",
        "remote_port": "client_port",
        "server_addr": "frontend_address",
        "request_method": "method",
        "request_uri": "uri",
        "request_time": "active_ms / 1000",
        # As nginx has it: the client went before there was an answer, and read none.
        "status": "CASE WHEN termination[1] = 'C' AND termination[2] <> 'D' THEN 499 WHEN status < 0 THEN 0"
        " ELSE status END",
        "upstream_addr": f"if({_TRIED}, repeat({_SERVER} || ', ', retries) || {_SERVER}, '')",
        # HAProxy answers 503 for a server that it cannot reach; the termination tells a refusal from a time-out.
        "upstream_status": _of_last_try(
            "CASE WHEN termination LIKE 's%' AND response_ms < 0 THEN '504'"
            " WHEN termination LIKE 'S%' AND response_ms < 0 THEN '502'"
            " WHEN response_ms >= 0 THEN status::VARCHAR END"
        ),
        "upstream_connect_time": _of_last_try(f"if(connect_ms >= 0, {_seconds('connect_ms')}, NULL)"),
        "upstream_header_time": _of_last_try(f"if(response_ms >= 0, {_seconds('connect_ms + response_ms')}, NULL)"),
        "upstream_response_time": _of_last_try(_seconds("active_ms - request_ms - queue_ms")),
    },
    speaks=True,
)  # fmt: skip

# 2025-11-21T07:26:40.123456+00:00 Connect() failed for backend servers: no free ports.
_ERROR_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d) (.+)", re.ASCII)


def error(line: bytes) -> Message | None:
    """Return what a line of error.log says; None if it is one of HAProxy's start and end, which have no time."""
    match = _ERROR_LINE.fullmatch(line.decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return Message(round(moment.timestamp() * 1_000_000), 0, match[2])
