"""The packets of a request: those of its connections while they carried it, data of one side in one piece."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, TypeAlias

from analysis.command_hints import quote
from analysis.database import sql
from analysis.diagnosis.joins.requests import CLOCK_SLACK_US
from analysis.evidence.flows import Connection, Flags, extract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.diagnosis.joins import Joined, Row, Story
    from analysis.evidence.flows import Packet
    from analysis.evidence.rawfiles import Places
    from analysis.evidence.rawrun import RawRun

# How much later than its log says a proxy may close the connection of a try.
_CLOSE_SLACK_US = 50_000
CAPTURE = "capture.pcap"


@dataclass(slots=True)
class Carrier:
    """A connection that carried a request, in one capture.

    Attributes:
        flow: its row of the table `flows` of analysis.diagnosis.joins.
        is_first_hop: whether it is the client's; else it is the proxy's.
        is_repeated: whether an earlier carrier is the same connection, in another capture.
        packets: those of the request, in the order of the capture.
    """

    flow: Row
    is_first_hop: bool
    is_repeated: bool
    connection: Connection
    packets: tuple[Packet, ...] = ()

    @property
    def observer(self) -> str:
        """Return the instance whose capture it is."""
        return str(self.flow["observer"])


def load_carriers(raw: RawRun, joined: Joined, stories: Sequence[Story]) -> tuple[list[list[Carrier]], list[str]]:
    """Return the connections that carried each request, with their packets, and what is wrong with the captures."""
    carriers = [_find_carriers(story, next_request_us(joined, story.case)) for story in stories]
    by_observer: dict[str, list[Carrier]] = defaultdict(list)
    for carrier in (each for of_story in carriers for each in of_story):
        by_observer[carrier.observer].append(carrier)
    problems = []
    for observer, found in by_observer.items():
        wanted = [carrier.connection for carrier in found]
        read = extract(raw.places.collector(observer, CAPTURE), wanted, raw.clocks.of(observer))
        for carrier, packets in zip(found, read.packets, strict=True):
            carrier.packets = packets if carrier.is_first_hop else first_exchange(packets)
        if read.problem is not None:
            shown = "; the packets before it are shown" if any(read.packets) else ""
            problems.append(f"{capture_file(raw.places, observer)}: {read.problem}{shown}")
    return carriers, problems


def capture_file(places: Places, observer: str) -> str:
    """Return the capture of an instance, below the run's folder."""
    return places.shown(places.collector(observer, CAPTURE))


def next_request_us(joined: Joined, case: Row) -> int | None:
    """Return when the next request over a request's connection began; None if there was none."""
    key = {column: case[column] for column in ("instance", "dial", "time_us", "id")}
    time_us = joined.rows(sql(__name__, "next_request"), **key)[0]["time_us"]
    return None if time_us is None else int(time_us)


def _find_carriers(story: Story, next_us: int | None) -> list[Carrier]:
    """Return the connections that carried a request; their packets are still to be read."""
    carriers: list[Carrier] = []
    for flow in story.flows:
        first_hop = flow["try"] is None
        if first_hop:
            start_us = story.case["time_us"] - CLOCK_SLACK_US if story.case["reused"] else flow["first_time_us"]
            if story.case["protocol"] in ("http2", "grpc"):
                span = start_us, story.case["end_us"]
            else:
                span = start_us, flow["last_time_us"] if next_us is None else next_us - 1
        else:
            span = _try_span(story, flow)
        client, server = ((flow[f"{end}_address"], flow[f"{end}_port"]) for end in ("client", "server"))
        connection = Connection(client, server, *span)
        repeated = any(carrier.connection == connection for carrier in carriers)
        carriers.append(Carrier(flow, first_hop, repeated, connection))
    return carriers


def _try_span(story: Story, flow: Row) -> tuple[int, int]:
    """Return the time of a try: of a connection made for it, all; of one that broke off, its last request's."""
    each, last_us = flow["try"], flow["last_time_us"]
    if each["how"] == "breach":
        ending = (flow["client_last_data_time_us"], flow["server_fin_time_us"], flow["first_rst_time_us"])
        # A second capture of the connection may have ended before.
        return min((time_us for time_us in ending if time_us is not None), default=last_us + 1), last_us
    end_us = story.case["end_us"] if each["response_us"] is None else each["start_us"] + each["response_us"]
    # A connection that stood before the request was kept for it.
    kept = each["how"] == "port" and flow["first_time_us"] < story.case["time_us"] - CLOCK_SLACK_US
    return story.case["time_us"] - CLOCK_SLACK_US if kept else flow["first_time_us"], end_us + _CLOSE_SLACK_US


# What a record of TLS that carries no data of the application is called, in clear.
_HANDSHAKE = re.compile(
    "(ClientHello|ServerHello|Certificate|ServerKeyExchange|ClientKeyExchange|NewSessionTicket|ChangeCipherSpec)"
)


def handshake_length(packets: Sequence[Packet]) -> int:
    """Return how many of a connection's packets are a handshake, with that of TLS; 0 if they begin with none of TLS.

    By TLS 1.3, the server's tickets come after these, and look like data.
    """
    sent = [packet for packet in packets if packet.data_bytes]
    if not sent or not (sent[0].tls or "").startswith("ClientHello"):
        return 0
    return max(number for number, packet in enumerate(packets, start=1) if _HANDSHAKE.match(packet.tls or ""))


def first_exchange(found: tuple[Packet, ...]) -> tuple[Packet, ...]:
    """Return the packets of a proxy's connection until it asks again: a kept one then carries another request."""
    sent: Packet | None = None
    answered = False
    secured = handshake_length(found)
    for number, packet in enumerate(found):
        if not packet.data_bytes or number < secured:
            continue
        if not packet.from_client:
            answered = True
        elif answered and sent is not None and packet.seq > sent.seq:
            return found[:number]
        else:
            # What came before the first request, by TLS, are tickets.
            answered = answered and (sent is not None or not secured)
            sent = packet
    return found


Kind: TypeAlias = Literal["syn", "syn-ack", "ack", "data", "fin", "rst"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A packet, or several with data of one side that follow each other; a record of TLS that another follows is apart.

    Attributes:
        kind: `ack` is the one that completes the handshake, be it bare or with data.
        again: whether it was sent before.
        lost: whether it is a SYN without an answer.
        packets: how many; `first` and `last` are their numbers in the capture.
        tls: the record of TLS that begins its data.
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
    tls: str | None = None

    @property
    def frames(self) -> str:
        """Return their numbers, as one reads them."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def split_segments(packets: Sequence[Packet]) -> list[Segment]:
    """Return the segments of a connection's packets, in the order of the capture."""
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
            alike = (kind, packet.from_client, again)
            tls = packet.tls if kind == "data" else None
            # A long record goes on in packets that begin with none.
            goes_on = bool(found) and tls in (None, found[-1].tls)
            if goes_on and kind == "data" and alike == (found[-1].kind, found[-1].from_client, found[-1].again):
                before = found.pop()
                size, count = before.data_bytes + data_bytes, before.packets + 1
                segment = replace(before, last_us=packet.time_us, data_bytes=size, packets=count, last=packet.number)
            else:
                at_us, number = packet.time_us, packet.number
                client = packet.from_client
                segment = Segment(kind, at_us, at_us, client, again, lost, data_bytes, 1, number, number, tls)
            found.append(segment)
    return found


def _answered_syns(packets: Sequence[Packet]) -> dict[int, bool]:
    """Return the client's SYNs, by number → whether the server sent something before the next one."""
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
    """Return whether data was sent before."""
    before = furthest.get(packet.from_client, packet.seq)
    furthest[packet.from_client] = max(before, packet.seq + packet.data_bytes)
    return packet.seq < before


# Captures have nanoseconds, and these times microseconds.
_ROUNDING_US = 1


@dataclass(frozen=True, slots=True)
class PacketView:
    """How to see a connection's packets in Wireshark (a display filter), and with tcpdump from the run's folder."""

    connection: str
    capture: str
    wireshark: str
    tcpdump: str


def build_view(name: str, carrier: Carrier, capture: str) -> PacketView:
    """Return how to see the packets of a carrier, of which there are some.

    Wireshark's `tcp.stream` numbers depend on what else a file holds, so the filters name addresses, ports and times.
    """
    (client, client_port), (server, server_port) = carrier.connection.client, carrier.connection.server
    ip = "ip" if ip_address(client).version == 4 else "ipv6"  # noqa: PLR2004  the version's name
    times_us = [packet.time_us for packet in carrier.packets]
    first, last = _seconds(min(times_us) - _ROUNDING_US), _seconds(max(times_us) + _ROUNDING_US)
    wireshark = (
        f"{ip}.addr == {client} && tcp.port == {client_port} && {ip}.addr == {server} && tcp.port == {server_port}"
        f" && frame.time_epoch >= {first} && frame.time_epoch <= {last}"
    )
    expression = f"host {client} and host {server} and tcp port {client_port} and tcp port {server_port}"
    return PacketView(name, capture, wireshark, f"tcpdump -nn -tttt -r {quote(capture)} {quote(expression)}")


def _seconds(time_us: int) -> str:
    return f"{time_us // 1_000_000}.{time_us % 1_000_000:06d}"
