"""Packets that one end of a connection sent and the capture at the other end never shows.

Both captures are on one clock. Segments may be cut otherwise at the two ends, by the network cards' offload, so data
is compared byte by byte; SYN, FIN, RST and packets that only acknowledge are compared one by one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.database import sql
from analysis.diagnosis.observed import Observation
from analysis.diagnosis.observed.stalls import connection_of
from analysis.evidence import flows
from analysis.evidence.flows import Flags, Packet
from analysis.evidence.rawrun import RawRun

# The most connections that are compared packet by packet; those with the most missing packets come first.
CONNECTIONS_MAX = 500
NAMED_MAX = 50
# What was on the way when a capture began or ended is not lost.
_EDGE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class LostPacket:
    """A packet that left one end and never came to the other.

    Attributes:
        number: its place in the sender's capture, as Wireshark's frame.number.
    """

    connection: str
    sent_by: str
    number: int
    time_us: int
    what: str


@dataclass(frozen=True, slots=True)
class Losses:
    """What got lost between two ends.

    Attributes:
        compared: how many connections were compared packet by packet, of `differing` that have unequal packets or data.
        packets: how many were lost of these.
        named: the first of them.
    """

    client_end: str
    server_end: str
    both: int
    differing: int
    compared: int
    packets: int
    named: tuple[LostPacket, ...]


def find_losses(raw: RawRun, seen: Observation, client_end: str, server_end: str) -> Losses | None:
    """Compare the captures at a client's and at a server's end; None if they have no connection in common."""
    ends = {"client_end": client_end, "server_end": server_end}
    both: int = seen.row(sql(__name__, "at_both_ends"), **ends)["count"]
    if not both:
        return None
    rows = seen.rows(sql(__name__, "at_both_ends_unequal"), **ends)
    chosen = rows[:CONNECTIONS_MAX]
    edges = seen.row(sql(__name__, "in_both_spans"), **ends)
    packets = [
        flows.extract(
            raw.places.collector(each, "capture.pcap"),
            [connection_of(row["connection"]) for row in chosen],
            raw.clocks.of(each),
        ).packets
        for each in (client_end, server_end)
    ]
    lost: list[LostPacket] = []
    for row, at_client, at_server in zip(chosen, *packets, strict=True):
        name = f"{row['client']} → {row['server']}"
        for sender, here, there in (("client", at_client, at_server), ("server", at_server, at_client)):
            mine = [each for each in here if each.from_client is (sender == "client")]
            theirs = [each for each in there if each.from_client is (sender == "client")]
            lost += [
                LostPacket(name, sender, each.number, each.time_us, _what(each))
                for each in _missing(mine, theirs)
                if edges["start_us"] <= each.time_us <= edges["end_us"] - _EDGE_US or _came_later(each, there)
            ]
    lost.sort(key=lambda each: (each.time_us, each.number))
    return Losses(client_end, server_end, both, len(rows), len(chosen), len(lost), tuple(lost[:NAMED_MAX]))


def _came_later(lost: Packet, there: Sequence[Packet]) -> bool:
    """Return whether the other end's capture went on after a packet had been sent."""
    return bool(there) and there[-1].time_us > lost.time_us


_ONES = Flags.SYN | Flags.FIN | Flags.RST


def _missing(sent: Sequence[Packet], come: Sequence[Packet]) -> list[Packet]:
    """Return the packets that were sent and did not come."""
    ones = Counter(_key(each) for each in come)
    left: list[Packet] = []
    for each in sent:
        if ones[_key(each)] > 0:
            ones[_key(each)] -= 1
        else:
            left.append(each)
    # What came and was sent otherwise covers data; nothing else is cut anew on the way.
    covered = [each for each in come if each.data_bytes and ones[_key(each)] > 0]
    spans = sorted((each.seq, each.seq + each.data_bytes) for each in covered)
    return [each for each in left if not (each.data_bytes and _covers(spans, each.seq, each.seq + each.data_bytes))]


def _key(packet: Packet) -> tuple[int, int, int, int | None]:
    data = packet.data_bytes
    # A packet with data may acknowledge more by the time that a card has cut it; one without is what it acknowledges.
    return packet.seq, data, int(packet.flags & _ONES), None if data else packet.ack


def _covers(spans: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    for low, high in spans:
        if low <= begin < high:
            begin = high
        if begin >= end:
            return True
    return begin >= end


def _what(packet: Packet) -> str:
    flags = [name for name in ("SYN", "FIN", "RST") if packet.flags & Flags[name]]
    if packet.flags & Flags.ACK and (flags or not packet.data_bytes):
        flags.append("ACK")
    data = f"{packet.data_bytes:,} bytes from {packet.seq:,}" if packet.data_bytes else ""
    return " ".join([*(["-".join(flags)] if flags else []), *([data] if data else [])])
