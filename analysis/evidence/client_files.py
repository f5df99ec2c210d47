"""Reads what one k6 instance recorded: every request, every dial, its events and its own account."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.database import composed
from analysis.evidence import bulk, own_script
from analysis.evidence.jsonl import Damage, JsonLines, Record, integer, kind_of
from formats.safe_open import read_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analysis.evidence.bulk import Log
    from analysis.evidence.own_script import Judged

# k6 writes its log as logfmt, or as JSON if so told.
_LOG_ERROR = re.compile(rb'level=(?:error|fatal|panic)\b|"level":"(?:error|fatal|panic)"')

# A threshold that was crossed is a result, which the script's predictions have.
_CROSSED = b"thresholds on metrics"

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
        dropped_iterations: iterations that k6 could not begin; None if it left no account of itself.
        interrupted_iterations: iterations that k6 ended before their end; None if it does not say.
        log_errors: lines of level error and above in k6.log; None if there is no log.
        judged: checks and thresholds, from summary.json; None if k6 left no whole one.
    """

    requests: Log
    dials: Log
    events: Events
    dropped_iterations: int | None
    interrupted_iterations: int | None
    log_errors: int | None
    judged: Judged | None


def read(folder: Path, instance: str) -> Client:
    """Return what the folder that this k6 instance wrote to holds; it never raises."""
    live, summary = None, _summary(folder / "summary.json")
    for _, record in JsonLines(folder / "live.jsonl"):
        live = record or live
    query = composed(__name__, "lines_of_requests", whole=WHOLE_REQUEST, succeeded=SUCCEEDED)
    return Client(
        requests=bulk.read(
            folder / "requests.jsonl", query, ("vu", "latency_us", "ok", "answered", "error_code"), writers=[instance]
        ),
        dials=read_dials(folder / "dials.jsonl", [instance]),
        events=_read_events(folder / "events.jsonl", instance),
        dropped_iterations=_dropped_iterations(summary, live),
        interrupted_iterations=integer(live, "interrupted_iterations") if live else None,
        log_errors=_log_errors(folder / "k6.log"),
        judged=own_script.read(summary),
    )


def read_dials(path: Path, writers: Sequence[str]) -> Log:
    """Return what the dials.jsonl of a client or a proxy holds; it never raises.

    Args:
        path: the file.
        writers: the names that its header may have: the instance's, or of a proxy its role's.
    """
    query = composed(__name__, "lines_of_dials", whole=WHOLE_DIAL)
    return bulk.read(path, query, ("duration_us", "failure"), kinds=list(ERROR_KINDS), writers=list(writers))


def _read_events(path: Path, instance: str) -> Events:
    lines = JsonLines(path)
    events = Events(lines.damage, header=False, ended=False, records=[])
    for number, record in lines:
        if record is None:
            continue
        kind = kind_of(record)
        if kind == "header":
            events.header = record.get("schema") == "connlab.events/1" and record.get("instance") == instance
        elif kind == "end":
            events.ended = True
        elif isinstance(record.get("name"), str) and isinstance(record.get("data"), dict):
            events.records.append(record)
        else:
            lines.damage.add_bad_line(number)
    return events


# k6 counts the statuses from 200 to 399 as success, and so does its http_req_failed.
SUCCEEDED = "error_code = 0 AND status BETWEEN 200 AND 399"

# Which lines are records: those that have what the tables of all observers are joined and told by.
_REQUEST = (
    "id", "vu", "time_us", "end_us", "blocked_us", "connecting_us", "tls_us", "sending_us", "waiting_us",
    "receiving_us", "duration_us", "status", "error_code",
)  # fmt: skip
_DIAL = ("id", "time_us", "duration_us")
WHOLE_REQUEST = f"kind IS NULL AND {bulk.whole(*_REQUEST)}"
WHOLE_DIAL = f"kind = 'dial' AND {bulk.whole(*_DIAL)}"
WHOLE_CLOSE = f"kind = 'close' AND {bulk.whole('id', 'time_us', 'bytes_sent', 'bytes_received')}"


def _summary(path: Path) -> Any:  # noqa: ANN401 # JSON
    """What k6 said at its end; None if that cannot be read."""
    try:
        return json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return None


def _dropped_iterations(summary: Any, live: Record | None) -> int | None:  # noqa: ANN401 # JSON
    """What k6 says at its end, or failing that said last; k6 leaves the metric out when it is zero."""
    try:
        metrics = summary["metrics"]
        return int(metrics["dropped_iterations"]["values"]["count"]) if "dropped_iterations" in metrics else 0
    except (ValueError, KeyError, TypeError, OverflowError):
        return integer(live, "dropped_iterations") if live else None


def _log_errors(path: Path) -> int | None:
    try:
        lines = read_regular(path).splitlines()
    except OSError:
        return None
    return sum(1 for line in lines if _LOG_ERROR.search(line) and _CROSSED not in line)
