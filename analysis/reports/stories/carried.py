"""Which packets belong to a request: those of its connections, as long as they carried it and no other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.database import sql
from analysis.diagnosis.joins.requests import CLOCK_SLACK_US
from analysis.evidence import packets
from analysis.reports.stories import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.diagnosis.joins import Joined, Row, Story
    from analysis.evidence.clocks import Clocks
    from analysis.evidence.packets import Connection, Packet
    from analysis.evidence.rawfiles import Places

# How much later than its log says a proxy may close the connection of a try.
_CLOSE_SLACK_US = 50_000


@dataclass(slots=True)
class Carrier:
    """A connection that carried a request, in one capture.

    Attributes:
        flow: its row of the table `flows` of analysis.diagnosis.joins.
        is_first_hop: whether it is the client's; else it is the proxy's.
        is_repeated: whether an earlier carrier is the same connection, in another capture.
        connection: its ends, and the time in which it carried the request.
        packets: those of the request, in the order of the capture.
    """

    flow: Row
    is_first_hop: bool
    is_repeated: bool
    connection: Connection
    packets: tuple[Packet, ...] = ()

    @property
    def observer(self) -> str:
        """The instance whose capture it is."""
        return str(self.flow["observer"])


def find_carriers(story: Story, next_us: int | None) -> list[Carrier]:
    """The connections that carried a request; their packets are still to be read.

    Args:
        story: of the request.
        next_us: when the next request over the client's connection began, None if there was none.
    """
    carriers: list[Carrier] = []
    for flow in story.flows:
        first_hop = flow["try"] is None
        span = _span(story, flow, next_us) if first_hop else _try_span(story, flow)
        client = flow["client_address"], flow["client_port"]
        connection = packets.Connection(client, (flow["server_address"], flow["server_port"]), *span)
        repeated = any(carrier.connection == connection for carrier in carriers)
        carriers.append(Carrier(flow, first_hop, repeated, connection))
    return carriers


def _span(story: Story, flow: Row, next_us: int | None) -> tuple[int, int]:
    start_us = story.case["time_us"] - CLOCK_SLACK_US if story.case["reused"] else flow["first_time_us"]
    return start_us, flow["last_time_us"] if next_us is None else next_us - 1


def _try_span(story: Story, flow: Row) -> tuple[int, int]:
    """A connection made for the try: all of it. A kept one that broke off: what happened to its last request."""
    each, last_us = flow["try"], flow["last_time_us"]
    if each["how"] == "breach":
        ending = (flow["client_last_data_time_us"], flow["server_fin_time_us"], flow["first_rst_time_us"])
        # A second capture of the connection may have ended before.
        return min((time_us for time_us in ending if time_us is not None), default=last_us + 1), last_us
    end_us = story.case["end_us"] if each["response_us"] is None else each["start_us"] + each["response_us"]
    # A connection that stood before the request was kept for it.
    kept = each["how"] == "port" and flow["first_time_us"] < story.case["time_us"] - CLOCK_SLACK_US
    return story.case["time_us"] - CLOCK_SLACK_US if kept else flow["first_time_us"], end_us + _CLOSE_SLACK_US


def next_request_us(joined: Joined, case: Row) -> int | None:
    """When the next request over a request's connection began."""
    found = joined.rows(
        sql(__name__, "next_request"), **{column: case[column] for column in ("instance", "dial", "time_us", "id")}
    )
    time_us = found[0]["time_us"]
    return None if time_us is None else int(time_us)


def read_packets(places: Places, carriers: Iterable[Carrier], clocks: Clocks) -> Iterator[str]:
    """Read the packets of all carriers, each capture once; yield what is wrong with a capture.

    Args:
        places: of the run's raw files.
        carriers: of any number of requests.
        clocks: those of the run's machines.
    """
    of_observer: dict[str, list[Carrier]] = defaultdict(list)
    for carrier in carriers:
        of_observer[carrier.observer].append(carrier)
    for observer, found in of_observer.items():
        wanted = [carrier.connection for carrier in found]
        extract = packets.extract(places.collector(observer, "capture.pcap"), wanted, clocks.of(observer))
        for carrier, of_carrier in zip(found, extract.packets, strict=True):
            carrier.packets = of_carrier if carrier.is_first_hop else _first_exchange(of_carrier)
        if extract.problem is not None:
            shown = "; the packets before it are shown" if any(extract.packets) else ""
            yield f"{wire.file_of(places, observer)}: {extract.problem}{shown}"


def _first_exchange(found: tuple[Packet, ...]) -> tuple[Packet, ...]:
    """The packets of a proxy's connection until it asks again: a kept one then carries another request."""
    sent: Packet | None = None
    answered = False
    for number, packet in enumerate(found):
        if not packet.data_bytes:
            continue
        if not packet.from_client:
            answered = True
        elif answered and sent is not None and packet.seq > sent.seq:
            return found[:number]
        else:
            sent = packet
    return found
