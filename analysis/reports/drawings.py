"""Drawings of the third and fourth section: the path with the ledger's counts, and connections as packet ladders.

Rows of a ladder are as high as their text, not as their time: what matters happens within a millisecond or seconds
apart. Longer pauses have a row of their own that says how long they are.
"""

from dataclasses import dataclass
from typing import NamedTuple

from analysis import formatting
from analysis.database import Row
from analysis.diagnosis import causes
from analysis.formatting import format_count, format_ms
from analysis.reports.run_record import Record

# With more than three roles the drawing is wider than the page, and is scrolled.
_PATH_WIDTH = 1150
_BOX = 262
_BAND_WIDTH_MIN = 150
_LINE_HEIGHT = 20
_BAND_TOP, _BAND = 66, 64
_THINNEST = 4

# Who has no port left sends nothing that a capture could count.
_PORTLESS = "dials.failed_address_not_available"


@dataclass(frozen=True)
class Box:
    """A role."""

    x: int
    name: str
    limits: list[str]
    seen: list[tuple[str, str]]


@dataclass(frozen=True)
class Band:
    """A hop; `passed` and `lost` are heights, both 0 if nothing counted it; `counts` are a class and a text each."""

    x: int
    width: int
    y: int
    passed: int
    lost: int
    title: str
    counts: list[tuple[str, str]]


class PathDrawing(NamedTuple):
    """The whole drawing."""

    boxes: list[Box]
    bands: list[Band]
    width: int
    height: int


def draw_path(record: Record) -> PathDrawing:
    """Draw the path of a run."""
    roles = record.manifest.path
    gaps = max(len(roles) - 1, 1)
    gap = max((_PATH_WIDTH - _BOX * len(roles)) // gaps, _BAND_WIDTH_MIN)
    counts = {role: len(record.manifest.of_role(role)) for role in roles}
    names = [role if counts[role] <= 1 else f"{role} ({counts[role]} instances)" for role in roles]
    boxes = [Box(index * (_BOX + gap), names[index], _limits(record, role), _seen(record, role))
             for index, role in enumerate(roles)]  # fmt: skip
    bands = [
        _band(record, hop, index, (index + 1) * _BOX + index * gap, gap)
        for index, hop in enumerate(record.ledger["hops"])
    ]
    lines = max((len(box.limits) + len(box.seen) for box in boxes), default=0)
    texts = max((len(band.counts) for band in bands), default=0)
    height = max(84 + _LINE_HEIGHT * lines, _BAND_TOP + _BAND + 34 + _LINE_HEIGHT * texts)
    return PathDrawing(boxes, bands, max(_PATH_WIDTH, _BOX * len(roles) + gap * gaps), height)


def _limits(record: Record, role: str) -> list[str]:
    declared = record.manifest.roles.get(role)
    shown = {declared.knob(name): knob.label for name, knob in declared.knobs.items() if knob.label} if declared else {}
    usable = record.usable_knobs
    return [f"{label}: {formatting.format_knob(usable[name])}" for name, label in shown.items() if name in usable]


def _seen(record: Record, role: str) -> list[tuple[str, str]]:
    """Return what was seen at a role: a class and a text each."""
    figures = record.figures
    found: list[tuple[str, str]] = []
    if role == record.manifest.path[0] and (requests := record.ledger["requests"]):
        found.append(("good", f"{format_count(requests['ok'], 'request')} answered"))
        found.append(("bad" if requests["failed"] else "", f"{format_count(requests['failed'], 'request')} failed"))
    depth, limit = figures.get(f"listen.{role}.depth.max"), figures.get(f"listen.{role}.limit")
    if isinstance(depth, int) and isinstance(limit, int) and role != record.manifest.path[0]:
        full = depth > limit
        found.append(("bad" if full else "", f"queue: up to {depth:,}, limit {limit:,}{': full' if full else ''}"))
    inner, bound = figures.get(f"inner.{role}.depth.max"), figures.get(f"inner.{role}.limit")
    if isinstance(inner, int) and isinstance(bound, int) and inner and role != record.manifest.path[0]:
        full = inner > bound
        found.append(
            ("bad" if full else "", f"queue inside: up to {inner:,}, limit {bound:,}{': full' if full else ''}")
        )
    logged = figures.get(f"access.{role}.requests")
    if isinstance(logged, int):
        answers = (value for name, value in figures.items() if name.startswith(f"access.{role}.status.5"))
        errors = sum(value for value in answers if isinstance(value, int))
        found.append(("", f"{format_count(logged, 'request')} logged"))
        found.append(("bad" if errors else "", f"{errors:,} answered with 5xx"))
    time_wait, cpu = figures.get(f"sockets.{role}.time_wait.max"), figures.get(f"process.{role}.cpu_percent.mean")
    if isinstance(time_wait, int):
        found.append(("", f"TIME_WAIT: up to {time_wait:,}"))
    if isinstance(cpu, int | float):
        found.append(("", f"processor time: {formatting.format_value(float(cpu))} % of one"))
    return found


def _band(record: Record, hop: Row, index: int, x: int, width: int) -> Band:
    server, dropped = hop["to"], hop["dropped_syns"]
    total, made = (record.figures.get(f"flows.{server}.{name}") for name in ("total", "established"))
    source = "connections"
    if total is None and index == 0:
        total, made = record.figures.get("client.dials.total"), record.figures.get("client.dials.ok")
        source = "dials (no capture)"
    if not isinstance(total, int) or not isinstance(made, int):
        return Band(
            x, width, _BAND_TOP, 0, 0, "not counted", [("", "no capture has"), ("", "this hop"), _agreement(hop)]
        )
    lost = total - made
    passed_px = max(round(_BAND * made / total), _THINNEST if made else 0) if total else 0
    lost_px = max(round(_BAND * lost / total), _THINNEST if lost else 0) if total else 0
    counts = [("good", f"{made:,} made"), ("bad" if lost else "", f"{lost:,} failed{' ✗' if lost else ''}")]
    portless = record.figures.get(f"{'client' if hop['from'] == record.manifest.path[0] else hop['from']}.{_PORTLESS}")
    if isinstance(portless, int) and portless:
        counts.append(("bad", f"{portless:,} more had no port ✗"))
    if dropped["lost"] is not None:
        unanswered = dropped["lost"] + (dropped["recovered"] or 0)
        counts.append(("bad" if unanswered else "", f"{unanswered:,} SYNs unanswered"))
        if unanswered:
            counts.append(("", f"{dropped['recovered'] or 0:,} recovered on retry"))
    return Band(x, width, _BAND_TOP, passed_px, lost_px, f"{total:,} {source}", [*counts, _agreement(hop)])


def _agreement(hop: Row) -> tuple[str, str]:
    holding = sum(each["holds"] == "true" for each in hop["identities"])
    broken = sum(each["holds"] == "false" for each in hop["identities"])
    total = len(hop["identities"])
    sign = "✗" if broken else ("✓" if holding == total else "?")
    return "bad" if broken else ("good" if holding == total else ""), f"{sign} {holding} of {total} counts agree"


WIDTH = 1000
TIME_X, NOTE_X = 92, 715
_FIRST_X, _LAST_X = 175, 625
_TOP, _ROW, _PAUSE = 46, 34, 30
_SLOPE = 10
_PAUSE_US = 200_000
_US_PER_S = 1_000_000
# A queue that holds more is shown in figures only.
_PLACES_MAX = 8

_TITLES = {
    "good": "A successful request",
    "failed": "A typical failure",
    "slow": "A typical slow request",
    "slowest": "The slowest successful request",
}


@dataclass(frozen=True)
class Rung:
    """A row of a ladder, in the units of its drawing; `x1` and `x2` are alike for what happens at one end.

    Attributes:
        kind: of the step, or `pause`.
        classes: for the styles.
        places: of an accept queue that is small: each place as `taken`, `maybe` or ``.
        at_s: when it happened, since the measurement began; of a pause, when that began.
    """

    kind: str
    y: int
    x1: int
    x2: int
    classes: str
    label: str
    time: str
    notes: list[tuple[str, str]]
    places: list[str]
    at_s: float
    at_right: bool = False


@dataclass(frozen=True)
class LadderDrawing:
    """One ladder: its heading, its lanes by their place, and its rows."""

    title: str
    like: str
    ladder: Row
    lanes: list[tuple[str, int]]
    lines: list[Rung]
    height: int
    partial: bool


def draw_ladders(record: Record) -> list[LadderDrawing]:
    """Draw all ladders of a run."""
    return [_draw(record, ladder) for ladder in record.ladders["ladders"]]


def _draw(record: Record, ladder: Row) -> LadderDrawing:
    names = ladder["lanes"]
    gap = (_LAST_X - _FIRST_X) // max(len(names) - 1, 1)
    places = {name: _FIRST_X + gap * index for index, name in enumerate(names)}
    lines: list[Rung] = []
    y, before_us = _TOP, None
    for step in ladder["steps"]:
        if before_us is not None and step["after_us"] - before_us >= _PAUSE_US:
            pause = f"{format_ms((step['after_us'] - before_us) / 1000)} later"
            lines.append(Rung("pause", y, _FIRST_X, _LAST_X, "pause", pause, "", [], [], lines[-1].at_s))
            y += _PAUSE
        lines.append(_line(step, y, places, ladder["began_us"]))
        y, before_us = y + _ROW, step["after_us"]
    like = f"Median of {ladder['count']:,}." if ladder["count"] > 1 else "The only one."
    cause = ladder["cause"]
    label = f": {causes.cause_named(cause).label}" if cause else ""
    last = record.manifest.request_path[-1] if record.manifest.path else ""
    return LadderDrawing(
        title=_TITLES[ladder["kind"]] + label,
        like="The slowest of all that succeeded." if ladder["kind"] == "slowest" else like,
        ladder=ladder,
        lanes=list(places.items()),
        lines=lines,
        height=y + 16,
        partial=len(record.manifest.request_path) > len(names)
        and all(record.role_of.get(name) != last for name in names),
    )


def _line(step: Row, y: int, places: dict[str, int], began_us: int) -> Rung:
    x1 = places.get(step["from"], _FIRST_X)
    x2 = x1 if step["to"] is None else places.get(step["to"], _LAST_X)
    lost, queue = step["lost"], step["queue"]
    small = queue is not None and queue["limit"] + 1 <= _PLACES_MAX
    return Rung(
        kind=step["kind"],
        y=y,
        x1=x1,
        # What got lost does not arrive.
        x2=round(x1 + 0.82 * (x2 - x1)) if lost else x2,
        classes=" ".join([step["kind"], *(name for name in ("lost", "again") if step[name])]),
        label=step["text"] + (": no answer" if lost else ""),
        time=_time(step["after_us"]),
        notes=_notes(step),
        places=_places(queue) if small else [],
        at_s=(began_us + step["after_us"]) / _US_PER_S,
        at_right=x1 > (_FIRST_X + _LAST_X) // 2,
    )


def _time(after_us: int) -> str:
    return f"{after_us / 1000:,.2f} ms" if abs(after_us) < _US_PER_S else f"{after_us / _US_PER_S:,.3f} s"


def _notes(step: Row) -> list[tuple[str, str]]:
    notes = [("frame", f"frame {step['frames']}")] if step["frames"] else []
    queue = step["queue"]
    if not queue:
        return notes
    before, after, limit = queue["depth_before"], queue["depth_after"], queue["limit"]
    least, most = sorted((before, after))
    depth = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    full = least > limit
    return [("queue full" if full else "queue", f"queue {depth} (limit {limit:,}){': full' if full else ''}"), *notes]


def _places(queue: Row) -> list[str]:
    """Return each place of a queue: taken at both ticks around the SYN, at one of them, or at none."""
    least, most = sorted((queue["depth_before"], queue["depth_after"]))
    return ["taken" if place < least else "maybe" if place < most else "" for place in range(queue["limit"] + 1)]


# What the templates draw with.
PATH_GEOMETRY = {"box": _BOX, "line": _LINE_HEIGHT, "band": _BAND}
LADDER_GEOMETRY = {"width": WIDTH, "time_x": TIME_X, "note_x": NOTE_X, "slope": _SLOPE}
