"""Reads the packets of a few connections out of a capture, by the program `flows`; docs/flows.md defines its fields."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from analysis.evidence import flows
from analysis.evidence.clock import NEVER_SET
from analysis.evidence.jsonl import why_unreadable
from formats.safe_open import open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analysis.evidence.clock import Clock

SCHEMA = "connlab.packets/1"


class Flags(IntFlag):
    """The TCP flags that a story tells of."""

    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


@dataclass(frozen=True, slots=True)
class Connection:
    """Which packets to read: those between two sockets, within a span of time.

    Attributes:
        client: the client's address and port.
        server: the server's.
        first_us: when its first packet was captured, Unix epoch.
        last_us: the same of its last packet.
    """

    client: tuple[str, int]
    server: tuple[str, int]
    first_us: int
    last_us: int

    def covers(self, time_us: int) -> bool:
        """Whether a time lies within the span."""
        return self.first_us <= time_us <= self.last_us


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment.

    Attributes:
        number: its place in the capture, from 1, as Wireshark's frame.number.
        time_us: when it was captured, Unix epoch.
        from_client: who sent it.
        flags: its TCP flags.
        data_bytes: how much data it carries, whether or not the capture kept it.
        seq: where it begins in what its sender sends: 0 is the SYN, 1 the first byte. It does not wrap around.
        ack: what its sender expects next of the other side, counted as `seq`; None without ACK.
    """

    number: int
    time_us: int
    from_client: bool
    flags: Flags
    data_bytes: int
    seq: int
    ack: int | None


@dataclass(frozen=True, slots=True)
class Extract:
    """What a capture has of some connections.

    Attributes:
        packets: of each connection, in the order of the capture; empty where there are none.
        problem: why the capture could not be read, or not to its end; None if it was.
    """

    packets: tuple[tuple[Packet, ...], ...]
    problem: str | None


def extract(path: Path, connections: Sequence[Connection], clock: Clock = NEVER_SET) -> Extract:
    """Read the packets of some connections, in one process for all of them; it never raises.

    Args:
        path: the capture.
        connections: whose packets, with times on the steady clock, as those of the packets are.
        clock: the wall clock that the capture's times are by.
    """
    nothing = tuple(() for _ in connections)
    try:
        capture = open_regular(path)
    except OSError as error:
        return Extract(nothing, why_unreadable(error))
    chosen = "".join(f"{json.dumps(_row(number, each, clock))}\n" for number, each in enumerate(connections))
    with capture:
        done = flows.run(capture, ["--packets", "-"], chosen)
    if isinstance(done, str):
        return Extract(nothing, flows.unnamed(done))
    header, *rows, end = map(json.loads, done.stdout.splitlines())
    if header.get("schema") != SCHEMA:
        return Extract(nothing, flows.other_version(SCHEMA))
    found: list[list[Packet]] = [[] for _ in connections]
    times_us = clock.in_order([row["time_us"] for row in rows])
    for row, time_us in zip(rows, times_us, strict=True):
        if not clock.differs or connections[row["connection"]].covers(time_us):
            found[row["connection"]].append(_packet(row, time_us))
    return Extract(tuple(map(tuple, found)), "; ".join(map(flows.unnamed, flows.unreadable(end))) or None)


def _row(number: int, connection: Connection, clock: Clock) -> dict[str, Any]:
    first_us, last_us = clock.shown(connection.first_us, connection.last_us)
    (client, client_port), (server, server_port) = connection.client, connection.server
    return {
        "id": number,
        "client_address": client,
        "client_port": client_port,
        "server_address": server,
        "server_port": server_port,
        "first_time_us": first_us,
        "last_time_us": last_us,
    }


def _packet(row: dict[str, Any], time_us: int) -> Packet:
    flags = _flags(tuple(row["flags"]))
    from_client = row["from"] == "client"
    return Packet(row["number"], time_us, from_client, flags, row["payload_bytes"], row["seq"], row["ack"])


@cache
def _flags(names: tuple[str, ...]) -> Flags:
    return reduce(or_, (Flags[name] for name in names if name in Flags.__members__), Flags(0))
