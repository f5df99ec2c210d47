"""A proxy's access log: one line for each request it answered, written when the request ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.database import composed

if TYPE_CHECKING:
    from collections.abc import Mapping

# Why the proxy gave a request up, where its log tells: no server was free in time; its kernel had no port left.
QUEUE_TIMEOUT, NO_PORT = "queue-timeout", "no-port"

# A record's columns, whatever the log's format; nginx's names and units, the port of each try, and `gave_up`.
COLUMNS: Mapping[str, str] = {
    "time_ms": "BIGINT", "connection": "BIGINT", "connection_requests": "BIGINT", "remote_addr": "VARCHAR",
    "remote_port": "BIGINT", "server_addr": "VARCHAR", "request_method": "VARCHAR", "request_uri": "VARCHAR",
    "request_time": "DOUBLE", "status": "BIGINT", "bytes_sent": "BIGINT", "sent_http_connection": "VARCHAR",
    "upstream_addr": "VARCHAR", "upstream_status": "VARCHAR", "upstream_connect_time": "VARCHAR",
    "upstream_header_time": "VARCHAR", "upstream_response_time": "VARCHAR", "upstream_connection": "VARCHAR",
    "upstream_connection_requests": "VARCHAR", "upstream_reused": "VARCHAR",
    "upstream_local_port": "VARCHAR", "gave_up": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """A format of JSON Lines.

    Attributes:
        fields: a line's fields, with their types.
        columns: each of `COLUMNS` that is not the field of its name: SQL over the fields.
        bounds: how far from 0 a field's number may be; one further away counts as missing.
        speaks: whether the program may write a sentence of its own between the lines.
    """

    fields: Mapping[str, str]
    bounds: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    speaks: bool = False

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
        return composed(__name__, "lines", columns=columns, within=within)
