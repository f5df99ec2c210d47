"""A request's packets, told one by one; what belongs together in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.formatting import counted, format_us
from analysis.reports.stories import segments
from analysis.reports.stories.parts import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analysis.evidence.packets import Packet
    from analysis.evidence.rawfiles import Places
    from analysis.reports.stories.parts import Note
    from analysis.reports.stories.segments import Segment


# What of one connection a reader may want to read.
_EVENTS_MAX = 40


def file_of(places: Places, observer: str) -> str:
    """The capture of an instance, below the run's folder."""
    return places.shown(places.collector(observer, "capture.pcap"))


def wire_events(
    packets: Sequence[Packet],
    ends: tuple[str, str],
    observer: str,
    file: str,
    notes: Callable[[int, int], tuple[Note, ...]],
) -> list[Event]:
    """Tell the packets of one connection.

    Args:
        packets: in the order of the capture.
        ends: the names of its client's socket and of its server's.
        observer: whose capture it is.
        file: the capture.
        notes: what else was seen at a SYN's time: by its number and its time.
    """
    found = segments.split_segments(packets)
    in_all, told = Counter(each.kind for each in found), Counter[str]()
    events: list[Event] = []
    for each in found:
        told[each.kind] += 1
        text = _text(each, ends, told[each.kind], in_all[each.kind])
        place = f"{'frame' if each.packets == 1 else 'frames'} {each.frames}"
        seen = notes(told[each.kind], each.time_us) if each.kind == "syn" else ()
        events.append(Event(each.time_us, f"wire@{observer}", text, file, place, seen))
    return sorted(events, key=lambda event: event.time_us)


def _text(segment: Segment, ends: tuple[str, str], number: int, count: int) -> str:
    """What a segment is, the `number`th of `count` of its kind."""
    sender, other = ends if segment.from_client else ends[::-1]
    again = " again" if segment.again else ""
    match segment.kind:
        case "syn":
            of = f" {number} of {count}" if count > 1 else ""
            return f"SYN{of}: {sender} → {other}{', unanswered' if segment.lost else ''}"
        case "syn-ack":
            return f"{sender} answers: SYN-ACK{again}{f' ({number})' if again else ''}"
        case "ack":
            return f"ACK: {sender} takes the connection for established"
        case "fin":
            return f"{sender} closes its side (FIN){again}"
        case "rst":
            return f"{sender} resets the connection (RST)"
        case "data":
            within = f" in {segment.packets} segments within {format_us(segment.last_us - segment.time_us)}"
            return f"{sender} sends {counted(segment.data_bytes, 'byte')}{again}{within if segment.packets > 1 else ''}"


def shorten(events: Sequence[Event]) -> list[Event]:
    """Leave out what is in the middle of more events than one reads, and say so."""
    if len(events) <= _EVENTS_MAX:
        return list(events)
    head = _EVENTS_MAX // 2
    tail = len(events) - (_EVENTS_MAX - head - 1)
    first, last = events[head], events[tail - 1]
    gap = replace(
        first, text=f"… {tail - head} more such lines until {format_us(last.time_us - first.time_us)} later", notes=()
    )
    return [*events[:head], gap, *events[tail:]]
