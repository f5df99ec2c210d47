"""What a server's kernel and its program said of themselves around a moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from analysis.evidence.samples import TICK_SLACK_US
from analysis.formatting import format_us
from analysis.reports.stories.parts import Note

if TYPE_CHECKING:
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.samples import Samples

_OVERFLOWS, _DROPS = "TcpExt.ListenOverflows", "TcpExt.ListenDrops"


def samples_file(raw: RawRun, server: str) -> str:
    """The file of a server's samples, below the run's folder."""
    return raw.places.shown(raw.places.collector(server, "samples.jsonl"))


def accept_queue(raw: RawRun, server: str, time_us: int) -> Note | None:
    """The accept queue before and after a moment, and what was counted between; None if there are no such samples.

    Args:
        raw: the run.
        server: the server's name.
        time_us: the moment, Unix epoch.
    """
    samples = raw.samples.get(server)
    if samples is None:
        return None
    times_us = [tick.time_us for tick in samples.ticks]
    before = bisect_right(times_us, time_us - TICK_SLACK_US) - 1
    after = bisect_left(times_us, time_us + TICK_SLACK_US)
    if before < 0 or after >= len(times_us):
        return None
    depths = [_depth(samples, tick) for tick in (before, after)]
    if None in depths:
        return None
    before_ms, after_ms = (abs(times_us[tick] - time_us) / 1000 for tick in (before, after))
    held = (
        f"held {depths[0]} {before_ms:.0f} ms before and {after_ms:.0f} ms after"
        if depths[0] == depths[1]
        else f"held {depths[0]} {before_ms:.0f} ms before, {depths[1]} {after_ms:.0f} ms after"
    )
    text = f"accept queue of {server} {held}; in between, {_steps(samples, before, after)}"
    return Note(text, samples_file(raw, server), "the ticks around each moment")


def _depth(samples: Samples, tick: int) -> str | None:
    listeners = samples.traffic(tick)
    if not listeners:
        return None
    # Each listener has a queue of its own, and a client meets one of them.
    fullest = max(listeners, key=lambda each: each.depth - each.limit)
    # The kernel refuses when the depth is above the limit.
    full = ", full" if fullest.depth > fullest.limit else ""
    of = f", the fullest of {len(listeners)} listeners" if len(listeners) > 1 else ""
    return f"{fullest.depth} (limit {fullest.limit}{full}{of})"


def _steps(samples: Samples, before: int, after: int) -> str:
    """By how much the counters of full queues rose."""
    overflows, drops = (_step(samples, name, before, after) for name in (_OVERFLOWS, _DROPS))
    if overflows is None or drops is None:
        return "nothing is known of the kernel's counters"
    if overflows == drops:
        return f"{_OVERFLOWS} and {_DROPS} {overflows}"
    return f"{_OVERFLOWS} {overflows}, {_DROPS} {drops}"


def _step(samples: Samples, name: str, before: int, after: int) -> str | None:
    counter = samples.counters.get(name)
    first, last = (counter.at(tick) if counter else None for tick in (before, after))
    if first is None or last is None:
        return None
    return "+0" if last == first else f"+{last - first} ({first} → {last})"


def program(raw: RawRun, server: str, time_us: int) -> Note | None:
    """A server's own word on its connections and threads, read nearest to a moment; None if there is none."""
    scraped = next((each for each in raw.scraped if each.instance == server and each.values), None)
    if scraped is None:
        return None
    times_us = scraped.scrape.times_us
    at = min(range(len(times_us)), key=lambda index: abs(times_us[index] - time_us))
    since_us = times_us[at] - time_us
    values = scraped.values[at]
    found = [
        f"{_of(values[name], values.get(most))} {what}"
        for name, most, what in (
            ("connections", "connections_max", "connections"),
            ("threads_busy", "threads_max", "threads busy"),
        )
        if name in values
    ]
    if not found:
        return None
    when = f"{format_us(abs(since_us))} {'before' if since_us < 0 else 'after'}"
    text = f"{scraped.called.capitalize()} of {server}, read {when}: {', '.join(found)}"
    file = raw.places.shown(raw.places.collector(server, f"{scraped.name}.jsonl"))
    return Note(text, file, "the reading nearest to each moment")


def _of(number: int, most: int | None) -> str:
    return str(number) if most is None else f"{number} of {most}"
