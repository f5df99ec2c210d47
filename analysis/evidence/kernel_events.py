"""Reads events.jsonl of a collector, what the kernel itself told of each connection, into the table `kernel_events`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from analysis.database import create, sql
from analysis.evidence.clock import Clock
from analysis.evidence.clocks import Clocks
from analysis.evidence.jsonl import Damage, why_unreadable
from analysis.evidence.rawfiles import Places, descriptor_path
from formats.manifest import Manifest
from formats.safe_files import open_regular

FILE = "events.jsonl"
SCHEMA = "connlab.kernel-events/1"
TABLE = "kernel_events"

_EVENT = {
    "time_us": "BIGINT", "local": "VARCHAR", "local_port": "BIGINT", "peer": "VARCHAR", "peer_port": "BIGINT",
    "wait_us": "BIGINT", "program": "VARCHAR", "error": "VARCHAR", "flags": "VARCHAR", "reason": "VARCHAR",
    "from": "VARCHAR", "from_port": "BIGINT", "to": "VARCHAR", "to_port": "BIGINT",
}  # fmt: skip
# In the file, the program is `by`, a word of SQL.
_LINE = {
    "kind": "VARCHAR", **_EVENT, "by": "VARCHAR", "schema": "VARCHAR", "role": "VARCHAR",
    "events": "BIGINT", "lost": "BIGINT", "missed_max": "BIGINT",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelEvents:
    """How the file of one instance was read.

    Attributes:
        reason: why there are no events or no more of them, by the last line; None if it says that all is well.
        lost: events for which there was no room; None if the file does not say.
        missed_max: how many more may be missing.
    """

    damage: Damage
    header: bool = False
    ended: bool = False
    reason: str | None = None
    count: int = 0
    announced: int | None = None
    lost: int | None = None
    missed_max: int | None = None


def are_due(manifest: Manifest) -> bool:
    """Return whether the kernels' events were asked for."""
    asked = manifest.observed.events if manifest.observed else manifest.value_of("capture.events")
    return asked == "kernel"


def load_all(
    database: duckdb.DuckDBPyConnection, manifest: Manifest, places: Places, clocks: Clocks
) -> dict[str, KernelEvents]:
    """Make the table, and load the events of every instance, if they were asked for; it never raises."""
    create(database, TABLE, {"instance": "VARCHAR", "kind": "VARCHAR", **_EVENT})
    instances = [each for of_role in manifest.instances.values() for each in of_role] if are_due(manifest) else []
    return {each: _load(database, places.collector(each, FILE), each, clocks.of(each)) for each in instances}


def _load(database: duckdb.DuckDBPyConnection, path: Path, instance: str, clock: Clock) -> KernelEvents:
    """Append an instance's events to the table, on the steady clock."""
    try:
        with open_regular(path) as file:
            database.execute(
                f"CREATE OR REPLACE TEMP TABLE kernel_lines AS {sql(__name__, 'lines_of_kernel_events')}",
                {"path": descriptor_path(file), "fields": _LINE},
            )
    except (OSError, duckdb.Error) as error:
        missing = why_unreadable(error) if isinstance(error, OSError) else str(error).splitlines()[0]
        return KernelEvents(Damage(missing=missing))
    columns = ", ".join(f'"{name}"' for name in ("kind", *_EVENT))
    values = columns.replace('"program"', '"by"')
    database.execute(
        f"INSERT INTO {TABLE} (instance, {columns}) SELECT $instance, {values} FROM kernel_lines WHERE whole",  # noqa: S608  names of our own
        {"instance": instance},
    )
    if clock.differs:
        steady = f"UPDATE {TABLE} SET time_us = {clock.sql('time_us')} WHERE instance = $instance"  # noqa: S608  as above
        database.execute(steady, {"instance": instance})
    header, corrupt, count = database.execute(
        "SELECT count(*) FILTER (kind = 'header' AND schema = $schema AND role = $instance),"
        " count(*) FILTER (kind IS NULL), count(*) FILTER (whole) FROM kernel_lines",
        {"schema": SCHEMA, "instance": instance},
    ).fetchall()[0]
    end = database.execute("SELECT reason, events, lost, missed_max FROM kernel_lines WHERE kind = 'end'").fetchone()
    reason, announced, lost, missed = end or (None, None, None, None)
    return KernelEvents(
        Damage(bad_lines=corrupt),
        header=header == 1,
        ended=end is not None,
        reason=None if reason == "signal" else reason,
        count=count,
        announced=announced,
        lost=lost,
        missed_max=missed,
    )
