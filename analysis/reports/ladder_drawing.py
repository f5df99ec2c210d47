"""The fourth section: connections drawn as ladders, each row a step, time running down.

Rows are as high as their text, not as their time: what matters happens within a millisecond or seconds apart. Longer
pauses have a row of their own that says how long they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.diagnosis import causes
from analysis.formatting import spoken
from analysis.reports.run_record import Record, Row

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
    "good": "A request that went well",
    "failed": "A typical failure",
    "slow": "A typical slow request",
    "slowest": "The slowest request that was answered",
}


@dataclass(frozen=True)
class Rung:
    """A row of a ladder, in the units of its drawing.

    Attributes:
        kind: of the step, or `pause`.
        y: where it begins.
        x1, x2: its ends; alike for what happens at one end.
        classes: what the styles make of it.
        label: its text; the text of a lost packet says so.
        notes: what stands beside it.
        places: of an accept queue that is small: its places, and how many of them are taken.
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
    places: list[bool]
    at_s: float
    at_right: bool = False


@dataclass(frozen=True)
class Drawing:
    """One ladder: its heading, its lanes by their place, and its rows."""

    title: str
    like: str
    ladder: Row
    lanes: list[tuple[str, int]]
    lines: list[Rung]
    height: int
    partial: bool


def of_run(record: Record) -> list[Drawing]:
    """Draw all ladders of a run."""
    return [_draw(record, ladder) for ladder in record.ladders["ladders"]]


def _draw(record: Record, ladder: Row) -> Drawing:
    names = ladder["lanes"]
    gap = (_LAST_X - _FIRST_X) // max(len(names) - 1, 1)
    places = {name: _FIRST_X + gap * index for index, name in enumerate(names)}
    lines: list[Rung] = []
    y, before_us = _TOP, None
    for step in ladder["steps"]:
        if before_us is not None and step["after_us"] - before_us >= _PAUSE_US:
            lines.append(_pause(y, step["after_us"] - before_us, lines[-1].at_s))
            y += _PAUSE
        lines.append(_line(step, y, places, ladder["began_us"]))
        y, before_us = y + _ROW, step["after_us"]
    cause = ladder["cause"]
    label = f": {causes.cause_named(cause).label}" if cause else ""
    last = record.request_path[-1] if record.path else ""
    return Drawing(
        title=_TITLES[ladder["kind"]] + label,
        like=_like(ladder),
        ladder=ladder,
        lanes=list(places.items()),
        lines=lines,
        height=y + 16,
        partial=len(record.request_path) > len(names) and all(record.role_of.get(name) != last for name in names),
    )


def _like(ladder: Row) -> str:
    count = ladder["count"]
    if ladder["kind"] == "slowest":
        return "It took longest of all that were answered."
    return (
        f"One of {count:,} alike, the one in the middle: half of them took no longer." if count > 1 else "The only one."
    )


def _pause(y: int, lasts_us: int, at_s: float) -> Rung:
    text = f"{spoken(lasts_us / 1000)} pass"
    return Rung("pause", y, _FIRST_X, _LAST_X, "pause", text, "", [], [], at_s)


def _line(step: Row, y: int, places: dict[str, int], began_us: int) -> Rung:
    x1 = places.get(step["from"], _FIRST_X)
    x2 = x1 if step["to"] is None else places.get(step["to"], _LAST_X)
    lost = bool(step["lost"])
    classes = " ".join([step["kind"], *(["lost"] if lost else []), *(["again"] if step["again"] else [])])
    queue = step["queue"]
    taken: list[bool] = []
    if queue and queue["limit"] + 1 <= _PLACES_MAX:
        depth = queue["depth_before"] if queue["depth_before"] == queue["depth_after"] else queue["depth_after"]
        taken = [place < depth for place in range(queue["limit"] + 1)]
    return Rung(
        kind=step["kind"],
        y=y,
        x1=x1,
        # What got lost does not arrive.
        x2=round(x1 + 0.82 * (x2 - x1)) if lost else x2,
        classes=classes,
        label=step["text"] + (": no answer" if lost else ""),
        time=_time(step["after_us"]),
        notes=_notes(step),
        places=taken,
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
    depth = f"{after:,}" if before == after else f"{before:,}, then {after:,}"
    full = min(before, after) > limit
    state = "full" if full else ("filling" if max(before, after) > limit else "")
    return [
        ("queue full" if full else "queue", f"queue {depth} (limit {limit:,}){': ' + state if state else ''}"),
        *notes,
    ]


def geometry() -> dict[str, Any]:
    """What the template draws with."""
    return {"width": WIDTH, "time_x": TIME_X, "note_x": NOTE_X, "row": _ROW, "slope": _SLOPE, "top": _TOP}
