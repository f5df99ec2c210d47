"""The third section: the path, with what flowed over each hop and what was lost there, by the ledger's counts."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.formatting import counted
from analysis.reports import labels
from analysis.reports.run_record import Record, Row
from formats.manifest import declared_roles

# With more than three roles the drawing is wider than the page, and is scrolled.
_WIDTH = 1150
_BOX = 262
_BAND_WIDTH_MIN = 150
_LINE = 20
_BAND_TOP, _BAND = 66, 64
_THINNEST = 4

# Who has no port left sends nothing that a capture could count.
_PORTLESS = "dials.failed_address_not_available"
_OF_SPIKES = frozenset({"load.rate_per_second"})


@dataclass(frozen=True)
class Box:
    """A role: its place, its name, its limits, and what was seen there."""

    x: int
    name: str
    limits: list[str]
    seen: list[tuple[str, str]]


@dataclass(frozen=True)
class Band:
    """A hop: its place, what passed and what was lost as parts of its width, and the counts in words.

    Attributes:
        passed, lost: heights; both 0 where nothing counted the hop.
        counts: a class and a text each.
    """

    x: int
    width: int
    y: int
    passed: int
    lost: int
    title: str
    counts: list[tuple[str, str]]


@dataclass(frozen=True)
class Path:
    """The whole drawing."""

    boxes: list[Box]
    bands: list[Band]
    width: int
    height: int


def of_run(record: Record) -> Path:
    """Draw the path of a run."""
    roles = record.path
    gaps = max(len(roles) - 1, 1)
    gap = max((_WIDTH - _BOX * len(roles)) // gaps, _BAND_WIDTH_MIN)
    boxes = [Box(index * (_BOX + gap), _name(record, role), _limits(record, role), _seen(record, role))
             for index, role in enumerate(roles)]  # fmt: skip
    bands = [
        _band(record, hop, index, (index + 1) * _BOX + index * gap, gap)
        for index, hop in enumerate(record.ledger["hops"])
    ]
    lines = max((len(box.limits) + len(box.seen) for box in boxes), default=0)
    counts = max((len(band.counts) for band in bands), default=0)
    height = max(84 + _LINE * lines, _BAND_TOP + _BAND + 34 + _LINE * counts)
    return Path(boxes, bands, max(_WIDTH, _BOX * len(roles) + gap * gaps), height)


def _name(record: Record, role: str) -> str:
    instances = record.manifest.get("instances", {}).get(role, [])
    return role if len(instances) <= 1 else f"{role} ({len(instances)} instances)"


def _limits(record: Record, role: str) -> list[str]:
    knobs = record.manifest.get("knobs", {})
    workload = record.knob("load.workload")
    declared = declared_roles(record.manifest).get(role)
    shown = [(declared.knob(name), knob.shown) for name, knob in declared.knobs.items()] if declared else []
    return [
        f"{text}: {labels.knob_value(name, knobs[name])}"
        for name, text in shown
        if text is not None
        and name in knobs
        and (name in _OF_SPIKES) <= (workload == "spike")
        and (name, workload) != ("load.users", "spike")
    ]


def _seen(record: Record, role: str) -> list[tuple[str, str]]:
    """What was seen at a role: a class and a text each."""
    figures = record.figures
    found: list[tuple[str, str]] = []
    if role == record.path[0] and (requests := record.ledger["requests"]):
        found.append(("good", f"{counted(requests['ok'], 'request')} answered"))
        found.append(("bad" if requests["failed"] else "", f"{counted(requests['failed'], 'request')} failed"))
    depth, limit = figures.get(f"listen.{role}.depth.max"), figures.get(f"listen.{role}.limit")
    if isinstance(depth, int) and isinstance(limit, int) and role != record.path[0]:
        full = depth > limit
        found.append(("bad" if full else "", f"queue: {depth:,} at most, limit {limit:,}{': full' if full else ''}"))
    logged = figures.get(f"access.{role}.requests")
    if isinstance(logged, int):
        errors = sum(
            value
            for name, value in figures.items()
            if name.startswith(f"access.{role}.status.5") and isinstance(value, int)
        )
        found.append(("", f"{counted(logged, 'request')} logged"))
        found.append(("bad" if errors else "", f"{errors:,} answered with 5xx"))
    time_wait, cpu = figures.get(f"sockets.{role}.time_wait.max"), figures.get(f"process.{role}.cpu_percent.mean")
    if isinstance(time_wait, int):
        found.append(("", f"TIME_WAIT: {time_wait:,} at most"))
    if isinstance(cpu, int | float):
        found.append(("", f"processor: {labels.number(float(cpu))} % of one"))
    return found


def _band(record: Record, hop: Row, index: int, x: int, width: int) -> Band:
    server = hop["to"]
    counted = {name: record.figures.get(f"flows.{server}.{name}") for name in ("total", "established")}
    source = "connections"
    if counted["total"] is None and index == 0:
        counted = {
            "total": record.figures.get("client.dials.total"),
            "established": record.figures.get("client.dials.ok"),
        }
        source = "dials, by the client alone"
    total, made = counted["total"], counted["established"]
    if not isinstance(total, int) or not isinstance(made, int):
        return Band(
            x, width, _BAND_TOP, 0, 0, "not counted", [("", "no capture told of"), ("", "this hop"), _agreement(hop)]
        )
    lost = total - made
    passed_px = max(round(_BAND * made / total), _THINNEST if made else 0) if total else 0
    lost_px = max(round(_BAND * lost / total), _THINNEST if lost else 0) if total else 0
    dropped = hop["dropped_syns"]
    counts = [("good", f"{made:,} came about")]
    counts.append(("bad" if lost else "", f"{lost:,} did not{' ✗' if lost else ''}"))
    portless = record.figures.get(f"{'client' if hop['from'] == record.path[0] else hop['from']}.{_PORTLESS}")
    if isinstance(portless, int) and portless:
        counts.append(("bad", f"{portless:,} more: no port left ✗"))
    if dropped["fatal"] is not None:
        unanswered = dropped["fatal"] + (dropped["healed"] or 0)
        counts.append(("bad" if unanswered else "", f"{unanswered:,} SYNs unanswered"))
        if unanswered:
            counts.append(("", f"{dropped['healed'] or 0:,} of them healed"))
    return Band(x, width, _BAND_TOP, passed_px, lost_px, f"{total:,} {source}", [*counts, _agreement(hop)])


def _agreement(hop: Row) -> tuple[str, str]:
    holding = sum(each["holds"] == "true" for each in hop["identities"])
    broken = sum(each["holds"] == "false" for each in hop["identities"])
    total = len(hop["identities"])
    sign = "✗" if broken else ("✓" if holding == total else "?")
    return "bad" if broken else ("good" if holding == total else ""), f"{sign} {holding} of {total} counts agree"


def geometry() -> dict[str, int]:
    """What the template draws with."""
    return {"box": _BOX, "line": _LINE, "band": _BAND}
