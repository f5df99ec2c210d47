"""What the proxy logged of a request; its times have milliseconds, its error log's have seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.formatting import excerpt
from analysis.reports.stories.parts import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from analysis.diagnosis.joins import Row, Story
    from analysis.evidence.rawfiles import Places
    from analysis.reports.stories.parts import Note

MILLISECOND_US = 1_000
_SECOND_US = 1_000_000


def proxy_events(
    story: Story,
    asked_us: int,
    name: Callable[[str | None, int | None], str],
    notes: Callable[[Row], tuple[Note, ...]],
    places: Places,
) -> Iterator[Event]:
    """Tell a request as the proxy saw it; nothing if its access log has no line of it.

    Args:
        story: the request's records.
        asked_us: when the request came, as exactly as that is known. The proxy cuts its times down to milliseconds, so
            that they may seem to be before what they follow.
        name: gives an address and a port the name of whose they are.
        notes: what else was seen as it turned to a server.
        places: of the run's raw files.
    """
    line = story.line
    if line is None:
        return
    observer = line["instance"]
    file, error_log = (places.shown(places.role(observer, name)) for name in ("access.jsonl", "error.log"))

    last_us = asked_us

    def event(time_us: int, text: str, found: tuple[Note, ...] = ()) -> Event:
        nonlocal last_us
        last_us = max(time_us, last_us)
        return Event(last_us, observer, text, file, f"line {line['line']}", found, resolution_us=MILLISECOND_US)

    untold = list(story.errors)

    def errors(time_us: int) -> Iterator[Event]:
        """Within its second, an error is what a try was given up for, or what the request ended with."""
        for error in [each for each in untold if each["time_us"] <= time_us]:
            untold.remove(error)
            text = f"error log: {excerpt(error['text'])}"
            at_us = min(time_us, error["time_us"] + _SECOND_US)
            yield Event(at_us, observer, text, error_log, f"line {error['line']}", resolution_us=_SECOND_US)

    took_ms = round(1000 * (line["request_time"] or 0))
    end_us = 1000 * line["time_ms"]
    place = f"request {line['connection_requests']} of its connection {line['connection']}"
    yield event(end_us - 1000 * took_ms, f"has the request's first byte ({place})")
    for each in story.tries:
        if each["server_port"] is None:
            yield event(each["start_us"], f"has no server to try in {excerpt(each['server'])}")
            continue
        of = f" (try {each['try']} of {each['tries']})" if each["tries"] > 1 else ""
        server = name(each["server_address"], each["server_port"])
        yield event(each["start_us"], f"turns to {server}{of}", notes(each))
        answered_us = story.case["up_server_first_data_time_us"] if each["try"] == each["tries"] else None
        for time_us, text in _outcome(each, answered_us or 0):
            yield event(time_us, text)
        if each["header_us"] is None:
            yield from errors(last_us)
    yield event(end_us, f"logs status {line['status']}, {took_ms:,} ms after that byte")
    yield from errors(max([end_us, *(each["time_us"] for each in untold)]))


def _outcome(each: Row, answered_us: int) -> Iterator[tuple[int, str]]:
    """What became of a try; `answered_us` is when its answer was captured, 0 if that is not known."""
    start_us = each["start_us"]
    if each["connect_us"] is not None:
        yield start_us + each["connect_us"], f"is connected to it after {each['connect_us'] // 1000:,} ms"
    if each["header_us"] is not None:
        text = f"has the header of its answer after {each['header_us'] // 1000:,} ms, status {each['status']}"
        yield max(start_us + each["header_us"], answered_us), text
    elif each["response_us"] is not None:
        status = "" if each["status"] is None else f", status {each['status']}"
        yield start_us + each["response_us"], f"gives it up after {each['response_us'] // 1000:,} ms{status}"
