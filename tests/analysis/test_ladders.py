"""The ladders: which connections are chosen, and what is shown of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analysis.evidence.flows import Flags, Packet
from analysis.evidence.rawrun import RawRun
from analysis.figures import Run
from analysis.reports.stories import ladders
from analysis.reports.stories.narrator import packet_moments
from analysis.reports.stories.packets import first_exchange, handshake_length, split_segments
from analysis.reports.stories.timeline import Ladder, Ladders
from formats import manifest
from lab.schema import schemas
from tests.analysis.packets import Capture, make_packets
from tests.analysis.support import RunFolder
from tests.analysis.whole import make_run


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Ladders:
    """The ladders of the healthy run, told once."""
    run = make_run(tmp_path_factory.mktemp("healthy"))
    run.manifest["slow_ms"] = 5000
    return of_run(run)


def of_run(run: RunFolder) -> Ladders:
    return of_folder(run.write())


def of_folder(folder: Path) -> Ladders:
    """The ladders of a run, which follow their schema whatever they lack."""
    found = ladders.build_ladders(Run(RawRun(folder, manifest.load_manifest(folder))))
    Draft202012Validator(schemas()["ladders.schema.json"]).validate(json.loads(found.to_json()))
    return found


def of_kind(found: Ladders, kind: str) -> Ladder:
    return next(ladder for ladder in found.ladders if ladder.kind == kind)


def test_a_good_one_a_typical_one_of_each_cause_and_the_slowest_are_chosen(healthy: Ladders) -> None:
    assert [(one.kind, one.cause, one.count, one.request) for one in healthy.ladders] == [
        ("good", None, 1, "k6-1/1"),
        ("failed", "accept-queue-drop", 100, "k6-1/53"),
        ("slow", "waited-in-accept-queue", 2, "k6-1/2"),
        ("slowest", "waited-in-accept-queue", 1, "k6-1/3"),
    ]


def test_no_request_is_shown_twice(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    client.requests, client.dials = client.requests[:1], client.dials[:1]

    assert [one.kind for one in of_run(run).ladders] == ["good"]


def test_a_failure_has_its_five_syns_each_lost_with_the_queue_beside_it(healthy: Ladders) -> None:
    ladder = of_kind(healthy, "failed")
    syns = [step for step in ladder.steps if step.kind == "syn"]

    assert [step.text for step in syns] == [f"SYN {number} of 5" for number in range(1, 6)]
    assert all(step.lost and step.queue for step in syns)
    assert {(step.queue.depth_after, step.queue.limit) for step in syns if step.queue} == {(2, 1)}
    assert [step.text for step in ladder.steps if step.kind == "event"] == [
        "begins the request", "ends the request without an answer (k6's error 1211)", "gives up connecting",
    ]  # fmt: skip
    assert ladder.lanes == ["k6-1", "backend-1"]
    assert "ip.addr == 172.18.0.3 && tcp.port == 40053" in ladder.packets[0].wireshark


def test_a_served_request_has_handshake_data_and_answer(healthy: Ladders) -> None:
    steps = of_kind(healthy, "good").steps

    assert [step.kind for step in steps if step.kind != "event"] == ["syn", "syn-ack", "ack", "data", "data"]
    assert [step.after_us for step in steps] == sorted(step.after_us for step in steps)


def test_a_run_without_captures_says_so(run: RunFolder) -> None:
    run.captures.clear()
    del run.lines["backend-1/capture.json"]
    run.set_knobs(capture__mode="off")
    found = of_run(run)

    assert found.lacks == ["no packet was captured"]
    assert found.ladders == []


@pytest.mark.parametrize(
    ("content", "lacks"),
    [
        (None, "missing"),
        (b"no capture at all, though long enough to be one", "not a capture that can be read: it begins with the"),
        # No connection is left that could lead to it.
        (make_packets().content()[:30], "is unreadable from byte 24 on"),
        (make_packets().content()[:-30], "is unreadable from byte 36868 on"),
    ],
)
def test_a_capture_that_is_none_or_cut_is_reported(run: RunFolder, content: bytes | None, lacks: str) -> None:
    folder = run.write()
    path = folder / "raw" / "backend-1" / "collector" / "capture.pcap"
    path.unlink() if content is None else path.write_bytes(content)
    found = of_folder(folder)

    (told,) = found.lacks
    assert told.startswith(f"raw/backend-1/collector/capture.pcap: {lacks}")
    assert any(one.packets for one in found.ladders) == lacks.endswith("36868 on")


def test_a_capture_without_packets_lacks_nothing_that_a_ladder_could_tell(run: RunFolder) -> None:
    run.captures["backend-1"] = Capture()
    found = of_run(run)

    assert (found.lacks, [one.packets for one in found.ladders]) == ([], [[]] * len(found.ladders))


def packet(
    number: int, *, client: bool = True, flags: int = 16, data: int = 0, seq: int = 0, tls: str | None = None
) -> Packet:
    return Packet(number, 1_000 * number, client, Flags(flags), data, seq, 0, tls=tls)


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        ([{"flags": 2}, {"flags": 2}], [("syn", False, True, "1"), ("syn", True, True, "2")]),
        ([{"flags": 16}, {"flags": 16}], []),
        ([{"flags": 2}, {"flags": 16}, {"flags": 16}], [("syn", False, True, "1"), ("ack", False, False, "2")]),
        ([{"data": 5, "seq": 1}, {"data": 5, "seq": 6}], [("data", False, False, "1 to 2")]),
        ([{"data": 9, "seq": -4}, {"data": 5, "seq": 5}], [("data", False, False, "1 to 2")]),
        ([{"data": 5, "flags": 17, "seq": 1}], [("data", False, False, "1"), ("fin", False, False, "1")]),
    ],
)
def test_packets_are_shown_as_segments(
    packets: list[dict[str, Any]], expected: list[tuple[str, bool, bool, str]]
) -> None:
    found = split_segments([packet(number, **each) for number, each in enumerate(packets, start=1)])

    assert [(each.kind, each.again, each.lost, each.frames) for each in found] == expected


SECURED = [
    {"data": 5, "seq": 1, "tls": "ClientHello"},
    {"data": 9, "seq": 1, "client": False, "tls": "ServerHello"},
    {"data": 9, "seq": 10, "client": False},
    {"data": 5, "seq": 6, "tls": "ChangeCipherSpec"},
]
TICKETS = {"data": 9, "seq": 19, "client": False, "tls": "encrypted data"}
ASKS = [{"data": 5, "seq": seq, "tls": "encrypted data"} for seq in (11, 16, 21)]
ANSWERS = {"data": 9, "seq": 28, "client": False, "tls": "encrypted data"}


@pytest.mark.parametrize(
    ("packets", "handshake", "first"),
    [
        ([*SECURED, TICKETS, *ASKS[:2], ANSWERS, ASKS[2]], 4, 8),
        ([*SECURED, *ASKS[:2], ANSWERS, ASKS[2]], 4, 7),
        ([*ASKS[:2], ANSWERS, ASKS[2]], 0, 3),
        (SECURED, 4, 4),
        ([], 0, 0),
    ],
)
def test_a_handshake_of_tls_is_no_exchange(packets: list[dict[str, Any]], handshake: int, first: int) -> None:
    found = tuple(packet(number, **each) for number, each in enumerate(packets, start=1))

    assert handshake_length(found) == handshake
    assert first_exchange(found) == found[:first]


def test_each_record_of_tls_is_told_and_a_long_one_once() -> None:
    said = ["ClientHello for shop.example offers h2", None, "alert unknown_ca", "encrypted data", "encrypted data"]
    sent = [packet(number, data=5, seq=5 * number, tls=tls) for number, tls in enumerate(said, start=1)]
    moments = packet_moments(sent, ("k6-1", "nginx"), "k6-1", "capture.pcap", lambda _number, _at: ((), None))

    assert [(each.event.text, each.label) for each in moments] == [
        (
            "k6-1 sends 10 bytes in 2 segments within 1.0 ms, TLS: ClientHello for shop.example offers h2",
            "ClientHello, 10 bytes in 2 packets",
        ),
        ("k6-1 sends 5 bytes, TLS: alert unknown_ca", "alert unknown_ca, 5 bytes"),
        (
            "k6-1 sends 10 bytes in 2 segments within 1.0 ms, TLS: encrypted data",
            "encrypted data, 10 bytes in 2 packets",
        ),
    ]
