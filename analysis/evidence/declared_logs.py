"""Reads a log whose format is declared: SQL that makes each line a record of `logs.COLUMNS`.

It tells what the log tells. What stands in the way of a join is left out, and is a gap of its own: `resolution_us` says
how exact a line's time is, and `guessed` that the log names no server of the proxy's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.database import composed
from analysis.evidence.logs import COLUMNS
from formats.log_format import FieldName, LogField, LogFormat

# A row for each line: the object, NULL where there is none.
_ROWS_OF_JSON = """SELECT json AS found, row_number() OVER () AS line
  FROM read_ndjson_objects($path, ignore_errors = true)"""
# The groups by their names, each empty where the pattern does not match. No log has the delimiter in a line; a line of
# more than 64 KiB is skipped.
_ROWS_OF_PATTERN = """SELECT regexp_extract(text, $pattern, {}) AS found, row_number() OVER () AS line
  FROM read_csv($path, header = false, columns = {{'text': 'VARCHAR'}}, delim = E'\\x1f', quote = '', escape = '',
                auto_detect = false, ignore_errors = true, strict_mode = false, max_line_size = 65536)
 WHERE text IS NOT NULL"""
_LAYOUTS = ("%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S")


@dataclass(frozen=True, slots=True)
class Upstreams:
    """The servers behind a proxy.

    Attributes:
        names: the addresses of the run's hosts, by the names that a log may have for them.
        alone: the one address behind the proxy, with its port; None if there are several.
        proxy: whether the program is a proxy.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    alone: str | None = None
    proxy: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredFormat:
    """A declared format, as `records` loads it. Beside the log, a program may write sentences of its own there."""

    declared: LogFormat
    upstreams: Upstreams = Upstreams()
    speaks: bool = True

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what the SQL of `lines` asks for besides the path."""
        names = self.upstreams.names
        asked: dict[str, Any] = {"hosts": list(names), "addresses": list(names.values())}
        asked |= {"alone": self.upstreams.alone, "pattern": self.declared.pattern}
        query = self.lines()
        return {name: value for name, value in asked.items() if f"${name}" in query}

    def lines(self) -> str:
        """SQL for a row for each line of the file `$path`: its number `line`, and `COLUMNS`."""
        of = self._columns()
        columns = ", ".join(f"({of.get(name, 'NULL')})::{type_} AS {name}" for name, type_ in COLUMNS.items())
        query = composed(__name__, "lines_of_declared_logs", columns=columns, values=self._values())
        return f"WITH told AS ({self._rows()}) {query}"

    def _rows(self) -> str:
        return _ROWS_OF_PATTERN.format(self._names()) if self.declared.pattern else _ROWS_OF_JSON

    def _names(self) -> str:
        """Return the names of the pattern's groups as a list of SQL: each group has one."""
        compiled = re.compile(self.declared.pattern or "")
        names = {number: name for name, number in compiled.groupindex.items()}
        return "[" + ", ".join(f"'{names.get(one, f'_{one}')}'" for one in range(1, compiled.groups + 1)) + "]"

    def _values(self) -> str:
        """Return SQL for each declared field as text, NULL where a line has none."""
        found = (f"{self._text(one)} AS f_{name}" for name, one in self.declared.places.items())
        return ", ".join(found)

    def _text(self, one: LogField) -> str:
        name = (one.name or "").replace("'", "''")
        if self.declared.pattern:
            return f"nullif(nullif(found['{name}'], ''), '-')"
        paths = (f'$."{name}"', "$" + "".join(f'."{part}"' for part in name.split(".")))
        whole, inner = (f"json_extract_string(found, '{path}')" for path in paths)
        return f"nullif(nullif(coalesce({whole}, {inner}), ''), '-')"

    def _columns(self) -> dict[str, str]:
        places = self.declared.places
        ended = _moment_us("time", places) if "time" in places else None
        taken = f"duration_us(f_duration, {places['duration'].unit_us})" if "duration" in places else None
        if ended is None:
            ended = f"{_moment_us('start', places)} + {f'coalesce({taken}, 0)' if taken else '0'}"
        columns = {
            "time_ms": f"({ended}) // 1000",
            "resolution_us": f"resolution_us(f_{'time' if 'time' in places else 'start'})",
            "status": "try_cast(f_status AS BIGINT)",
            "request_time": f"{taken} / 1e6" if taken else "NULL",
        }
        columns |= _of_request(places) | _of_client(places)
        columns |= {
            column: f"try_cast(f_{name} AS BIGINT)" if column == "bytes_sent" else f"f_{name}"
            for name, column in (("bytes", "bytes_sent"), ("request_id", "request_id"))
            if name in places
        }
        return columns | (self._of_upstream(places, taken) if self.upstreams.proxy else {})

    def _of_upstream(self, places: Mapping[FieldName, LogField], taken: str | None) -> dict[str, str]:
        """Return the columns of the server that a proxy asked; the path knows it where the log does not."""
        # A log that names servers names none for what the proxy answered itself.
        named = "if(f_upstream IS NULL, '', coalesce(address_of(f_upstream, $hosts, $addresses), $alone, ''))"
        columns = {
            "upstream_addr": named if "upstream" in places else "coalesce($alone, '')",
            "upstream_status": "f_upstream_status" if "upstream_status" in places else "NULL",
            "upstream_local_port": "f_upstream_port" if "upstream_port" in places else "NULL",
            "guessed": "true" if "upstream_status" not in places or "upstream_connect" not in places else "false",
        }
        for name in ("connect", "header", "duration"):
            key: FieldName = f"upstream_{name}"  # type: ignore[assignment]
            column = "upstream_response_time" if name == "duration" else f"upstream_{name}_time"
            if key in places:
                columns[column] = f"coalesce((duration_us(f_{key}, {places[key].unit_us}) / 1e6)::VARCHAR, '-')"
        if "upstream_duration" not in places and taken:
            columns["upstream_response_time"] = f"({taken} / 1e6)::VARCHAR"
        return columns


def _moment_us(name: FieldName, places: Mapping[FieldName, LogField]) -> str:
    layout = places[name].layout
    layouts = [layout] if layout else _LAYOUTS
    listed = ", ".join("'" + each.replace("'", "''") + "'" for each in layouts)
    told = f"epoch_us(try_strptime(f_{name}, {listed if layout else f'[{listed}]'})::TIMESTAMPTZ)"
    return told if layout else f"coalesce(moment_us(f_{name}), {told})"


def _of_request(places: Mapping[FieldName, LogField]) -> dict[str, str]:
    found = {}
    for name, column, part in (("method", "request_method", 1), ("uri", "request_uri", 2)):
        if name in places:
            found[column] = f"f_{name}"
        elif "request" in places:
            found[column] = f"nullif(split_part(f_request, ' ', {part}), '')"
    return found


def _of_client(places: Mapping[FieldName, LogField]) -> dict[str, str]:
    """Return where the request came from; the address may have its port."""
    if "client" not in places:
        return {}
    port = "try_cast(f_client_port AS BIGINT)" if "client_port" in places else "client_port_of(f_client)"
    return {"remote_addr": "client_host_of(f_client)", "remote_port": port}
