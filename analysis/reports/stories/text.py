"""An explanation as text, for a terminal or a file: no line steers either."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING

from analysis.formatting import counted, format_us
from analysis.reports.stories.at_proxy import MILLISECOND_US
from formats.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.reports.stories.parts import Event, Explanation, Note, RequestTimeline

WIDTH = 120

_SECOND_US = 1_000_000


def format_explanation(explanation: Explanation) -> Iterator[str]:
    """Write an explanation for a reader, at most WIDTH columns wide where a word allows."""
    for line in _lines(explanation):
        yield visible(line)


def _lines(explanation: Explanation) -> Iterator[str]:
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in explanation.outcomes.items())
    yield f"{explanation.run}: {counted(sum(explanation.outcomes.values()), 'request')}, {outcomes}"
    if explanation.problems:
        yield "What the evidence of this run lacks"
        for problem in explanation.problems:
            yield from _wrapped(f"- {problem}", "  ", "    ")
    for account in explanation.accounts:
        yield ""
        yield from _account(account)


def _account(account: RequestTimeline) -> Iterator[str]:
    cause = f": {account.cause.name}" if account.cause else ""
    yield f"Request {account.request} {_OUTCOMES[account.outcome]} {format_us(account.total_us)}{cause}"
    yield from _wrapped(account.asked, "  ", "    ")
    yield f"  began {_when(account)}"
    if account.cause and account.cause.evidence:
        yield from _wrapped(account.cause.evidence, "  because ", "    ")
    yield ""
    yield from _events(account)
    for missing in account.missing:
        yield from _wrapped(f"Not known: {missing}", "  ", "    ")
    yield ""
    yield "  Where it stands"
    for file, places in _sources(account.events).items():
        yield from _wrapped(f"{file}: {places}", "    ", "      ")
    if account.views:
        yield ""
        yield "  The same in Wireshark (display filter) and tcpdump, from the run's folder"
        for view in account.views:
            yield f"    {view.connection}, {view.capture}"
            # Not wrapped: they are to be copied.
            yield f"      {view.wireshark}"
            yield f"      {view.tcpdump}"


_OUTCOMES = {"failed": "failed after", "slow": "was slow, it took", "ok": "was answered in"}


def _when(account: RequestTimeline) -> str:
    moment = datetime.fromtimestamp(account.start_us / _SECOND_US, UTC)
    clock = f"{moment:%Y-%m-%d %H:%M:%S}.{account.start_us % _SECOND_US:06d} UTC"
    if account.measure_us is None:
        return clock
    return f"{(account.start_us - account.measure_us) / _SECOND_US:,.3f} s into the measurement, at {clock}"


def _events(account: RequestTimeline) -> Iterator[str]:
    times = [_offset(event, account.start_us) for event in account.events]
    time_width = max(len("ms"), *map(len, times))
    observer_width = max(len(event.observer) for event in account.events)
    indent = " " * (2 + time_width + 2 + observer_width + 2)
    yield f"  {'ms':>{time_width}}"
    for event, time in zip(account.events, times, strict=True):
        head = f"  {time:>{time_width}}  {event.observer:<{observer_width}}  "
        place = f" [{event.place}]" if event.observer.startswith("wire@") else ""
        yield from _wrapped(f"{event.text}{place}", head, indent)
        for note in event.notes:
            yield from _wrapped(note.text, f"{indent}  ", f"{indent}  ")


def _offset(event: Event, start_us: int) -> str:
    """An event's time since the request began, in ms, as exactly as it was recorded."""
    since_us = event.time_us - start_us
    if event.resolution_us < MILLISECOND_US:
        return f"{since_us / 1000:,.3f}"
    # The digits line up with those of exact times.
    return f"~{round(since_us / 1000):,}    "


def _sources(events: Iterable[Event]) -> dict[str, str]:
    """Each file that the events rest on, and the places in it."""
    places: dict[str, dict[str, None]] = {}
    for event in events:
        sources: tuple[Event | Note, ...] = (event, *event.notes)
        for source in sources:
            places.setdefault(source.file, {})[source.place] = None
    return {file: _places(list(found)) for file, found in places.items()}


def _places(places: list[str]) -> str:
    """Places in one file; frames are named in the story already."""
    frames = [each for each in places if each.startswith("frame")]
    if not frames:
        return ", ".join(places)
    numbers = [int(word) for each in frames for word in each.split() if word.isdecimal()]
    return f"frames {min(numbers)} to {max(numbers)}" if len(set(numbers)) > 1 else f"frame {numbers[0]}"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    options = {"initial_indent": first, "subsequent_indent": rest}
    return wrap(text, WIDTH, **options, break_long_words=False, break_on_hyphens=False) or [first.rstrip()]  # type: ignore[arg-type]
