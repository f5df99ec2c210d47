"""Packets read from captures, and how they are shown."""

import struct
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.evidence import flows
from analysis.evidence.flows import Connection as Wanted
from analysis.evidence.flows import Extract
from analysis.formatting import excerpt
from analysis.reports.stories.narrator import packet_moments, shorten
from analysis.reports.stories.timeline import Moment
from formats.sanitize import visible
from tests.analysis.packets import ACK, LINK_RAW_IP, RST, SYN, Capture, Connection
from tests.analysis.support import at_us

CLIENT, SERVER = "10.0.0.2:40000", "10.0.0.1:8080"
WANTED = Wanted(("10.0.0.2", 40_000), ("10.0.0.1", 8_080), at_us(0), at_us(100))


def read(folder: Path, content: bytes) -> Extract:
    path = folder / "capture.pcap"
    path.write_bytes(content)
    return flows.extract(path, [WANTED])


def told(folder: Path, capture: Capture) -> list[str]:
    found = read(folder, capture.content())
    assert found.problem is None
    return [each.event.text for each in moments(found)]


def moments(found: Extract) -> list[Moment]:
    return packet_moments(found.packets[0], ("C", "S"), "backend-1", "capture.pcap", lambda *_: ((), None))


def repeated_answer(capture: Capture) -> None:
    """The last ACK met a full queue."""
    Connection(capture, CLIENT, SERVER).handshake(1)
    capture.tcp(2, SERVER, CLIENT, SYN | ACK, seq=6_000, ack=1_001)


def data_completes_the_handshake(capture: Capture) -> None:
    capture.tcp(1, CLIENT, SERVER, SYN, seq=1)
    capture.tcp(2, SERVER, CLIENT, SYN | ACK, seq=7, ack=2)
    capture.tcp(3, CLIENT, SERVER, ACK, seq=2, ack=8, data=5)
    capture.tcp(4, CLIENT, SERVER, ACK, seq=7, ack=8)


def several_segments_and_one_again(capture: Capture) -> None:
    Connection(capture, CLIENT, SERVER).handshake(1)
    for number in range(3):
        capture.tcp(2 + number / 1000, SERVER, CLIENT, ACK, seq=6_001 + 1_000 * number, ack=1_001, data=1_000)
    capture.tcp(3, SERVER, CLIENT, ACK, seq=7_001, ack=1_001, data=1_000)


def numbers_that_wrap(capture: Capture) -> None:
    for second, seq in ((1, 2**32 - 100), (2, 0), (3, 100)):
        capture.tcp(second, CLIENT, SERVER, ACK, seq=seq, data=100)


def connected(capture: Capture) -> Connection:
    return Connection(capture, CLIENT, SERVER)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda capture: connected(capture).handshake(1).ask(2).answer(3).close_by_client(4),
         ["SYN: C → S", "S answers: SYN-ACK", "ACK: C believes it is connected", "C sends 120 bytes",
          "S sends 200 bytes", "C closes its side (FIN)", "S closes its side (FIN)"]),
        (lambda capture: connected(capture).syns(1, 2, 4),
         ["SYN 1 of 3: C → S, unanswered", "SYN 2 of 3: C → S, unanswered", "SYN 3 of 3: C → S, unanswered"]),
        (lambda capture: connected(capture).syns(1).handshake(4),
         ["SYN 1 of 2: C → S, unanswered", "SYN 2 of 2: C → S", "S answers: SYN-ACK",
          "ACK: C believes it is connected"]),
        (lambda capture: connected(capture).refused(1), ["SYN: C → S", "S resets the connection (RST)"]),
        (lambda capture: connected(capture).handshake(1).ask(2).reset_by_client(3), ["C resets the connection (RST)"]),
        (repeated_answer, ["S answers: SYN-ACK again (2)"]),
        (data_completes_the_handshake, ["ACK: C believes it is connected", "C sends 5 bytes"]),
        (several_segments_and_one_again,
         ["S sends 3,000 bytes in 3 segments within 2.0 ms", "S sends 1,000 bytes again"]),
        (numbers_that_wrap, ["C sends 300 bytes in 3 segments within 2,000.0 ms"]),
    ],
)  # fmt: skip
def test_the_last_lines_of_a_connection(tmp_path: Path, make: Callable[[Capture], object], says: list[str]) -> None:
    capture = Capture()
    make(capture)
    found = told(tmp_path, capture)

    assert found[-len(says) :] == says


def test_more_than_one_reads_is_shortened_in_the_middle(tmp_path: Path) -> None:
    capture = Capture()
    for number in range(100):
        Connection(capture, CLIENT, SERVER).syns(1 + number / 10)
    events = [each.event for each in shorten(moments(read(tmp_path, capture.content())))]

    assert len(events) == 40
    assert events[0].text.startswith("SYN 1 of 100")
    assert events[20].text == "… 61 more such lines until 6,000.0 ms later"
    assert events[-1].text.startswith("SYN 100 of 100")


def test_only_the_connection_and_its_time_are_read(tmp_path: Path) -> None:
    capture = Capture()
    capture.tcp(1, CLIENT, SERVER, SYN, seq=1)
    capture.tcp(2, "10.0.0.2:40001", SERVER, SYN, seq=1)
    capture.tcp(3, SERVER, CLIENT, RST, seq=1)
    capture.tcp(101, CLIENT, SERVER, SYN, seq=1)
    (found,) = read(tmp_path, capture.content()).packets

    assert [(packet.number, packet.from_client) for packet in found] == [(1, True), (3, False)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a capture that can be read: it is empty"),
        (
            b"garbage" * 10,
            "not a capture that can be read: it begins with the bytes 67 61 72 62, neither pcap, pcapng nor snoop",
        ),
        (
            Capture().content() + b"\0" * 7,
            (
                "is unreadable from byte 24 on (the file ends inside a record header: 7 of its 16 bytes are there);"
                " 0 packets were read"
            ),
        ),
        (
            Capture().content() + struct.pack("<IIII", 0, 0, 2**32 - 1, 60),
            "is unreadable from byte 24 on (a record claims 4294967295 captured bytes); 0 packets were read",
        ),
    ],
)
def test_what_is_no_capture_is_said(tmp_path: Path, content: bytes, problem: str) -> None:
    assert read(tmp_path, content) == Extract(((),), problem)


def test_a_missing_capture_is_said(tmp_path: Path) -> None:
    assert flows.extract(tmp_path / "capture.pcap", [WANTED]).problem == "missing"


def test_what_was_read_before_a_cut_is_kept(tmp_path: Path) -> None:
    capture = Capture()
    Connection(capture, CLIENT, SERVER).handshake(1)
    found = read(tmp_path, capture.content()[:-1])

    assert len(found.packets[0]) == 2
    assert str(found.problem).startswith("is unreadable from byte 164 on (the file ends inside a record: ")
    assert str(found.problem).endswith("; 2 packets were read")


@given(st.binary(max_size=400))
@settings(max_examples=20)
def test_no_content_raises(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    read(tmp_path_factory.mktemp("capture"), Capture().content() + garbage)


def test_another_link_layer_is_read(tmp_path: Path) -> None:
    capture = Capture(link=LINK_RAW_IP)
    Connection(capture, CLIENT, SERVER).handshake(1)

    assert told(tmp_path, capture)[:2] == ["SYN: C → S", "S answers: SYN-ACK"]


def test_each_connection_has_its_packets(tmp_path: Path) -> None:
    capture = Capture()
    for port in (40_000, 40_001):
        Connection(capture, f"10.0.0.2:{port}", SERVER).handshake(1)
    (tmp_path / "capture.pcap").write_bytes(capture.content())
    others = [Wanted(("10.0.0.2", port), ("10.0.0.1", 8_080), at_us(0), at_us(100)) for port in (40_001, 9)]
    found = flows.extract(tmp_path / "capture.pcap", [WANTED, *others]).packets

    assert [[packet.number for packet in each] for each in found] == [[1, 3, 5], [2, 4, 6], []]


def test_numbers_are_counted_from_the_syn(tmp_path: Path) -> None:
    capture = Capture()
    Connection(capture, CLIENT, SERVER, isn=7).handshake(1).ask(2)
    (found,) = read(tmp_path, capture.content()).packets

    assert [(packet.seq, packet.ack) for packet in found] == [(0, None), (0, 1), (1, 1), (1, 1), (1, 121)]


def test_a_program_of_another_version_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "flows"
    program.write_text("""#!/bin/sh\necho '{"kind":"header","schema":"connlab.packets/2"}'\necho '{"kind":"end"}'\n""")
    program.chmod(0o755)
    monkeypatch.setenv("CONNLAB_FLOWS", str(program))
    problem = read(tmp_path, Capture().content()).problem

    assert str(problem).startswith("flows writes another version than connlab.packets/1")


@given(st.text())
def test_what_is_printed_has_no_character_that_is_not(outside: str) -> None:
    # Python calls blanks of other widths unprintable, and they steer nothing.
    for text in (visible(outside), excerpt(outside)):
        assert all(char.isprintable() or unicodedata.category(char) == "Zs" for char in text)
