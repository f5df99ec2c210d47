"""Reads the packets of a few connections out of a capture, to show them; the reduction of whole captures is `flows`'s.

It reads what the lab's captures are: classic pcap, Ethernet, TCP over IPv4 or IPv6 without extension headers.
"""

from __future__ import annotations

import mmap
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from ipaddress import ip_address
from typing import TYPE_CHECKING

from analysis.evidence.jsonl import why_unreadable
from analysis.evidence.rawfiles import open_raw

if TYPE_CHECKING:
    from pathlib import Path

# The first four bytes as they lie in the file → byte order of the headers, and how many of its ticks make 1 µs.
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
}
_FILE_HEADER_BYTES = 24
_RECORD_HEADER_BYTES = 16
_LINK_ETHERNET = 1

_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_TCP = 6


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


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment.

    Attributes:
        number: its place in the capture, from 1, as Wireshark's frame.number.
        time_us: when it was captured, Unix epoch.
        from_client: who sent it.
        flags: its TCP flags.
        data_bytes: how much data it carries, whether or not the capture kept it.
        seq: its sequence number.
        ack: what it acknowledges, if it has ACK: the sequence number that its sender expects next.
    """

    number: int
    time_us: int
    from_client: bool
    flags: Flags
    data_bytes: int
    seq: int
    ack: int


@dataclass(frozen=True, slots=True)
class Extract:
    """What a capture has of some connections.

    Attributes:
        packets: of each connection, in the order of the capture; empty where there are none.
        problem: why the capture could not be read, or not to its end; None if it was.
    """

    packets: tuple[tuple[Packet, ...], ...]
    problem: str | None


def extract(path: Path, connections: Sequence[Connection]) -> Extract:
    """Read the packets of some connections; it never raises."""
    found: list[list[Packet]] = [[] for _ in connections]
    problem = _problem(path, lambda content: _read(content, _keys(connections), connections, found))
    return Extract(tuple(map(tuple, found)), problem)


def refusal(path: Path) -> str | None:
    """Why not even the first packet of a capture can be read, None if it can or there is none; it never raises."""
    return _problem(path, lambda content: next(_records(content), None))


def _problem(path: Path, read: Callable[[mmap.mmap], object]) -> str | None:
    """What keeps a capture from being read, None if nothing does."""
    try:
        with open_raw(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            read(content)
    except OSError as error:
        return why_unreadable(error)
    except ValueError as error:  # what is no capture, and mmap's answer to an empty file
        return str(error)
    return None


def _keys(connections: Sequence[Connection]) -> dict[bytes, list[tuple[int, bool]]]:
    """Addresses and ports as they lie in a packet → the connections they are of, and whether the client sends."""
    keys: dict[bytes, list[tuple[int, bool]]] = defaultdict(list)
    for number, connection in enumerate(connections):
        for from_client in (True, False):
            ends = (connection.client, connection.server)[:: 1 if from_client else -1]
            addresses = b"".join(ip_address(address).packed for address, _ in ends)
            keys[addresses + struct.pack(">HH", *(port for _, port in ends))].append((number, from_client))
    return keys


def _read(
    content: mmap.mmap,
    keys: dict[bytes, list[tuple[int, bool]]],
    connections: Sequence[Connection],
    found: list[list[Packet]],
) -> None:
    for number, (time_us, start, end) in enumerate(_records(content), start=1):
        segment = _segment(content, start, end)
        if segment is None:
            continue
        key, tcp, ip_end = segment
        for index, from_client in keys.get(key, ()):
            if connections[index].first_us <= time_us <= connections[index].last_us:
                seq, ack, header, flags = struct.unpack_from(">IIBB", content, tcp + 4)
                data_bytes = ip_end - tcp - (header >> 4) * 4
                kept = Flags(flags & 0b10111)
                found[index].append(Packet(number, time_us, from_client, kept, data_bytes, seq, ack))


def _records(content: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Each packet's time in µs, and where in the file it begins and ends; raises ValueError at what is none."""
    if len(content) < _FILE_HEADER_BYTES or content[:4] not in _MAGIC:
        raise ValueError("no pcap file")
    order, ticks_per_us = _MAGIC[content[:4]]
    (link,) = struct.unpack_from(f"{order}I", content, 20)
    if link & 0xFFFF != _LINK_ETHERNET:
        raise ValueError(f"its link layer is of type {link & 0xFFFF}, not Ethernet")
    record = struct.Struct(f"{order}IIII")
    at, size = _FILE_HEADER_BYTES, len(content)
    while at < size:
        if at + _RECORD_HEADER_BYTES > size:
            raise ValueError("the last packet is cut off")
        seconds, fraction, kept, _ = record.unpack_from(content, at)
        start = at + _RECORD_HEADER_BYTES
        at = start + kept
        if at > size:
            raise ValueError("the last packet is cut off")
        yield seconds * 1_000_000 + fraction // ticks_per_us, start, at


def _segment(content: mmap.mmap, start: int, end: int) -> tuple[bytes, int, int] | None:
    """A TCP segment's addresses and ports, where its header begins, and where its packet would end if it were whole."""
    ip = start + 14
    if end < ip + 40:
        return None
    if content[start + 12 : ip] == _IPV4:
        tcp = ip + (content[ip] & 0x0F) * 4
        if content[ip + 9] != _TCP or end < tcp + 14:
            return None
        (total,) = struct.unpack_from(">H", content, ip + 2)
        return content[ip + 12 : ip + 20] + content[tcp : tcp + 4], tcp, ip + total
    if content[start + 12 : ip] == _IPV6 and content[ip + 6] == _TCP and end >= ip + 54:
        (payload,) = struct.unpack_from(">H", content, ip + 4)
        return content[ip + 8 : ip + 44], ip + 40, ip + 40 + payload
    return None
