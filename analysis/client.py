"""Reads what one k6 instance recorded: every request, every dial, its events and its own account."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis import bulk
from analysis.jsonl import Damage, JsonLines, Record, integer, kind_of

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.bulk import Log

# k6 writes its log as logfmt, or as JSON if so told.
_LOG_ERROR = re.compile(rb'level=(?:error|fatal|panic)\b|"level":"(?:error|fatal|panic)"')

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


@dataclass(slots=True)
class Events:
    """What events.jsonl holds.

    Attributes:
        damage: what is wrong with the file.
        header: whether there is a header of the version this reads.
        ended: whether there is the last line, which k6 writes as it ends.
        records: the events.
    """

    damage: Damage
    header: bool
    ended: bool
    records: list[Record]


@dataclass(slots=True)
class Client:
    """All of one k6 instance.

    Attributes:
        requests: columns vu, latency_us (connect + duration), ok and answered (0 or 1), error_code.
        dials: columns duration_us, failure (0, or 1 + the index in ERROR_KINDS).
        events: what users reported, from events.jsonl.
        live: the last record of live.jsonl, None if there is none.
        dropped_iterations: iterations that k6 could not begin; None if it left no account of itself.
        interrupted_iterations: iterations that k6 ended before their end; None if it does not say.
        log_errors: lines of level error and above in k6.log; None if there is no log.
    """

    requests: Log
    dials: Log
    events: Events
    live: Record | None
    dropped_iterations: int | None
    interrupted_iterations: int | None
    log_errors: int | None


def read(folder: Path) -> Client:
    """Return what raw/<instance>/ of a k6 instance holds; it never raises."""
    live = None
    for _, record in JsonLines(folder / "live.jsonl"):
        live = record or live
    return Client(
        requests=bulk.read(folder / "requests.jsonl", _REQUESTS, ("vu", "latency_us", "ok", "answered", "error_code")),
        dials=read_dials(folder / "dials.jsonl"),
        events=_read_events(folder / "events.jsonl"),
        live=live,
        dropped_iterations=_dropped_iterations(folder / "summary.json", live),
        interrupted_iterations=integer(live, "interrupted_iterations") if live else None,
        log_errors=_log_errors(folder / "k6.log"),
    )


def read_dials(path: Path) -> Log:
    """Return what a dials.jsonl holds, of k6 or of the gateway; it never raises."""
    return bulk.read(path, _DIALS, ("duration_us", "failure"), kinds=list(ERROR_KINDS))


def _read_events(path: Path) -> Events:
    lines = JsonLines(path)
    events = Events(lines.damage, header=False, ended=False, records=[])
    for number, record in lines:
        if record is None:
            continue
        kind = kind_of(record)
        if kind == "header":
            events.header = record.get("schema") == "connlab.events/1"
        elif kind == "end":
            events.ended = True
        elif isinstance(record.get("name"), str) and isinstance(record.get("data"), dict):
            events.records.append(record)
        else:
            lines.damage.add_bad_line(number)
    return events


# Both queries give one row for each line, in the file's order: what it is (analysis.bulk.Line), how many records the
# end line announces, and the columns of the records. A line is a record only if all its fields are there with values
# that can be (2^53 µs are 285 years), and corrupt if it is nothing else.

# k6 counts the statuses from 200 to 399 as success, and so does its http_req_failed.
_REQUESTS = """
    SELECT CASE WHEN whole THEN 0
                WHEN kind = 'header' THEN if(schema = 'connlab.requests/1', 1, 3)
                WHEN kind = 'end' AND requests IS NOT NULL THEN 2
                ELSE 4 END AS line,
           requests AS announced,
           vu, error_code,
           CASE WHEN whole THEN connecting_us + tls_us + duration_us END AS latency_us,
           (error_code = 0 AND status BETWEEN 200 AND 399)::BIGINT AS ok,
           (status > 0)::BIGINT AS answered
      FROM (SELECT *, kind IS NULL AND list_count(list_filter(
                      [id, vu, time_us, connecting_us, tls_us, duration_us, status, error_code],
                      lambda field: field BETWEEN 0 AND 1::BIGINT << 53)) = 8 AS whole
              FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = {
                   kind: 'VARCHAR', schema: 'VARCHAR', id: 'BIGINT', vu: 'BIGINT', time_us: 'BIGINT',
                   connecting_us: 'BIGINT', tls_us: 'BIGINT', duration_us: 'BIGINT', status: 'BIGINT',
                   error_code: 'BIGINT', requests: 'BIGINT'}))
"""

_DIALS = """
    SELECT CASE WHEN whole THEN 0
                WHEN kind = 'header' THEN if(schema = 'connlab.dials/1', 1, 3)
                WHEN kind = 'end' AND dials IS NOT NULL THEN 2
                WHEN kind = 'close' THEN 3
                ELSE 4 END AS line,
           dials AS announced,
           duration_us,
           CASE WHEN error IS NULL AND error_kind IS NULL THEN 0
                ELSE coalesce(list_position($kinds, error_kind), len($kinds))::BIGINT END AS failure
      FROM (SELECT *, kind = 'dial' AND list_count(list_filter(
                      [id, time_us, duration_us], lambda field: field BETWEEN 0 AND 1::BIGINT << 53)) = 3 AS whole
              FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = {
                   kind: 'VARCHAR', schema: 'VARCHAR', id: 'BIGINT', time_us: 'BIGINT', duration_us: 'BIGINT',
                   error: 'VARCHAR', error_kind: 'VARCHAR', dials: 'BIGINT'}))
"""


def _dropped_iterations(summary: Path, live: Record | None) -> int | None:
    """What k6 says at its end, or failing that said last; k6 leaves the metric out when it is zero."""
    try:
        document: Any = json.loads(summary.read_bytes())
        metrics = document["metrics"]
        return int(metrics["dropped_iterations"]["values"]["count"]) if "dropped_iterations" in metrics else 0
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return integer(live, "dropped_iterations") if live else None


def _log_errors(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            return sum(1 for line in file if _LOG_ERROR.search(line))
    except OSError:
        return None
