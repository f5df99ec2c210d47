"""What the logs of proxies mean. A role declares its log files, each with its format; a format has an adapter here.

In come the declared names of formats; out go one form of access records and one of error messages, whatever the
program. It knows no role, and nothing of a run but the file at hand.
"""

from __future__ import annotations

import re
from calendar import month_abbr
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from analysis.database import composed

# Why the proxy gave a request up, where its log tells: no server was free in time; its kernel had no port left; no
# server was up; in the midst of an answer the server was silent for too long, or ended the connection; a rule of its
# own answered or closed, or held the client up first; a client was too slow.
QUEUE_TIMEOUT, NO_PORT, NO_SERVER = "queue-timeout", "no-port", "no-server"
SERVER_SILENT, SERVER_BROKE = "server-silent", "server-broke"
DENIED, TARPITTED, ANSWERED_ITSELF, CLIENT_SLOW = "denied", "tarpitted", "answered-itself", "client-slow"

# A record's columns, whatever the log's format: nginx's names and units, the port of each try, `gave_up`, whether no
# byte of the answer went out; and of logs whose format is declared, how exact a time is, and whether the log leaves
# open what became of a try.
COLUMNS: Mapping[str, str] = {
    "time_ms": "BIGINT", "connection": "BIGINT", "connection_requests": "BIGINT", "remote_addr": "VARCHAR",
    "remote_port": "BIGINT", "server_addr": "VARCHAR", "request_method": "VARCHAR", "request_uri": "VARCHAR",
    "request_length": "BIGINT", "request_time": "DOUBLE", "status": "BIGINT", "bytes_sent": "BIGINT",
    "sent_http_connection": "VARCHAR", "upstream_addr": "VARCHAR", "upstream_status": "VARCHAR",
    "upstream_connect_time": "VARCHAR", "upstream_header_time": "VARCHAR", "upstream_response_time": "VARCHAR",
    "upstream_connection": "VARCHAR", "upstream_reused": "VARCHAR", "upstream_local_port": "VARCHAR",
    "upstream_bytes_sent": "VARCHAR", "gave_up": "VARCHAR", "request_id": "VARCHAR", "resolution_us": "BIGINT",
    "guessed": "BOOLEAN", "unsent": "BOOLEAN", "ssl_protocol": "VARCHAR", "ssl_session_reused": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """A format of JSON Lines.

    Attributes:
        columns: each of `COLUMNS` that is not the field of its name: SQL over the fields.
        bounds: how far from 0 a field's number may be; one further away counts as missing.
        speaks: whether the program may write a sentence of its own between the lines.
    """

    fields: Mapping[str, str]
    bounds: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    speaks: bool = False

    @property
    def parameters(self) -> dict[str, object]:
        """Return what the SQL of `lines` asks for besides the path."""
        return {"fields": self.fields}

    def lines(self) -> str:
        """SQL for a row for each line of the file `$path` of `$fields`: its number `line`, and `COLUMNS`."""
        columns = ", ".join(
            f"({self.columns.get(name) or (name if name in self.fields else 'NULL')})::{type_} AS {name}"
            for name, type_ in COLUMNS.items()
        )
        within = ", ".join(
            f"if({name} BETWEEN -{far} AND {far}, {name}, NULL) AS {name}" if (far := self.bounds.get(name)) else name
            for name in self.fields
        )
        return composed(__name__, "lines_of_logs", columns=columns, within=within)


# nginx and HAProxy write shorter ones; the bound keeps a file that is no log from filling memory.
_LINE_BYTES_MAX = 1 << 16


class Message(NamedTuple):
    """One message.

    Attributes:
        time_us: when it was written, Unix epoch, as exact as the log is.
        connection: the client's connection that it is about, as the access log numbers it; 0 if it names none.
    """

    time_us: int
    connection: int
    text: str


def lines_of(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line's number, from 1, and the line without its end; of a line that is too long, its beginning."""
    number, begins = 1, True
    while part := file.readline(_LINE_BYTES_MAX):
        if begins:
            yield number, part.rstrip(b"\r\n")
        begins = part.endswith(b"\n")
        number += begins


MONTHS: Mapping[str, int] = {name: number for number, name in enumerate(month_abbr) if name}


def utc_us(*parts: int) -> int | None:
    """Return a time in UTC, from its year to its second; None if there is no such time."""
    year, month, day, hour, minute, second = parts
    try:
        # A leap second counts as the one before it.
        at = datetime(year, month, day, hour, minute, second - (second == 60), tzinfo=UTC)  # noqa: PLR2004
    except ValueError:
        return None
    return max(round(at.timestamp()), 0) * 1_000_000


NGINX_ACCESS = Format(COLUMNS)

# 2025/11/21 07:26:40 [error] 7#7: *12 connect() failed (111: Connection refused) while connecting to upstream, …
# A connection's number never has more than 15 digits: a longer one is something else, and may not fit into 64 bits.
NGINX_ERROR = re.compile(
    rb"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d) \[(\w+)\] \d+#\d+: (?:\*(\d{1,15}) )?(.*)", re.ASCII
)
ERROR_LEVELS = (b"error", b"crit", b"alert", b"emerg")
# Only a warning, but nginx closes connections of clients for it: once a second it says so, without naming them.
_REUSES = b"worker_connections are not enough, reusing connections"


def read_nginx_error(line: bytes) -> Message | None:
    """Return what a line of error.log says; None if it is not an error."""
    match = NGINX_ERROR.fullmatch(line)
    if match is None or not (match[7] in ERROR_LEVELS or (match[7] == b"warn" and _REUSES in match[9])):
        return None
    # nginx writes local time, and its container's is UTC; the gateway writes UTC.
    time_us = utc_us(*map(int, match.group(1, 2, 3, 4, 5, 6)))
    return None if time_us is None else Message(time_us, int(match[8] or 0), match[9].decode("utf-8", "replace"))


# The second letter of `termination` is the phase in which the request ended; none went to a server out of the queue.
_TRIED = "server_address NOT IN ('', '-') AND queue_ms >= 0 AND termination[2] NOT IN ('R', 'Q')"
_SERVER = "(server_address || ':' || server_port)"
# HAProxy writes nothing where there is none, and a dash before 3.0.
_LOCAL_PORT = "try_cast(local_port AS INTEGER)"


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
    """Return what a field says of each try: `before` of those before the last, of which the log has only the number."""
    return f"if({_TRIED}, repeat({before} || ', ', retries) || coalesce({value}, '-'), '')"


# Thirty years, and more retries than a configuration has: what is beyond that is not a figure of HAProxy's.
_MS_MAX, _RETRIES_MAX = 10**12, 1000

HAPROXY_ACCESS = Format(
    fields={
        "time_ms": "BIGINT", "accepted_ms": "VARCHAR", "requests": "VARCHAR", "client_address": "VARCHAR",
        "client_port": "BIGINT", "frontend_address": "VARCHAR", "method": "VARCHAR", "uri": "VARCHAR",
        "status": "BIGINT", "bytes_sent": "BIGINT", "request_ms": "BIGINT", "queue_ms": "BIGINT",
        "connect_ms": "BIGINT", "response_ms": "BIGINT", "active_ms": "BIGINT", "termination": "VARCHAR",
        "retries": "INTEGER", "server_address": "VARCHAR", "server_port": "VARCHAR",
        "local_port": "VARCHAR", "ssl_protocol": "VARCHAR", "ssl_session_reused": "VARCHAR",
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
            # P: what the server answered was invalid, or a rule for answers refused it.
            " WHEN regexp_matches(termination, '^[SP]') AND response_ms < 0 THEN '502'"
            " WHEN response_ms >= 0 THEN status::VARCHAR END"
        ),
        "upstream_connect_time": _tries(f"if(connect_ms >= 0, {_seconds(_LAST_CONNECT_MS)}, NULL)"),
        "upstream_header_time": _tries(
            f"if(response_ms >= 0, {_seconds(f'{_LAST_CONNECT_MS} + response_ms')}, NULL)"
        ),
        "upstream_response_time": _tries(
            _seconds(f"{_TOTAL_MS} - retries * coalesce({_BEFORE_MS}, 0)"), f"coalesce({_seconds(_BEFORE_MS)}, '')"
        ),
        "upstream_local_port": _tries(f"{_LOCAL_PORT}::VARCHAR"),
        # As nginx has it: r for a session that was resumed.
        "ssl_session_reused": "CASE WHEN coalesce(ssl_protocol, '') IN ('', '-') THEN ''"
        " WHEN ssl_session_reused IN ('true', '1') THEN 'r' ELSE '.' END",
        # It closed, or refused the stream: a client that had answers on the connection before may ask again.
        "unsent": "status >= 500 AND bytes_sent = 0",
        # A try that never had a port has sent nothing; port_shortages.sql says whether there was one to have.
        "gave_up": f"CASE WHEN termination LIKE 'sQ%' THEN '{QUEUE_TIMEOUT}'"
        f" WHEN termination LIKE 'SC%' AND coalesce(server_address, '') IN ('', '-') THEN '{NO_SERVER}'"
        f" WHEN termination LIKE 'SC%' AND connect_ms < 0 AND {_LOCAL_PORT} IS NULL THEN '{NO_PORT}'"
        f" WHEN termination LIKE 'sD%' THEN '{SERVER_SILENT}' WHEN termination LIKE 'SD%' THEN '{SERVER_BROKE}'"
        f" WHEN termination LIKE 'PR%' THEN '{DENIED}' WHEN termination LIKE 'PT%' THEN '{TARPITTED}'"
        f" WHEN termination LIKE 'LR%' THEN '{ANSWERED_ITSELF}' WHEN termination LIKE 'cR%' THEN '{CLIENT_SLOW}' END",
    },
    speaks=True,
)  # fmt: skip

# 2025-11-21T07:26:40.123456+00:00 Connect() failed for backend servers: no free ports.
_HAPROXY_ERROR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d) (.+)", re.ASCII)


def read_haproxy_error(line: bytes) -> Message | None:
    """Return what a line of error.log says; None if it is one of HAProxy's start and end, which have no time."""
    match = _HAPROXY_ERROR.fullmatch(line.decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return Message(round(moment.timestamp() * 1_000_000), 0, match[2])


# A line for each request.
ACCESS: Mapping[str, Format] = {"haproxy-access": HAPROXY_ACCESS, "nginx-access": NGINX_ACCESS}
# A message on each line: what a line says, None if it reports no error.
ERRORS: Mapping[str, Callable[[bytes], Message | None]] = {
    "haproxy-errors": read_haproxy_error,
    "nginx-errors": read_nginx_error,
}
# A proxy's own dials to servers, as schemas/dials.schema.json has them.
DIALS = ("dials",)
