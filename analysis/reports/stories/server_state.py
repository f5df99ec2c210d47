"""What is known of a server at a moment: its accept queue, what its program says, when it accepted a connection."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.evidence.kernel_events import FILE
from analysis.evidence.samples import TICK_SLACK_US
from analysis.formatting import format_us
from analysis.reports.stories.timeline import Note, Queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.diagnosis.joins import Row
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.samples import Listener, Samples

_OVERFLOWS, _DROPS = "TcpExt.ListenOverflows", "TcpExt.ListenDrops"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """When a connection entered the accept queue, and bounds of when the server accepted it, Unix epoch.

    `latest_us` is None if the server did not accept it as long as the queue was sampled.
    """

    queued_us: int
    earliest_us: int
    latest_us: int | None


def acceptance(case: Row, prefix: str, served_us: int | None) -> Acceptance | None:
    """Return the bounds that the queue's samples and the server's own records give; None if the samples give none.

    Args:
        case: the request's row of analysis.diagnosis.joins.requests.
        prefix: which connection: `flow`, the client's, or `up`, the proxy's.
        served_us: when the server surely had the request, None if it did not log that.
    """
    queued_us, after_us, before_us = (
        case[f"{prefix}_{column}"] for column in ("queued_us", "accepted_after_us", "accepted_before_us")
    )
    if queued_us is None or after_us is None or case[f"{prefix}_perhaps_unknown"]:
        return None
    # A server sends nothing over a connection before it accepted it.
    answered_us, hello_us = (case[f"{prefix}_{column}_time_us"] for column in ("server_first_data", "server_hello"))
    latest_us = min((each for each in (before_us, answered_us, hello_us, served_us) if each is not None), default=None)
    return Acceptance(queued_us, after_us if latest_us is None else min(after_us, latest_us), latest_us)


@dataclass(frozen=True, slots=True)
class QueueReading:
    """A server's accept queue at the ticks before and after a moment; of several listeners the fullest.

    Attributes:
        ends: the fullest listener at each tick.
        away_ms: how far away these ticks are.
        listeners: how many there are at each.
        counters: the kernel's counters of full queues at both ticks; None for what was not read.
    """

    ends: tuple[Listener, Listener]
    away_ms: tuple[float, float]
    listeners: tuple[int, int]
    counters: dict[str, tuple[int | None, int | None]]


class ServerStates:
    """The servers of a run, moment by moment."""

    def __init__(self, raw: RawRun) -> None:
        self._raw = raw
        self._times_us: dict[str, list[int]] = {}

    def samples_source(self, server: str) -> tuple[str, str]:
        """Return where a server's samples stand, below the run's folder."""
        file = self._raw.places.shown(self._raw.places.collector(server, "samples.jsonl"))
        return file, "the ticks around each moment"

    def events_source(self, server: str) -> tuple[str, str]:
        """Return where the words of a server's kernel stand, below the run's folder."""
        return self._raw.places.shown(self._raw.places.collector(server, FILE)), "the line of its ports"

    def queue_reading(self, server: str, time_us: int) -> QueueReading | None:
        """Return the accept queue around a moment, Unix epoch; None if there are no such samples."""
        samples = self._raw.samples.get(server)
        if samples is None:
            return None
        times_us = self._times_us.setdefault(server, [tick.time_us for tick in samples.ticks])
        before = bisect_right(times_us, time_us - TICK_SLACK_US) - 1
        after = bisect_left(times_us, time_us + TICK_SLACK_US)
        if before < 0 or after >= len(times_us):
            return None
        listeners = samples.traffic(before), samples.traffic(after)
        if not all(listeners):
            return None
        counters = {name: _values(samples, name, before, after) for name in (_OVERFLOWS, _DROPS)}
        return QueueReading(
            ends=(_fullest(listeners[0]), _fullest(listeners[1])),
            away_ms=((time_us - times_us[before]) / 1000, (times_us[after] - time_us) / 1000),
            listeners=(len(listeners[0]), len(listeners[1])),
            counters=counters,
        )

    def queue_note(self, server: str, time_us: int) -> Note | None:
        """Return the accept queue around a moment in words, and what was counted between."""
        found = self.queue_reading(server, time_us)
        if found is None:
            return None
        depths = [_depth(each, count) for each, count in zip(found.ends, found.listeners, strict=True)]
        before, after = (f"{away_ms:.0f} ms" for away_ms in found.away_ms)
        second = " and" if depths[0] == depths[1] else f", {depths[1]}"
        held = f"held {depths[0]} {before} before{second} {after} after"
        return Note(f"accept queue of {server} {held}; in between, {_steps(found)}", *self.samples_source(server))

    def queue(self, server: str, time_us: int) -> Queue | None:
        """Return the accept queue around a moment for a ladder; None if it is not known."""
        found = self.queue_reading(server, time_us)
        if found is None:
            return None
        first, last = found.counters[_OVERFLOWS]
        overflows = None if first is None or last is None else last - first
        before, after = found.ends
        return Queue(
            server=server, depth_before=before.depth, depth_after=after.depth, limit=after.limit, overflows=overflows
        )

    def program_note(self, server: str, time_us: int) -> Note | None:
        """Return what a server says of its connections and threads nearest to a moment; None if it says nothing."""
        scraped = next((each for each in self._raw.scraped if each.instance == server and each.values), None)
        if scraped is None:
            return None
        times_us = scraped.scrape.times_us
        at = min(range(len(times_us)), key=lambda index: abs(times_us[index] - time_us))
        since_us, values = times_us[at] - time_us, scraped.values[at]
        found = [
            f"{values[name]}{f' of {values[most]}' if most in values else ''} {what}"
            for name, most, what in (
                ("connections", "connections_max", "connections"),
                ("threads_busy", "threads_max", "threads busy"),
            )
            if name in values
        ]
        if not found:
            return None
        when = f"{format_us(abs(since_us))} {'before' if since_us < 0 else 'after'}"
        text = f"{scraped.figure_prefix.capitalize()} of {server}, read {when}: {', '.join(found)}"
        file = self._raw.places.shown(self._raw.places.collector(server, f"{scraped.name}.jsonl"))
        return Note(text, file, "the reading nearest to each moment")


def _fullest(listeners: Sequence[Listener]) -> Listener:
    return max(listeners, key=lambda each: each.depth - each.limit)


def _values(samples: Samples, name: str, first: int, last: int) -> tuple[int | None, int | None]:
    counter = samples.counters.get(name)
    return (None, None) if counter is None else (counter.at(first), counter.at(last))


def _depth(fullest: Listener, count: int) -> str:
    # The kernel refuses when the depth is above the limit.
    full = ", full" if fullest.depth > fullest.limit else ""
    of = f", the fullest of {count} listeners" if count > 1 else ""
    return f"{fullest.depth} (limit {fullest.limit}{full}{of})"


def _steps(found: QueueReading) -> str:
    """Return by how much the counters of full queues rose."""
    rises = []
    for first, last in found.counters.values():
        if first is None or last is None:
            return "the kernel's counters are unknown"
        rises.append("+0" if last == first else f"+{last - first} ({first} → {last})")
    if rises[0] == rises[1]:
        return f"{_OVERFLOWS} and {_DROPS} {rises[0]}"
    return f"{_OVERFLOWS} {rises[0]}, {_DROPS} {rises[1]}"
