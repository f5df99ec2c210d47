"""What the program `flows` could not follow is said, and it cannot hold up an analysis."""

import struct
from pathlib import Path

import pytest

from analysis.diagnosis.joins import admissions
from analysis.evidence import flows
from analysis.evidence.flows import Flags, Packet
from tests.analysis.packets import ACK, Capture
from tests.analysis.support import MEASURE_S, at_us


def _ip(protocol: int, payload: bytes, *, claimed: int = 0) -> bytes:
    """An Ethernet frame with an IPv4 packet that claims so many bytes more than it has."""
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload) + claimed, 0, 0, 64, protocol, 0)
    return bytes(12) + b"\x08\x00" + header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + payload


def _udp(port: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", 40_000, port, 8 + len(payload), 0) + payload


_TCP = struct.pack(">HHIIBBHHH", 40_000, 8080, 1, 1, 5 << 4, ACK, 64_240, 0, 0)


@pytest.mark.parametrize(
    ("frame", "loss"),
    [
        (_ip(47, bytes(4) + _ip(6, _TCP)), "are in GRE tunnels"),
        (_ip(17, _udp(4789, b"\x08" + bytes(7))), "are in VXLAN tunnels"),
        (_ip(17, _udp(6081, bytes(8))), "are in Geneve tunnels"),
        (_ip(17, _udp(2152, b"\x30\xff" + bytes(6))), "are in GTP tunnels"),
        (_ip(4, _ip(6, _TCP)[14:]), "are IP packets in IP packets"),
        (bytes(12) + b"\x88\x47" + b"\x00\x01\x01\x40" + bytes(60), "are in MPLS pseudowires"),
        (_ip(6, _TCP, claimed=35_000), "claim more bytes than their frames had"),
        (_ip(6, _TCP)[:40], "have headers that contradict themselves, or end inside them"),
    ],
)
def test_a_packet_that_flows_does_not_follow_is_a_loss_with_its_kind(tmp_path: Path, frame: bytes, loss: str) -> None:
    capture = Capture([(at_us(MEASURE_S), frame)])
    capture.tcp(MEASURE_S, "172.18.0.3:40001", "172.18.0.2:8080", ACK, seq=1, ack=1)
    (tmp_path / "capture.pcap").write_bytes(capture.content())
    assert flows.reduce_capture(tmp_path, tmp_path / "flows.parquet").losses == (f"1 of 2 packets {loss}",)


def test_a_program_that_hangs_is_ended_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "capture.pcap").write_bytes(Capture().content())
    hung = tmp_path / "flows"
    hung.write_text("#!/bin/sh\nexec sleep 1000\n")
    hung.chmod(0o755)
    monkeypatch.setenv("CONNLAB_FLOWS", str(hung))
    monkeypatch.setattr(flows, "_SECONDS_MAX", 0)
    reduction = flows.reduce_capture(tmp_path, tmp_path / "flows.parquet")
    assert reduction.rows is None
    assert len(reduction.losses) == 1
    assert reduction.losses[0].startswith("flows did not end within 0 s; hint: ")


SYN, SYN_ACK, RESET = (True, Flags.SYN, 0, 0), (False, Flags.SYN | Flags.ACK, 0, 1), (True, Flags.RST, 10, 0)
ASKED, ACKNOWLEDGED = (True, Flags.ACK, 1, 9), (False, Flags.ACK, 1, 10)
# The client's bare ACK, and those that it sends when it has data under way.
BARE, LATER = (True, Flags.ACK, 1, 0), (True, Flags.ACK, 10, 0)


def packets_of(sent: str) -> list[Packet]:
    kinds = {"syn": SYN, "syn-ack": SYN_ACK, "ack": BARE, "asks": ASKED, "seen": ACKNOWLEDGED, "later": LATER,
             "unseen": (False, Flags.ACK, 1, 0), "reset": RESET}  # fmt: skip
    packets: list[Packet] = []
    time_us = 0
    for word in sent.split():
        if word.isdigit():
            time_us += 1000 * int(word)
            continue
        of_client, flags, seq, size = kinds[word]
        acknowledged = 1 if of_client else size
        time_us += 100
        packets.append(Packet(len(packets), time_us, of_client, flags, size if of_client else 0, seq, acknowledged))
    return packets


@pytest.mark.parametrize(
    ("sent", "dropped"),
    [
        # Only a SYN-ACK that the server sends after an ACK proves that this ACK met a full queue.
        ("syn syn-ack syn-ack ack 500 ack asks seen", (0, 1)),
        ("syn syn-ack ack syn-ack 500 ack asks seen", (1, 1)),
        # The ACK may have taken the last place, as another processor dropped the data right behind it.
        ("syn syn-ack ack asks 200 asks seen", (1, 2)),
        ("syn syn-ack ack 2 asks 200 asks seen", (2, 2)),
        ("syn syn-ack ack asks 200 asks 400 asks seen", (3, 3)),
        # Either of two bare ACKs made the connection, which has not seen the data.
        ("syn syn-ack ack asks 200 asks syn-ack later syn-ack later unseen", (3, 4)),
        # A full queue drops no RST.
        ("syn syn-ack ack asks 200 asks reset", (3, 3)),
    ],
)
def test_packets_surely_or_perhaps_met_a_full_queue(sent: str, dropped: tuple[int, int]) -> None:
    found = admissions.admission(packets_of(sent))
    assert (len(found.dropped), len(found.dropped) + found.perhaps_dropped) == dropped


def test_a_socket_that_waits_for_data_takes_no_bare_ack_and_counts_it_as_no_overflow() -> None:
    packets = packets_of("syn syn-ack ack 2 asks 200 asks seen")
    found = admissions.admission(packets, defers=True)
    assert (found.dropped, found.perhaps_dropped, found.entered_us) == ([packets[3]], 0, packets[4].time_us)
    # It waits no longer.
    packets = packets_of("syn syn-ack ack asks 200 asks syn-ack later unseen")
    found = admissions.admission(packets, defers=True)
    assert (found.dropped, found.entered_us) == ([packets[3], packets[4]], packets[6].time_us)
