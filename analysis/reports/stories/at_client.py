"""What k6 recorded of a request: its dial, its sending, its answer, and the end of its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.formatting import excerpt, format_us
from analysis.reports.stories.parts import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.diagnosis.joins import Row
    from analysis.evidence.rawfiles import Places
    from analysis.reports.stories.parts import Note


def client_events(case: Row, close: Row | None, dial_notes: tuple[Note, ...], places: Places) -> Iterator[Event]:
    """Tell a request as its client saw it.

    Args:
        case: its row of analysis.diagnosis.joins.requests.
        close: when and how its connection ended; None if that is not recorded, or came after another request.
        dial_notes: what else was seen as the dial began.
        places: of the run's raw files.
    """
    observer = case["instance"]
    requests = places.shown(places.role(observer, "requests.jsonl")), f"id {case['id']}"
    dials = places.shown(places.role(observer, "dials.jsonl")), f"id {case['dial']}"
    who = f"user {case['vu']}, iteration {case['iteration']}"
    yield Event(case["time_us"], observer, f"begins {excerpt(case['name'])} ({who})", *requests)
    if case["dial_time_us"] is not None:
        yield from _dial(case, dials, dial_notes)
    if case["duration_us"] > 0:
        # Two clocks read one after the other: it is connected before it sends.
        connected_us = (case["dial_time_us"] or 0) + (case["dial_duration_us"] or 0)
        yield Event(max(case["end_us"] - case["duration_us"], connected_us), observer, "sends the request", *requests)
        if case["status"] > 0:
            first_us = case["end_us"] - case["receiving_us"]
            text = f"has the first byte of the answer, {format_us(case['waiting_us'])} later"
            yield Event(first_us, observer, text, *requests)
    yield Event(case["end_us"], observer, _end(case), *requests)
    if close is not None:
        how = f" ({excerpt(close['error'])})" if close["error"] else ""
        text = f"closes the connection{how}; {close['bytes_sent']:,} bytes sent, {close['bytes_received']:,} received"
        yield Event(close["time_us"], observer, text, *dials)


def _dial(case: Row, source: tuple[str, str], notes: tuple[Note, ...]) -> Iterator[Event]:
    observer, began_us, took = case["instance"], case["dial_time_us"], format_us(case["dial_duration_us"])
    if case["reused"]:
        text = f"takes the connection of dial {case['dial']}, begun {format_us(case['time_us'] - began_us)} ago"
        yield Event(case["time_us"] + case["blocked_us"], observer, text, *source)
        return
    remote = f" {excerpt(case['dial_remote'])}" if case["dial_remote"] else ""
    yield Event(began_us, observer, f"dials{remote} (dial {case['dial']})", *source, notes)
    if case["dial_error"] is None:
        text = f"is connected after {took}, from {excerpt(case['dial_local'])}"
    else:
        text = f"gives the dial up after {took}: {excerpt(case['dial_error'])}"
    yield Event(began_us + case["dial_duration_us"], observer, text, *source)


def _end(case: Row) -> str:
    total = format_us(case["total_us"])
    if case["error_code"] == 0:
        return f"has the whole answer, status {case['status']}, {total} after it began"
    status = f"status {case['status']}, " if case["status"] else ""
    reason = f": {excerpt(case['error'])}" if case["error"] else ""
    return f"ends the request {total} after it began: {status}k6's error {case['error_code']}{reason}"
