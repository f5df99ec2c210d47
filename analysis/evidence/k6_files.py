"""Reads what one k6 instance recorded beside its requests and dials: its events, its own account, a script's checks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.evidence.jsonl import JsonLines, Record, integer, kind_of
from analysis.evidence.records import Log
from formats.safe_files import read_regular

# k6 writes its log as logfmt, or as JSON if so told.
_LOG_ERROR = re.compile(rb'level=(?:error|fatal|panic)\b|"level":"(?:error|fatal|panic)"')

# A threshold that was crossed is a result, which the script's predictions have.
_CROSSED = b"thresholds on metrics"


@dataclass(slots=True)
class Events(Log):
    """What events.jsonl holds; its last line does not say how many there are."""

    records: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class Client:
    """All of one k6 instance; None for a count that it left no account of.

    Attributes:
        log_errors: lines of level error and above in k6.log.
        script_results: checks and thresholds, from summary.json; None if k6 left no whole one.
    """

    requests: Log
    dials: Log
    events: Events
    dropped_iterations: int | None
    interrupted_iterations: int | None
    log_errors: int | None
    script_results: ScriptResults | None


def read(folder: Path, instance: str, requests: Log, dials: Log) -> Client:
    """Return what the folder that this k6 instance wrote to holds; it never raises."""
    live, summary = None, _summary(folder / "summary.json")
    for _, record in JsonLines(folder / "live.jsonl"):
        live = record or live
    return Client(
        requests=requests,
        dials=dials,
        events=_read_events(folder / "events.jsonl", instance),
        dropped_iterations=_dropped_iterations(summary, live),
        interrupted_iterations=integer(live, "interrupted_iterations") if live else None,
        log_errors=_log_errors(folder / "k6.log"),
        script_results=load_script_results(summary),
    )


def _read_events(path: Path, instance: str) -> Events:
    lines = JsonLines(path)
    events, ended = Events(lines.damage), False
    for number, record in lines:
        if record is None:
            continue
        kind = kind_of(record)
        if kind == "header":
            events.header = record.get("schema") == "connlab.events/1" and record.get("instance") == instance
        elif kind == "end":
            ended = True
        elif isinstance(record.get("name"), str) and isinstance(record.get("data"), dict):
            events.records.append(record)
        else:
            lines.damage.add_bad_line(number)
    events.count = len(events.records)
    events.announced = events.count if ended else None
    return events


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


_OPERATORS = {"<=": " at most ", ">=": " at least ", "===": " is ", "==": " is ", "!=": " is not ", "<": " below ",
              ">": " above "}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """What became of the checks of one name, whatever group they stand in."""

    passes: int
    fails: int


@dataclass(frozen=True, slots=True)
class ScriptResults:
    """The checks and thresholds of a summary by their names in figures; None for a name that two would have."""

    checks: dict[str, Check | None]
    thresholds: dict[str, bool | None]


def figure_name(text: str) -> str:
    """Return the name in figures of a check: small letters, digits, and _ for all else; `_` if nothing is left."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "_"


def threshold_name(metric: str, expression: str) -> str:
    """Return the name in figures of a threshold, such as http_req_duration_p_95_below_500."""
    words = re.sub("|".join(map(re.escape, _OPERATORS)), lambda match: _OPERATORS[match[0]], expression)
    return figure_name(f"{metric} {words}")


def load_script_results(summary: Any) -> ScriptResults | None:  # noqa: ANN401 # JSON
    """Return what k6's summary says; None if it is not a whole summary."""
    try:
        return ScriptResults(_checks(summary["root_group"]), _thresholds(summary["metrics"]))
    except (KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checks(root: Any) -> dict[str, Check | None]:  # noqa: ANN401 # JSON
    by_name: dict[str, Check] = {}
    for check in _in_groups(root):
        before = by_name.get(check["name"], Check(0, 0))
        by_name[check["name"]] = Check(before.passes + check["passes"], before.fails + check["fails"])
    named = Counter(map(figure_name, by_name))
    return {figure_name(name): check if named[figure_name(name)] == 1 else None for name, check in by_name.items()}


def _in_groups(group: Any) -> Iterator[Any]:  # noqa: ANN401 # JSON
    yield from group["checks"]
    for inner in group["groups"]:
        yield from _in_groups(inner)


def _thresholds(metrics: Any) -> dict[str, bool | None]:  # noqa: ANN401 # JSON
    found: dict[str, bool | None] = {}
    for metric, values in metrics.items():
        for expression, outcome in values.get("thresholds", {}).items():
            name = threshold_name(metric, expression)
            found[name] = None if name in found else outcome["ok"] is True
    return found
