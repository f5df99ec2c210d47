"""How to see a connection's packets in Wireshark and tcpdump.

Wireshark's `tcp.stream` numbers depend on what else a file holds, so the filters name addresses, ports and times.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from analysis.reports.stories.parts import View
from analysis.suggested import quoted

if TYPE_CHECKING:
    from analysis.evidence.packets import Connection, Packet

# Captures have nanoseconds, and these times microseconds.
_ROUNDING_US = 1


def build_view(name: str, connection: Connection, packets: tuple[Packet, ...], capture: str) -> View:
    """The view of the packets that a story tells of.

    Args:
        name: the connection's two ends.
        connection: the same as addresses and ports.
        packets: of it, in the order of the capture; at least one.
        capture: the capture file, below the run's folder.
    """
    (client, client_port), (server, server_port) = connection.client, connection.server
    ip = "ip" if ip_address(client).version == 4 else "ipv6"  # noqa: PLR2004  the version's name
    times_us = [packet.time_us for packet in packets]
    first, last = _seconds(min(times_us) - _ROUNDING_US), _seconds(max(times_us) + _ROUNDING_US)
    wireshark = (
        f"{ip}.addr == {client} && tcp.port == {client_port} && {ip}.addr == {server} && tcp.port == {server_port}"
        f" && frame.time_epoch >= {first} && frame.time_epoch <= {last}"
    )
    expression = f"host {client} and host {server} and tcp port {client_port} and tcp port {server_port}"
    return View(name, capture, wireshark, f"tcpdump -nn -tttt -r {quoted(capture)} {quoted(expression)}")


def _seconds(time_us: int) -> str:
    return f"{time_us // 1_000_000}.{time_us % 1_000_000:06d}"
