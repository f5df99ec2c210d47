"""The logs of HAProxy, with the lab's log-format; times in it are milliseconds, and -1 is what did not come to be."""

from __future__ import annotations

import re
from datetime import datetime

from analysis.evidence.logs.access_log import NO_PORT, QUEUE_TIMEOUT, Format
from analysis.evidence.logs.error_log import Message

# The second letter of `termination` is the phase in which the request ended; none went to a server out of the queue.
_TRIED = "server_address <> '' AND queue_ms >= 0 AND termination[2] NOT IN ('R', 'Q')"
_SERVER = "(server_address || ':' || server_port)"


def _seconds(ms: str) -> str:
    return f"printf('%.3f', ({ms}) / 1000)"


_TOTAL_MS = "(active_ms - request_ms - queue_ms)"
# Each try before the last one failed to connect, to the same server; `connect_ms` counts from the first one on. A try
# that timed out was followed by the next one at once, and one that was refused by a pause. So all of them but the last
# took the time that there was in equal parts: a connection that comes at last comes soon, and the last refusal, too.
_BEFORE_MS = f"""CASE WHEN connect_ms >= 0 THEN connect_ms // nullif(retries, 0)
    WHEN termination LIKE 's%' AND response_ms < 0 THEN {_TOTAL_MS} // (retries + 1)
    ELSE {_TOTAL_MS} // nullif(retries, 0) END"""

_LAST_CONNECT_MS = f"(connect_ms - retries * coalesce({_BEFORE_MS}, 0))"


def _tries(value: str, before: str = "'-'") -> str:
    """What a field says of each try: `before` of those before the last, of which the log has only the number."""
    return f"if({_TRIED}, repeat({before} || ', ', retries) || coalesce({value}, '-'), '')"


# Thirty years, and more retries than a configuration has: what is beyond that is not a figure of HAProxy's.
_MS_MAX, _RETRIES_MAX = 10**12, 1000

ACCESS = Format(
    fields={
        "time_ms": "BIGINT", "accepted_ms": "VARCHAR", "requests": "VARCHAR", "client_address": "VARCHAR",
        "client_port": "BIGINT", "frontend_address": "VARCHAR", "method": "VARCHAR", "uri": "VARCHAR",
        "status": "BIGINT", "bytes_sent": "BIGINT", "request_ms": "BIGINT", "queue_ms": "BIGINT",
        "connect_ms": "BIGINT", "response_ms": "BIGINT", "active_ms": "BIGINT", "termination": "VARCHAR",
        "retries": "INTEGER", "server_address": "VARCHAR", "server_port": "VARCHAR",
        "local_port": "VARCHAR",
    },
    bounds=dict.fromkeys(("request_ms", "queue_ms", "connect_ms", "response_ms", "active_ms"), _MS_MAX)
    | {"retries": _RETRIES_MAX},
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
        # HAProxy answers 503 for a server that it cannot reach; the termination tells a refusal from a timeout.
        "upstream_status": _tries(
            "CASE WHEN termination LIKE 's%' AND response_ms < 0 THEN '504'"
            " WHEN termination LIKE 'S%' AND response_ms < 0 THEN '502'"
            " WHEN response_ms >= 0 THEN status::VARCHAR END"
        ),
        "upstream_connect_time": _tries(f"if(connect_ms >= 0, {_seconds(_LAST_CONNECT_MS)}, NULL)"),
        "upstream_header_time": _tries(
            f"if(response_ms >= 0, {_seconds(f'{_LAST_CONNECT_MS} + response_ms')}, NULL)"
        ),
        "upstream_response_time": _tries(
            _seconds(f"{_TOTAL_MS} - retries * coalesce({_BEFORE_MS}, 0)"), f"coalesce({_seconds(_BEFORE_MS)}, '')"
        ),
        "upstream_local_port": _tries("nullif(local_port, '')"),
        # A try that never had a port has sent nothing; port_shortages.sql says whether there was one to have.
        "gave_up": f"CASE WHEN termination LIKE 'sQ%' THEN '{QUEUE_TIMEOUT}'"
        f" WHEN termination LIKE 'SC%' AND connect_ms < 0 AND coalesce(local_port, '') = '' THEN '{NO_PORT}' END",
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
