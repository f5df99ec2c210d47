"""A request's packets, told one by one; what belongs together in one line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from analysis.evidence.packets import Flags
from analysis.formatting import counted
from analysis.story.parts import Event
from analysis.story.phrases import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analysis.evidence.packets import Packet
    from analysis.evidence.rawfiles import Places
    from analysis.story.parts import Note


# What of one connection a reader may want to read.
_EVENTS_MAX = 40


def file_of(places: Places, observer: str) -> str:
    """The capture of an instance, below the run's folder."""
    return places.shown(places.collector(observer, "capture.pcap"))


@dataclass(slots=True)
class _Side:
    """One end of a connection, and what it has sent."""

    name: str
    next_seq: int | None = None
    finished: bool = False


@dataclass(slots=True)
class _Run:
    """Segments with data from one side, one after the other."""

    first: Packet
    last: Packet
    again: bool
    segments: int = 1
    data_bytes: int = 0


@dataclass(slots=True)
class _Teller:
    """Turns packets into events, in the order of the capture.

    Attributes:
        sides: the client's by True, the server's by False.
        observer: whose capture it is.
        file: the capture.
        notes: what else was seen at a SYN's time: by its number and its time.
        syns: the client's SYNs, by number → whether something answered before the next one.
    """

    sides: dict[bool, _Side]
    observer: str
    file: str
    notes: Callable[[int, int], tuple[Note, ...]]
    syns: dict[int, bool]
    events: list[Event] = field(default_factory=list)
    run: _Run | None = None
    syn: int = 0
    syn_acks: int = 0
    opened: bool = False

    def tell(self, packet: Packet) -> None:
        side = self.sides[packet.from_client]
        if self.syn_acks and not self.opened and packet.from_client and not packet.flags & (Flags.SYN | Flags.RST):
            self.opened = True
            self._add(packet, f"ACK: {side.name} takes the connection for established")
        if packet.data_bytes:
            self._data(packet, side)
        if packet.flags & (Flags.SYN | Flags.FIN | Flags.RST):
            self.end_run()
            self._control(packet, side)
        occupied = packet.data_bytes + bool(packet.flags & Flags.SYN) + bool(packet.flags & Flags.FIN)
        following = packet.seq + occupied
        if occupied and (side.next_seq is None or following >= side.next_seq):
            side.next_seq = following

    def _control(self, packet: Packet, side: _Side) -> None:
        if packet.flags & Flags.SYN:
            self._synchronise(packet)
        elif packet.flags & Flags.RST:
            self._add(packet, f"{side.name} resets the connection (RST)")
        else:
            again = " again" if side.finished else ""
            self._add(packet, f"{side.name} closes its side (FIN){again}")
            side.finished = True

    def _synchronise(self, packet: Packet) -> None:
        client, server = self.sides[True].name, self.sides[False].name
        if packet.flags & Flags.ACK:
            self.syn_acks += 1
            again = f" again ({self.syn_acks})" if self.syn_acks > 1 else ""
            self._add(packet, f"{server} answers: SYN-ACK{again}")
        else:
            self.syn += 1
            of = f" {self.syn} of {len(self.syns)}" if len(self.syns) > 1 else ""
            unanswered = "" if self.syns[packet.number] else ", unanswered"
            notes = self.notes(self.syn, packet.time_us)
            self._add(packet, f"SYN{of}: {client} → {server}{unanswered}", notes)

    def _data(self, packet: Packet, side: _Side) -> None:
        again = side.next_seq is not None and packet.seq < side.next_seq
        run = self.run
        if run is None or run.first.from_client != packet.from_client or run.again != again:
            self.end_run()
            run = self.run = _Run(packet, packet, again, segments=0)
        run.last, run.segments, run.data_bytes = packet, run.segments + 1, run.data_bytes + packet.data_bytes

    def end_run(self) -> None:
        run, self.run = self.run, None
        if run is None:
            return
        again = " again" if run.again else ""
        text = f"{self.sides[run.first.from_client].name} sends {counted(run.data_bytes, 'byte')}{again}"
        place = f"frame {run.first.number}"
        if run.segments > 1:
            text += f" in {run.segments} segments within {ms(run.last.time_us - run.first.time_us)}"
            place = f"frames {run.first.number} to {run.last.number}"
        self.events.append(self._event(run.first, text, place))

    def _add(self, packet: Packet, text: str, notes: tuple[Note, ...] = ()) -> None:
        self.events.append(self._event(packet, text, f"frame {packet.number}", notes))

    def _event(self, packet: Packet, text: str, place: str, notes: tuple[Note, ...] = ()) -> Event:
        return Event(packet.time_us, f"wire@{self.observer}", text, self.file, place, notes)


def tell(
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
    teller = _Teller({True: _Side(ends[0]), False: _Side(ends[1])}, observer, file, notes, answered_syns(packets))
    for packet in packets:
        teller.tell(packet)
    teller.end_run()
    return sorted(teller.events, key=lambda event: event.time_us)


def answered_syns(packets: Sequence[Packet]) -> dict[int, bool]:
    """The client's SYNs, by number → whether the server sent something before the next one."""
    answered: dict[int, bool] = {}
    for packet in packets:
        if packet.from_client and packet.flags & Flags.SYN:
            answered[packet.number] = False
        elif answered and not packet.from_client:
            answered[next(reversed(answered))] = True
    return answered


def shorten(events: Sequence[Event]) -> list[Event]:
    """Leave out what is in the middle of more events than one reads, and say so."""
    if len(events) <= _EVENTS_MAX:
        return list(events)
    head = _EVENTS_MAX // 2
    tail = len(events) - (_EVENTS_MAX - head - 1)
    first, last = events[head], events[tail - 1]
    gap = replace(
        first, text=f"… {tail - head} more such lines until {ms(last.time_us - first.time_us)} later", notes=()
    )
    return [*events[:head], gap, *events[tail:]]
