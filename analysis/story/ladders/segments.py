"""A connection's packets as one tells them: data of one side in one piece, bare acknowledgements left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from analysis.evidence.packets import Flags
from analysis.story import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.evidence.packets import Packet


@dataclass(frozen=True, slots=True)
class Segment:
    """A packet, or several with data of one side that follow each other.

    Attributes:
        time_us: of the first.
        again: whether it was sent before.
        lost: a SYN that nothing answered.
        packets: how many.
        first, last: their numbers in the capture.
    """

    kind: Literal["syn", "syn-ack", "ack", "data", "fin", "rst"]
    time_us: int
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


def of_packets(packets: Sequence[Packet]) -> list[Segment]:
    """The segments of a connection's packets, in the order of the capture."""
    answered = wire.answered_syns(packets)
    found: list[Segment] = []
    seen: dict[tuple[bool, str], int] = {}
    furthest: dict[bool, int] = {}
    # A kept connection had its handshake before.
    opened = not answered
    for packet in packets:
        for kind in _kinds(packet, opened=opened):
            opened = opened or kind == "ack"
            key = (packet.from_client, kind)
            again = _is_again(packet, furthest) if kind == "data" else seen.get(key, 0) > 0 and kind != "rst"
            seen[key] = seen.get(key, 0) + 1
            lost = kind == "syn" and not answered.get(packet.number, True)
            segment = Segment(
                kind, packet.time_us, packet.from_client, again, lost, packet.data_bytes if kind == "data" else 0, 1,
                packet.number, packet.number,
            )  # fmt: skip
            if found and _goes_on(found[-1], segment):
                found[-1] = replace(
                    found[-1],
                    data_bytes=found[-1].data_bytes + segment.data_bytes,
                    packets=found[-1].packets + 1,
                    last=segment.last,
                )
            else:
                found.append(segment)
    return found


def _kinds(packet: Packet, *, opened: bool) -> list[Literal["syn", "syn-ack", "ack", "data", "fin", "rst"]]:
    flags = packet.flags
    if flags & Flags.SYN:
        return ["syn-ack" if flags & Flags.ACK else "syn"]
    found: list[Literal["syn", "syn-ack", "ack", "data", "fin", "rst"]] = []
    if packet.data_bytes:
        found.append("data")
    if flags & Flags.FIN:
        found.append("fin")
    if flags & Flags.RST:
        found.append("rst")
    # The only pure ACK that matters is the one that completes the handshake.
    return found or (["ack"] if packet.from_client and not opened else [])


def _is_again(packet: Packet, furthest: dict[bool, int]) -> bool:
    """Whether data was sent before."""
    before = furthest.get(packet.from_client)
    if before is not None and packet.seq < before:
        return True
    furthest[packet.from_client] = packet.seq + packet.data_bytes
    return False


def _goes_on(last: Segment, segment: Segment) -> bool:
    alike = (last.kind, last.from_client, last.again) == (segment.kind, segment.from_client, segment.again)
    return alike and segment.kind == "data"
