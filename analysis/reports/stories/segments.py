"""A connection's packets as one tells them: data of one side in one piece, bare acknowledgements left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from analysis.evidence.packets import Flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.evidence.packets import Packet

Kind: TypeAlias = Literal["syn", "syn-ack", "ack", "data", "fin", "rst"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A packet, or several with data of one side that follow each other.

    Attributes:
        kind: `ack` is the one that completes the handshake, be it bare or with data.
        time_us, last_us: of the first packet and of the last.
        again: whether it was sent before.
        lost: a SYN that nothing answered.
        packets: how many.
        first, last: their numbers in the capture.
    """

    kind: Kind
    time_us: int
    last_us: int
    from_client: bool
    again: bool
    lost: bool
    data_bytes: int
    packets: int
    first: int
    last: int

    @property
    def frames(self) -> str:
        """Their numbers, as one reads them."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def split_segments(packets: Sequence[Packet]) -> list[Segment]:
    """The segments of a connection's packets, in the order of the capture."""
    answered = _answered_syns(packets)
    found: list[Segment] = []
    seen: set[tuple[bool, Kind]] = set()
    furthest: dict[bool, int] = {}
    # A kept connection had its handshake before.
    opened = not answered
    for packet in packets:
        for kind in _kinds(packet, opened=opened):
            opened = opened or kind == "ack"
            key = (packet.from_client, kind)
            again = _is_again(packet, furthest) if kind == "data" else key in seen and kind != "rst"
            seen.add(key)
            lost = kind == "syn" and not answered.get(packet.number, True)
            data_bytes = packet.data_bytes if kind == "data" else 0
            segment = Segment(
                kind, packet.time_us, packet.time_us, packet.from_client, again, lost, data_bytes, 1,
                packet.number, packet.number,
            )  # fmt: skip
            if found and _goes_on(found[-1], segment):
                found[-1] = replace(
                    found[-1],
                    last_us=segment.last_us,
                    data_bytes=found[-1].data_bytes + segment.data_bytes,
                    packets=found[-1].packets + 1,
                    last=segment.last,
                )
            else:
                found.append(segment)
    return found


def _answered_syns(packets: Sequence[Packet]) -> dict[int, bool]:
    """The client's SYNs, by number → whether the server sent something before the next one."""
    answered: dict[int, bool] = {}
    for packet in packets:
        if packet.from_client and packet.flags & Flags.SYN:
            answered[packet.number] = False
        elif answered and not packet.from_client:
            answered[next(reversed(answered))] = True
    return answered


def _kinds(packet: Packet, *, opened: bool) -> list[Kind]:
    flags = packet.flags
    if flags & Flags.SYN:
        return ["syn-ack" if flags & Flags.ACK else "syn"]
    # The only bare ACK that matters is the one that completes the handshake; data may do so, too.
    completes = packet.from_client and not opened and not flags & (Flags.FIN | Flags.RST)
    found: list[Kind] = ["ack"] if completes else []
    if packet.data_bytes:
        found.append("data")
    if flags & Flags.FIN:
        found.append("fin")
    if flags & Flags.RST:
        found.append("rst")
    return found


def _is_again(packet: Packet, furthest: dict[bool, int]) -> bool:
    """Whether data was sent before."""
    before = furthest.get(packet.from_client, packet.seq)
    furthest[packet.from_client] = max(before, packet.seq + packet.data_bytes)
    return packet.seq < before


def _goes_on(last: Segment, segment: Segment) -> bool:
    alike = (last.kind, last.from_client, last.again) == (segment.kind, segment.from_client, segment.again)
    return alike and segment.kind == "data"
