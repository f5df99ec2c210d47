"""Puts the records that grow with the load into tables of one DuckDB: each file is read once.

The tables are `requests`, `dials` and `closes` of clients and of proxies that record them, and `access`, a proxy's log;
each row has its `instance`, and times are on the steady clock. DuckDB's reader passes over corrupt lines as
`evidence.jsonl` does, ten times as fast: a line that is not a JSON object is a row of NULLs. What is missing or damaged
is no row; the `Log` of its file says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

import duckdb

from analysis.database import Tables, composed, create, in_memory, insert_rows, may_use, sql
from analysis.evidence import jsonl, kernel_events, logs, result_files, size
from analysis.evidence.clock import NEVER_SET, Clock
from analysis.evidence.clocks import Clocks
from analysis.evidence.declared_logs import DeclaredFormat, Upstreams
from analysis.evidence.jsonl import Damage, parse, why_unreadable
from analysis.evidence.kernel_events import KernelEvents
from analysis.evidence.logs import Format
from analysis.evidence.rawfiles import Places, descriptor_path
from formats.manifest import Manifest
from formats.safe_files import open_regular

# Enough for the longest line of a record; servers bound a URL at 8 KiB.
_TAIL_BYTES = 1 << 16

# The fields of the end line that say how many records there are.
_ANNOUNCED = {"requests": "BIGINT", "dials": "BIGINT"}
# The columns of the table `dials` that only lines of closes have.
_OF_CLOSES = ("bytes_sent", "bytes_received")

# More connections than a process numbers.
_A_PROCESS_APART = 1 << 40


class LineKind(IntEnum):
    """What a query says each line is, in its column `line_kind`."""

    RECORD = 0
    HEADER = 1
    END = 2
    OTHER = 3
    CORRUPT = 4
    CLOSE = 5


@dataclass(slots=True)
class Log:
    """What one file holds.

    Attributes:
        header: whether there is a header of the version this reads.
        announced: how many records the last line, written at an orderly end, says there are; None without it.
    """

    damage: Damage
    header: bool = False
    announced: int | None = None
    count: int = 0


class Records(Tables):
    """The tables, and how each file of requests, dials and access logs was read, by instance."""

    def __init__(self) -> None:
        super().__init__(in_memory())
        kinds = ", ".join(f"'{kind}'" for kind in jsonl.ERROR_KINDS)
        succeeded = jsonl.SUCCEEDED
        self.database.execute(composed(__name__, "macros_of_records", succeeded=succeeded, kinds=kinds))
        self.database.execute(sql(__name__, "macros_of_logs"))
        tell = {"instance": "VARCHAR", "line_kind": "TINYINT", "announced": "BIGINT"}
        # What a dial has more is of the lines that tell of a close.
        dials = jsonl.DIALS | dict.fromkeys(_OF_CLOSES, "BIGINT")
        create(self.database, "requests", tell | jsonl.REQUESTS)
        create(self.database, "dials", tell | dials)
        create(self.database, "closes", {"instance": "VARCHAR", **jsonl.CLOSES})
        for table in ("access", "served_lines"):
            create(self.database, table, {**tell, "line": "BIGINT", **logs.COLUMNS})
        self.requests: dict[str, Log] = {}
        self.dials: dict[str, Log] = {}
        self.access: dict[str, Log] = {}
        self.served: dict[str, Log] = {}
        self.kernel_events: dict[str, KernelEvents] = {}

    def load_requests(self, path: Path, instance: str, clock: Clock = NEVER_SET) -> None:
        """Load a client's requests.jsonl."""
        query = composed(__name__, "lines_of_records", records="requests", whole=jsonl.WHOLE_REQUEST, closed="false")
        fields = {**jsonl.HEADER, **jsonl.REQUESTS, **_ANNOUNCED}
        self.requests[instance] = self._load("requests", query, path, instance, fields=fields, writers=[instance])
        self._keep_records("requests", instance)
        put_on_steady(self.database, "requests", instance, clock, "time_us", "end_us")

    def load_results(self, path: Path, instance: str, of: str, server: str | None, clock: Clock = NEVER_SET) -> None:
        """Load a load generator's file of results as requests, with the dials that they tell of."""
        requests, dials, damage = result_files.read(path, of, server)
        for table, rows in (("requests", requests), ("dials", dials)):
            if rows:
                values = [tuple(row.values()) for row in rows]
                insert_rows(self.database, table, rows[0], values, f"'{instance}' AS instance, *")
            put_on_steady(
                self.database, table, instance, clock, "time_us", *(["end_us"] if table == "requests" else [])
            )
        self.requests[instance] = Log(damage, count=len(requests))
        self.dials[instance] = Log(Damage(), count=len(dials))

    def load_dials(self, path: Path, instance: str, role: str, clock: Clock = NEVER_SET) -> None:
        """Load the dials.jsonl of a client or a proxy, whose header may name the role."""
        whole, closed = jsonl.WHOLE_DIAL, jsonl.WHOLE_CLOSE
        query = composed(__name__, "lines_of_records", records="dials", whole=whole, closed=closed)
        fields = {**jsonl.HEADER, **jsonl.DIALS, **jsonl.CLOSES, **_ANNOUNCED}
        self.dials[instance] = self._load("dials", query, path, instance, fields=fields, writers=[instance, role])
        self.database.execute(sql(__name__, "closes"), {"instance": instance})
        self._keep_records("dials", instance)
        for table in ("dials", "closes"):
            put_on_steady(self.database, table, instance, clock, "time_us")

    def load_access(
        self, path: Path, instance: str, of: Format | DeclaredFormat, clock: Clock = NEVER_SET, *, proxy: bool = True
    ) -> None:
        """Load an access log: a proxy's, or that of a server, whose lines have a table of their own."""
        table, found = ("access", self.access) if proxy else ("served_lines", self.served)
        kinds = composed(__name__, "lines_of_access", whole=jsonl.WHOLE_ACCESS)
        query = f"WITH lines AS ({of.lines()}) {kinds}"
        found[instance] = self._load(table, query, path, instance, speaks=of.speaks, **of.parameters)
        self.database.execute(f"DELETE FROM {table} WHERE line_kind <> 0")  # noqa: S608  as above
        put_on_steady(self.database, table, instance, clock, "time_ms", unit_us=1000)

    def drop_marks(self) -> None:
        """Drop the columns that only say what each line was: all that is left are records."""
        for table in ("requests", "dials", "access", "served_lines"):
            for column in ("line_kind", "announced", *(_OF_CLOSES if table == "dials" else ())):
                self.database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")

    def _load(self, table: str, query: str, path: Path, instance: str, **parameters: object) -> Log:
        """Append all lines of a file to a table, with what each is; it never raises."""
        try:
            with open_regular(path) as file:
                cut = _is_cut(file)
                self.database.execute(
                    f"INSERT INTO {table} BY NAME {query}",
                    {"path": descriptor_path(file), "instance": instance, **parameters},
                )
        except (OSError, duckdb.Error) as error:
            missing = why_unreadable(error) if isinstance(error, OSError) else str(error).splitlines()[0]
            return Log(Damage(missing=missing))
        counted = f"SELECT line_kind, count(*), last(announced) FROM {table} WHERE instance = ? GROUP BY line_kind"  # noqa: S608  as above
        found = {kind: (count, last) for kind, count, last in self.database.execute(counted, [instance]).fetchall()}
        (count, _), (corrupt, _) = (found.get(kind, (0, None)) for kind in (LineKind.RECORD, LineKind.CORRUPT))
        return Log(
            damage=Damage(bad_lines=max(corrupt - cut, 0), cut=cut),
            header=LineKind.HEADER in found,
            announced=found[LineKind.END][1] if LineKind.END in found else None,
            count=count,
        )

    def _keep_records(self, table: str, instance: str) -> None:
        """Remove all lines but records.

        An id that comes again, in a damaged file, is not a second record: joins count on one.
        """
        self.database.execute(
            f"""DELETE FROM {table}
                 WHERE instance = $instance
                   AND (line_kind <> 0
                        OR rowid IN (SELECT rowid FROM {table} WHERE instance = $instance AND line_kind = 0
                                     QUALIFY row_number() OVER (PARTITION BY id ORDER BY rowid) > 1))""",  # noqa: S608  as above
            {"instance": instance},
        )


def _first_server(manifest: Manifest) -> str | None:
    """Return address and port of the path's first server; None where it has several, or none is known."""
    role = next(iter(manifest.path[1:]), "")
    every = [address for each in manifest.of_role(role) for address in manifest.addresses.get(each, [])]
    six = role in manifest.roles and manifest.roles[role].ipv6
    addresses = [one for one in every if (":" in one) == six]
    address = addresses[0] if len(addresses) == 1 else None
    if address is None:
        return None
    port = manifest.roles[role].port if role in manifest.roles else manifest.port_of(role)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def load_records(manifest: Manifest, places: Places, clocks: Clocks) -> Records:
    """Return the records of a run; it never raises for what its files hold or lack."""
    records = Records()
    may_use(records.database, size.needs_of(manifest, places).tables_mb)
    for instance in manifest.of_role("k6"):
        folder, clock = places.role(instance), clocks.of(instance)
        records.load_requests(folder / "requests.jsonl", instance, clock)
        records.load_dials(folder / "dials.jsonl", instance, instance, clock)
    for instance, file, of in manifest.logged(result_files.FORMATS):
        server = _first_server(manifest)
        records.load_results(places.role(instance, file), instance, of, server, clocks.of(instance))
    # A proxy may write the same record of its connections to the servers.
    role_of = {each: role for role, instances in manifest.instances.items() for each in instances}
    for instance, file, _ in manifest.logged(logs.DIALS):
        records.load_dials(places.role(instance, file), instance, role_of[instance], clocks.of(instance))
    for instance, file, of in manifest.logged(logs.ACCESS):
        proxy = instance in manifest.proxies
        records.load_access(places.role(instance, file), instance, logs.ACCESS[of], clocks.of(instance), proxy=proxy)
    for instance, file, declared in manifest.declared_logs():
        proxy = instance in manifest.proxies
        relays = proxy or manifest.roles[role_of[instance]].relays
        format_ = DeclaredFormat(declared, _upstreams(manifest, role_of[instance], proxy=relays))
        records.load_access(places.log(instance, file), instance, format_, clocks.of(instance), proxy=proxy)
    records.kernel_events = kernel_events.load_all(records.database, manifest, places, clocks)
    tell_processes_apart(records.database, manifest, "access", "1000 * time_ms", resolution_us=1)
    records.drop_marks()
    return records


def _upstreams(manifest: Manifest, role: str, *, proxy: bool) -> Upstreams:
    """Return the servers behind a role, by the names that a log may have for them: a role's, or an instance's."""
    names = {each: host for each, (host, *_) in manifest.addresses.items()}
    names |= {of: names[each] for of, (each, *more) in manifest.instances.items() if not more and each in names}
    following = next(iter(manifest.path[manifest.path.index(role) + 1 :]), None) if role in manifest.path else None
    behind = [f"{names[each]}:{manifest.port_of(each)}" for each in manifest.of_role(following or "") if each in names]
    return Upstreams(names, behind[0] if len(behind) == 1 else None, proxy)


def tell_processes_apart(
    database: duckdb.DuckDBPyConnection, manifest: Manifest, table: str, time_us: str, resolution_us: int
) -> None:
    """Number the connections of a proxy that was started again apart from those before: it begins anew at 1.

    A line whose time is too coarse to say which process wrote it, names no connection.
    """
    for instance in manifest.proxies:
        for end in manifest.ends_of(instance):
            # A restart that never came down left no second process.
            if end.down_us is not None:
                database.execute(
                    f"""UPDATE {table} SET connection = CASE
                            WHEN {time_us} >= $down_us THEN try(connection + $apart)
                            WHEN {time_us} + $resolution_us <= $down_us THEN connection END
                         WHERE instance = $instance""",  # noqa: S608  names of our own
                    {
                        "down_us": end.down_us,
                        "apart": _A_PROCESS_APART,
                        "resolution_us": resolution_us,
                        "instance": instance,
                    },
                )


def put_on_steady(
    database: duckdb.DuckDBPyConnection, table: str, instance: str, clock: Clock, *times: str, unit_us: int = 1
) -> None:
    """Put an instance's times on the steady clock."""
    if clock.differs:
        scaled = {name: name if unit_us == 1 else f"{unit_us} * {name}" for name in times}
        changes = ", ".join(f"{name} = ({clock.sql(text)}) // {unit_us}" for name, text in scaled.items())
        database.execute(f"UPDATE {table} SET {changes} WHERE instance = $instance", {"instance": instance})  # noqa: S608  as above


def _is_cut(file: BinaryIO) -> bool:
    """Return whether the last line broke off: it has no line feed and is not a record."""
    size_ = file.seek(0, 2)
    file.seek(max(size_ - _TAIL_BYTES, 0))
    tail = file.read()
    last = tail[tail.rfind(b"\n") + 1 :]
    return bool(last.strip()) and parse(last) is None
