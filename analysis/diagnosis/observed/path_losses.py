"""Packets that one end of a connection sent and the capture at the other end never shows.

Both captures are on one clock. Segments may be cut otherwise at the two ends, by the network cards' offload, so data
is compared byte by byte; SYN, FIN, RST and packets that only acknowledge are compared one by one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from analysis.database import sql
from analysis.diagnosis.observed import Observation
from analysis.diagnosis.observed.stalls import connection_of
from analysis.evidence import flows
from analysis.evidence.flows import Flags, Packet
from analysis.evidence.rawrun import RawRun
from analysis.formatting import format_moment
from analysis.output import Written

# The most connections that are compared packet by packet; those with the most missing packets come first.
CONNECTIONS_MAX = 500
NAMED_MAX = 50
# What was on the way when a capture began or ended is not lost.
_EDGE_US = 1_000_000


class LostPacket(Written):
    """A packet that one end sent and the other never saw."""

    connection: str
    sent_by: str
    number: Annotated[int, Field(description="In the sender's capture, as Wireshark's frame.number")]
    time: str
    what: str


class Losses(Written):
    """What got lost between two captures."""

    client_end: str
    server_end: str
    both: Annotated[int, Field(description="Connections that both captures have")]
    differing: Annotated[int, Field(description="Those of which they have unequal packets or data")]
    compared: Annotated[int, Field(description="Those of them that were compared packet by packet")]
    packets: Annotated[int, Field(description="How many packets of these came to no other end")]
    clocks_apart_us: Annotated[int | None, Field(description="How far the two clocks may still be off; null: unknown")]
    named: list[LostPacket]


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
    lost: list[tuple[str, str, Packet]] = []
    for row, at_client, at_server in zip(chosen, *packets, strict=True):
        name = f"{row['client']} → {row['server']}"
        for sender, here, there in (("client", at_client, at_server), ("server", at_server, at_client)):
            mine = [each for each in here if each.from_client is (sender == "client")]
            theirs = [each for each in there if each.from_client is (sender == "client")]
            lost += [
                (name, sender, each)
                for each in _missing(mine, theirs)
                if edges["start_us"] <= each.time_us <= edges["end_us"] - _EDGE_US
                # The other end's capture went on after it had been sent.
                or (there and there[-1].time_us > each.time_us)
            ]
    lost.sort(key=lambda one: (one[2].time_us, one[2].number))
    return Losses(
        **ends,
        both=both,
        differing=len(rows),
        compared=len(chosen),
        packets=len(lost),
        clocks_apart_us=raw.clocks.apart_us,
        named=[
            LostPacket(
                connection=name,
                sent_by=sender,
                number=packet.number,
                time=format_moment(packet.time_us) or "",
                what=_what(packet),
            )
            for name, sender, packet in lost[:NAMED_MAX]
        ],
    )


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
