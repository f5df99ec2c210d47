"""Captures for the tests, packet by packet: classic pcap files with Ethernet, IPv4 and TCP headers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from tests.analysis.support import ANSWERED, MEASURE_S, SERVED_MS, SYNS_S, USERS, at_us

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# What begins a record of TLS.
CLIENT_HELLO, SERVER_HELLO = bytes([22, 3, 1, 1, 0, 1]), bytes([22, 3, 3, 0, 122, 2])
CHANGE_CIPHER_SPEC, ENCRYPTED = bytes([20, 3, 3, 0, 1, 1]), bytes([23, 3, 3, 0, 69, 159])

_ETHERNET = bytes(12) + b"\x08\x00"
# https://www.tcpdump.org/linktypes.html
LINK_ETHERNET, LINK_RAW_IP = 1, 101
_SNAPLEN = 128


@dataclass
class Capture:
    """Packets with their times, in any order; `content()` is the file, in the order of time.

    `shown` is what the wall clock shows at a time.
    """

    packets: list[tuple[int, bytes]] = field(default_factory=list)
    link: int = LINK_ETHERNET
    shown: Callable[[int], int] = int

    def content(self) -> bytes:
        header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPLEN, self.link)
        start = len(_ETHERNET) if self.link == LINK_RAW_IP else 0
        return header + b"".join(_record(self.shown(time_us), frame[start:]) for time_us, frame in sorted(self.packets))

    def in_network(self, number: int) -> Capture:
        """The same packets between the same hosts of the network 172.18.`number`."""
        octet = bytes([number])
        moved = [(time_us, frame[:28] + octet + frame[29:32] + octet + frame[33:]) for time_us, frame in self.packets]
        return Capture(moved, self.link)

    def tcp(
        self,
        second: float,
        source: str,
        target: str,
        flags: int,
        *,
        seq: int,
        ack: int = 0,
        data: int = 0,
        start: bytes = b"",
    ) -> None:
        """Add a TCP segment; addresses as "172.18.0.3:40001", `data` in bytes, `start` is what the data begins with."""
        (source_address, source_port), (target_address, target_port) = _parts(source), _parts(target)
        tcp = struct.pack(">HHIIBBHHH", source_port, target_port, seq, ack, 5 << 4, flags, 64_240, 0, 0)
        tcp += start + b"x" * (data - len(start))
        length = 20 + len(tcp)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 6, 0) + source_address.packed + target_address.packed
        self.packets.append((at_us(second), _ETHERNET + ip + tcp))


def make_packets() -> Capture:
    """What the backend's end saw of the tests' run: three connections, and the SYNs of all others."""
    capture = Capture()
    for number in range(1, USERS + 1):
        second = MEASURE_S + 0.01 * (number - 1) + 0.0001
        connection = Connection(capture, f"172.18.0.3:{40_000 + number}", "172.18.0.2:8080", isn=1_000 * number)
        if number > len(SERVED_MS):
            connection.syns(*(second + syn for syn in SYNS_S))
        else:
            answered = second + SERVED_MS[number - 1] / 1000 - 0.0004
            connection.handshake(second).ask(second + 0.0003).answer(answered)
    return capture


def make_upstream_packets() -> Capture:
    """What nginx of the proxied run saw of its connections to the backend: one for each of its answers."""
    capture = Capture()
    for number, (ended, _) in enumerate(ANSWERED, start=1):
        begun = ended - 1.0025
        connection = Connection(capture, f"172.18.0.4:{50_000 + number}", "172.18.0.2:8080", isn=1_000 * number)
        connection.handshake(begun).ask(begun + 0.0003).answer(ended - 0.001).close_by_server(ended - 0.0009)
    return capture


def _parts(address: str) -> tuple[IPv4Address, int]:
    host, port = address.split(":")
    return IPv4Address(host), int(port)


def _record(time_us: int, frame: bytes) -> bytes:
    kept = frame[:_SNAPLEN]
    return struct.pack("<IIII", time_us // 1_000_000, time_us % 1_000_000, len(kept), len(frame)) + kept


@dataclass
class Connection:
    """One TCP connection in a capture; each step adds its packets. Times are seconds, as `at_us` takes them."""

    capture: Capture
    client: str
    server: str
    isn: int = 1_000
    sent: int = 0
    answered: int = 0

    def syns(self, *seconds: float) -> Connection:
        """SYNs that nothing answers."""
        for second in seconds:
            self.capture.tcp(second, self.client, self.server, SYN, seq=self.isn)
        return self

    def handshake(self, second: float) -> Connection:
        self.syns(second)
        self._from_server(second + 0.00005, SYN | ACK, seq=self.isn + 5_000)
        self._from_client(second + 0.0001, ACK)
        return self

    def answered_again(self, *seconds: float) -> Connection:
        """The server sends its SYN-ACK again, as if it had not seen the client's ACK."""
        for second in seconds:
            self._from_server(second, SYN | ACK, seq=self.isn + 5_000)
        return self

    def refused(self, second: float) -> Connection:
        self.syns(second)
        self._from_server(second + 0.00005, RST | ACK, seq=0)
        return self

    def ask(self, second: float, data: int = 120) -> Connection:
        self._from_client(second, PSH | ACK, data=data)
        self.sent += data
        self._from_server(second + 0.00002, ACK)
        return self

    def unheard(self, *seconds: float, data: int = 120) -> Connection:
        """The client asks again and again, and the server says nothing."""
        for second in seconds:
            self._from_client(second, PSH | ACK, data=data)
        return self

    def answer(self, second: float, data: int = 200) -> Connection:
        self._from_server(second, ACK, data=data)
        self.answered += data
        self._from_client(second + 0.00002, ACK)
        return self

    def secure(self, hello: float, answered: float | None = None, replied: float | None = None) -> Connection:
        """A handshake of TLS 1.3, as far as its packets have times; tickets come right after it."""
        self._record(hello, CLIENT_HELLO, 500)
        if answered is not None:
            self._record(answered, SERVER_HELLO, 1_000, from_server=True)
        if replied is not None:
            self._record(replied, CHANGE_CIPHER_SPEC, 80)
            self._record(replied + 0.0001, ENCRYPTED, 255, from_server=True)
        return self

    def _record(self, second: float, start: bytes, data: int, *, from_server: bool = False) -> None:
        if from_server:
            self._from_server(second, ACK, data=data, start=start)
            self.answered += data
        else:
            self._from_client(second, PSH | ACK, data=data, start=start)
            self.sent += data

    def close_by_server(self, second: float) -> Connection:
        self._from_server(second, FIN | ACK)
        self.answered += 1
        self._from_client(second + 0.0001, FIN | ACK)
        self.sent += 1
        self._from_server(second + 0.0002, ACK)
        return self

    def close_by_client(self, second: float) -> Connection:
        self._from_client(second, FIN | ACK)
        self.sent += 1
        self._from_server(second + 0.0001, FIN | ACK)
        self.answered += 1
        self._from_client(second + 0.0002, ACK)
        return self

    def half_close_by_server(self, second: float) -> Connection:
        self._from_server(second, FIN | ACK)
        self.answered += 1
        self._from_client(second + 0.00002, ACK)
        return self

    def half_close_by_client(self, second: float) -> Connection:
        self._from_client(second, FIN | ACK)
        self.sent += 1
        self._from_server(second + 0.00002, ACK)
        return self

    def reset_by_server(self, second: float) -> Connection:
        self._from_server(second, RST | ACK)
        return self

    def reset_by_client(self, second: float) -> Connection:
        self._from_client(second, RST | ACK)
        return self

    def _from_client(self, second: float, flags: int, *, data: int = 0, start: bytes = b"") -> None:
        seq, ack = self.isn + 1 + self.sent, self.isn + 5_001 + self.answered
        self.capture.tcp(second, self.client, self.server, flags, seq=seq, ack=ack, data=data, start=start)

    def _from_server(
        self, second: float, flags: int, *, data: int = 0, seq: int | None = None, start: bytes = b""
    ) -> None:
        own, ack = self.isn + 5_001 + self.answered if seq is None else seq, self.isn + 1 + self.sent
        self.capture.tcp(second, self.server, self.client, flags, seq=own, ack=ack, data=data, start=start)
