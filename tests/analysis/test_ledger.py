"""The account of whole runs: who counted what, what every failure is put down to, and what is missing for it."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from jsonschema import Draft202012Validator

from analysis.derivation import analyse, judge
from analysis.diagnosis import health, joins
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.verdicts.ledger_file import Ledger
from formats import manifest
from lab.schema import schemas
from tests.analysis.clocks import Clock, set_clock
from tests.analysis.packets import ACK, FIN, RST, SYN, Capture, Connection, make_packets
from tests.analysis.support import (
    MEASURE_S,
    OTHERS,
    USERS,
    RunFolder,
    at_us,
    contents,
    make_access,
    make_capture,
    make_samples,
    role,
)

Record = dict[str, Any]
BACKEND = "172.18.0.2:8080"
SCHEMA = Draft202012Validator(schemas()["ledger.schema.json"])


@pytest.fixture
def run(run: RunFolder) -> RunFolder:
    run.manifest["slow_ms"] = 5_000
    run.predict("ledger.unexplained == 0", "ledger.cause.accept_queue_drop == 100", "ledger.identities.failed == 0")
    return run


def ledger(folder: Path) -> Record:
    content: Record = json.loads((folder / "derived" / "ledger.json").read_bytes())
    SCHEMA.validate(content)
    return content


def document(account: Ledger) -> Record:
    """A ledger as ledger.json would have it."""
    content: Record = json.loads(account.to_json())
    SCHEMA.validate(content)
    return content


def account(run: RunFolder) -> tuple[Record, list[str]]:
    """The ledger of a run, and the status of its predictions."""
    found = judge(run.write())
    return document(found.account), [each.status for each in found.predictions]


def holds(found: Record) -> dict[str, str]:
    return {each["id"]: each["holds"] for hop in found["hops"] for each in hop["identities"]}


def another_connection(run: RunFolder, user: int) -> tuple[float, Connection]:
    """In the capture, a connection of a user in place of its own, without a packet so far, and the second it begins."""
    ports = ((40_000 + user).to_bytes(2), (8080).to_bytes(2))
    own = {ports[0] + ports[1], ports[1] + ports[0]}
    others = [each for each in make_packets().packets if not any(pair in each[1] for pair in own)]
    capture = run.captures["backend-1"] = Capture(others)
    second = MEASURE_S + 0.0001 + 0.01 * (user - 1)
    return second, Connection(capture, f"172.18.0.3:{40_000 + user}", BACKEND, isn=1000 * user)


def reset_of_user_4(run: RunFolder) -> None:
    """User 4 was connected at once, and its request ended with a RST after 0.6 s."""
    request, dial = run.clients["k6-1"].requests[3], run.clients["k6-1"].dials[3]
    dial |= {"error": None, "error_kind": None, "duration_us": 150}
    request |= {"remote": BACKEND, "error_code": 1220, "error": "connection reset by peer"}
    request |= {"end_us": request["time_us"] + 600_000}


def test_every_failure_of_the_overflow_is_a_dropped_syn_and_all_observers_agree(run: RunFolder) -> None:
    found, predictions = account(run)

    assert found["lacks"] == []
    assert found["requests"] == {"total": 103, "ok": 3, "failed": 100, "slow": 2}
    assert (found["unexplained"], found["unexplained_requests"]) == (0, [])
    assert found["causes"] == {"accept-queue-drop": 100, "waited-in-accept-queue": 2}
    (hop,) = found["hops"]
    assert (hop["from"], hop["to"], hop["observers"]) == ("k6", "backend", ["backend-1"])
    assert hop["dropped_syns"] == {"recovered": 0, "lost": 500}
    assert set(holds(found).values()) == {"true"}
    assert predictions == ["true"] * 3


def test_the_evidence_names_the_records(run: RunFolder) -> None:
    folder = run.write()
    analyse(folder)
    requests = duckdb.read_parquet(str(folder / "derived" / "requests.parquet"))
    found = requests.filter("id IN (1, 2, 50)").project("cause, evidence, flow_id, flow_syn_count").fetchall()

    assert found[0] == (None, None, 1, 1)
    assert found[1][0] == "waited-in-accept-queue"
    assert found[1][1].startswith("flow backend-1/2: complete at 0.010 s, in the accept queue of backend-1 until 20.9")
    assert found[2][0::2] == ("accept-queue-drop", 50)
    assert found[2][1] == (
        "dial k6-1/50 from 172.18.0.3:40050 to 172.18.0.2:8080 began at 0.490 s and failed after 30.000 s (timeout);"
        " flow backend-1/50: 5 SYNs at 0.490 s, 1.490 s, 3.490 s, 7.490 s, 15.490 s, none answered; around each, the"
        " accept queue of backend-1 held 2 (limit 1) and its kernel counted an overflow"
    )


def test_the_same_raw_files_give_the_same_bytes_wherever_they_lie(run: RunFolder, tmp_path: Path) -> None:
    folder = run.write()
    analyse(folder)
    names = {"ledger.json", "requests.parquet", "flows.parquet", "timeline.parquet", "verdict.json", "figures.json"}
    first = {path.name: path.read_bytes() for path in (folder / "derived").iterdir()}
    assert names <= set(first)

    elsewhere = tmp_path / "it's [an]other*place"
    elsewhere.mkdir()
    for name in ("manifest.json", "raw"):
        (shutil.copytree if name == "raw" else shutil.copy)(folder / name, elsewhere / name)
    for each in (folder, elsewhere):
        analyse(each)
        assert {path.name: path.read_bytes() for path in (each / "derived").iterdir()} == first


def test_the_timeline_adds_up_to_the_counters(run: RunFolder) -> None:
    folder = run.write()
    analyse(folder)
    found = duckdb.read_parquet(str(folder / "derived" / "timeline.parquet")).aggregate(
        'instance, sum("TcpExt.ListenDrops") AS drops, max(listen_depth) AS depth, sum(requests_begun) AS begun,'
        " sum(requests_failed) AS failed, count(*) AS steps, min(ticks) AS ticks"
    )

    assert sorted(found.fetchall()) == [
        ("backend-1", 500, 2, None, None, 520, 1),
        ("k6-1", 0, None, USERS, OTHERS, 520, 1),
    ]


def test_a_lost_syn_that_a_later_one_recovered_is_distinguished_from_a_fatal_one(run: RunFolder) -> None:
    # User 2 came in with its second SYN: a second late, and no failure.
    second, connection = another_connection(run, 2)
    connection.syns(second).handshake(second + 1).ask(second + 1.001).answer(second + 22.07)
    run.lines["backend-1/capture.json"] = [make_capture(len(connection.capture.packets))]
    found, _ = account(run)

    assert found["hops"][0]["dropped_syns"] == {"recovered": 1, "lost": 500}
    # The kernels of this run know of 500 drops and 400 SYNs sent again.
    assert {id_ for id_, status in holds(found).items() if status == "false"} == {"syns-dropped", "syns-repeated"}


def test_a_last_ack_that_met_a_full_queue_is_one_of_the_drops(run: RunFolder) -> None:
    connection = Connection(run.captures["backend-1"], "172.18.0.3:49000", BACKEND, isn=90_000)
    connection.handshake(MEASURE_S + 5)
    isn = connection.isn
    # The server's SYN-ACK comes again after a second, and the client's ACK with it.
    connection.capture.tcp(MEASURE_S + 6, BACKEND, connection.client, 2 | ACK, seq=isn + 5_000, ack=isn + 1)
    connection.capture.tcp(MEASURE_S + 6.0001, connection.client, BACKEND, ACK, seq=isn + 1, ack=isn + 5_001)
    run.lines["backend-1/capture.json"] = [make_capture(len(run.captures["backend-1"].packets))]
    found, _ = account(run)
    drops = next(each for each in found["hops"][0]["identities"] if each["id"] == "syns-dropped")

    assert (drops["left"]["value"], drops["right"]["value"], drops["right"]["value_max"]) == (500, 501, None)
    assert found["hops"][0]["dropped_later"] == 1
    assert (drops["difference"], drops["holds"]) == (-1, "false")


@pytest.mark.parametrize(("counted", "status"), [(0, "false"), (1, "true"), (5, "true"), (6, "false")])
def test_the_kernel_counts_sockets_that_wait_for_the_other_s_fin_among_those_in_time_wait(
    run: RunFolder, counted: int, status: str
) -> None:
    # The client closed five connections first; the server closed one of them, and holds the others.
    for number in range(5):
        connection = Connection(run.captures["backend-1"], f"172.18.0.3:{49_000 + number}", BACKEND, isn=90_000)
        connection.handshake(MEASURE_S + 5)
        if number == 0:
            connection.close_by_client(MEASURE_S + 20)
        else:
            connection.half_close_by_client(MEASURE_S + 20)
    run.lines["backend-1/capture.json"] = [make_capture(len(run.captures["backend-1"].packets))]
    for tick in run.samples["k6-1"].tick_between(MEASURE_S + 20.05, MEASURE_S + 60):
        tick["counters"]["sockstat.TCP.tw"] = counted
    found, _ = account(run)

    assert holds(found)["time-wait-k6-1"] == status


@pytest.mark.parametrize(("counted", "status"), [(1, "false"), (2, "true"), (3, "false")])
def test_sockets_that_overflowed_the_limit_are_not_in_time_wait(run: RunFolder, counted: int, status: str) -> None:
    for number in range(5):
        connection = Connection(run.captures["backend-1"], f"172.18.0.3:{49_000 + number}", BACKEND, isn=90_000)
        connection.handshake(MEASURE_S + 5).close_by_client(MEASURE_S + 20 + number)
    run.lines["backend-1/capture.json"] = [make_capture(len(run.captures["backend-1"].packets))]
    for tick in run.samples["k6-1"].tick_between(MEASURE_S + 22.05, MEASURE_S + 60):
        tick["counters"] |= {"sockstat.TCP.tw": counted, "TcpExt.TCPTimeWaitOverflow": 3}
    found, _ = account(run)

    assert holds(found)["time-wait-k6-1"] == status


def test_a_reset_of_a_connection_by_a_syn_cookie_is_not_put_down_to_a_server_that_may_never_have_had_it(
    run: RunFolder,
) -> None:
    # User 4's SYN was answered with a cookie; its ACK met a full queue, and later a RST came.
    second, connection = another_connection(run, 4)
    connection.handshake(second).reset_by_server(second + 0.6)
    run.lines["backend-1/capture.json"] = [make_capture(len(connection.capture.packets))]
    reset_of_user_4(run)
    for tick in run.samples["backend-1"].tick_between(MEASURE_S + 0.05, MEASURE_S + 60):
        tick["counters"] |= {"TcpExt.TCPReqQFullDoCookies": 1, "TcpExt.SyncookiesRecv": 5}
    found, _ = account(run)
    identities = {each["id"]: each for each in found["hops"][0]["identities"]}

    assert found["unexplained_requests"] == [
        {
            "request": "k6-1/4",
            "outcome": "failed",
            "why": "its SYN may have been answered with a cookie, so it is unknown whether the server ever had it",
        }
    ]
    # The server's kernel accepted three, and dropped five packets of user 4 whatever the capture says.
    assert (identities["accepted"]["right"]["value"], identities["accepted"]["right"]["value_max"]) == (3, 4)
    assert identities["accepted"]["holds"] == identities["syns-dropped"]["holds"] == "true"


def test_cookies_that_were_sent_excuse_no_connection_that_the_server_surely_had(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].tick_between(MEASURE_S + 0.05, MEASURE_S + 60):
        tick["counters"] |= {"TcpExt.TCPReqQFullDoCookies": 5, "TcpExt.SyncookiesRecv": 5}
        tick["counters"]["Tcp.PassiveOpens"] -= 1
    found, _ = account(run)

    assert holds(found)["accepted"] == "false"


def handshake_of_user_2(run: RunFolder) -> tuple[float, Capture, Connection]:
    """The capture with another connection of user 2, which has its handshake so far, at that second."""
    second, connection = another_connection(run, 2)
    return second, connection.capture, connection.handshake(second)


@pytest.mark.parametrize(("after_s", "status"), [(0.000_12, "true"), (0.0003, "false")])
def test_a_connection_whose_ack_and_data_came_at_once_may_count_twice(
    run: RunFolder, after_s: float, status: str
) -> None:
    second, _, connection = handshake_of_user_2(run)
    connection.ask(second + after_s).answer(second + 22.0796)
    for tick in run.samples["backend-1"].tick_between(MEASURE_S + 0.05, MEASURE_S + 60):
        tick["counters"]["Tcp.PassiveOpens"] += 1
    found, _ = account(run)

    assert holds(found)["accepted"] == status


def test_a_capture_that_cannot_be_read_again_shows_no_connection_that_never_entered(run: RunFolder) -> None:
    second, capture, connection = handshake_of_user_2(run)
    # The SYN-ACK comes twice, so that the packets would have to tell when the connection came into the queue.
    capture.tcp(second + 1, BACKEND, connection.client, SYN | ACK, seq=connection.isn + 5_000, ack=connection.isn + 1)
    connection.ask(second + 1.001).answer(second + 22.0796)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    raw = RawRun(run.write(), manifest.load_manifest(run.folder))
    assert isinstance(raw.window, Window)
    found = health.examine(raw)
    (run.folder / "raw/backend-1/collector/capture.pcap").unlink()
    joined = joins.join(raw, found, raw.window)

    assert joined.rows("SELECT count(*) AS candidates FROM candidates") == [{"candidates": 1}]
    assert joined.rows("SELECT id FROM connections WHERE established AND NOT entered") == []


def foreign() -> bytes:
    """A capture of another run: the same packets, a day earlier."""
    capture = make_packets()
    return Capture([(time_us - 86_400_000_000, frame) for time_us, frame in capture.packets]).content()


def test_a_connection_that_only_the_client_knew_of_is_an_accept_queue_drop(run: RunFolder) -> None:
    # User 4's SYN was answered, then its ACK, its request and a copy of that met a full queue; at last a RST.
    second, connection = another_connection(run, 4)
    capture = connection.handshake(second).capture
    for after_s in (0.001, 0.2, 0.6):
        capture.tcp(second + after_s, connection.client, BACKEND, ACK, seq=4_001, ack=9_001, data=120)
    capture.tcp(second + 0.6001, BACKEND, connection.client, RST, seq=9_001)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    reset_of_user_4(run)
    folder = run.write()
    analyse(folder)
    requests = duckdb.read_parquet(str(folder / "derived" / "requests.parquet"))

    assert requests.filter("id = 4").project("cause, evidence").fetchall() == [
        (
            "accept-queue-drop",
            "flow backend-1/4: the ACK of 0.030 s, and all data, 3 packets, met a full accept queue of backend-1",
        )
    ]
    assert ledger(folder)["hops"][0]["dropped_later"] == 3


def test_a_connection_that_a_full_queue_reset_is_one_only_if_the_server_resets_so(run: RunFolder) -> None:
    # User 4's SYN was answered, and its ACK with a RST at once.
    second, connection = another_connection(run, 4)
    capture = connection.handshake(second).capture
    capture.tcp(second + 0.0005, BACKEND, connection.client, RST, seq=9_001)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    request, dial = run.clients["k6-1"].requests[3], run.clients["k6-1"].dials[3]
    dial |= {"error": "connection reset by peer", "error_kind": "reset", "duration_us": 150}
    request |= {"error_code": 1220, "error": "connection reset by peer", "end_us": request["time_us"] + 200}
    run.manifest["sysctls"]["backend-1"]["net.ipv4.tcp_abort_on_overflow"] = "1"
    found, _ = account(run)

    assert found["causes"]["accept-queue-reset"] == 1
    assert found["hops"][0]["dropped_later"] == 1
    assert holds(found)["dials-made"] == "true"

    run.manifest["sysctls"]["backend-1"]["net.ipv4.tcp_abort_on_overflow"] = "0"
    found, _ = account(run)

    assert "accept-queue-reset" not in found["causes"]
    assert found["hops"][0]["dropped_later"] == 0


def test_syns_that_met_a_full_syn_queue_are_distinguished_from_overflows(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].ticks:
        tick["counters"]["TcpExt.TCPReqQFullDrop"] = tick["counters"].pop("TcpExt.ListenOverflows")
        tick["counters"]["TcpExt.ListenOverflows"] = 0
    found, _ = account(run)

    assert found["causes"]["syn-queue-drop"] == OTHERS
    assert set(holds(found).values()) == {"true"}


def test_where_a_syn_may_have_met_either_full_queue_neither_is_proven(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].ticks:
        tick["counters"]["TcpExt.TCPReqQFullDrop"] = tick["counters"]["TcpExt.ListenOverflows"]
    found, _ = account(run)

    assert found["unexplained"] == OTHERS
    assert set(found["causes"]) == {"waited-in-accept-queue"}


def test_a_syn_that_came_upon_a_former_connection_in_time_wait_is_not_lost(run: RunFolder) -> None:
    capture = run.captures["backend-1"]
    former = Connection(capture, "172.18.0.3:49000", BACKEND, isn=90_000).handshake(MEASURE_S + 20)
    former.ask(MEASURE_S + 20.1).answer(MEASURE_S + 20.2).close_by_server(MEASURE_S + 20.3)
    Connection(capture, "172.18.0.3:49000", BACKEND, isn=9_000_000).syns(MEASURE_S + 22).refused(MEASURE_S + 22.011)
    # The ACK of the former connection, and the client's RST for it.
    capture.tcp(MEASURE_S + 22.00003, BACKEND, "172.18.0.3:49000", ACK, seq=95_202, ack=90_122)
    capture.tcp(MEASURE_S + 22.00005, "172.18.0.3:49000", BACKEND, RST, seq=90_122)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    found, _ = account(run)

    assert holds(found)["syns-dropped"] == "true"


def test_a_dial_held_half_open_on_purpose_is_no_failed_request_and_its_syns_are_accounted_for(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    client.dials[49] |= {"error": "held half open", "error_kind": "half-open"}
    del client.requests[49]
    found, _ = account(run)

    assert found["causes"]["accept-queue-drop"] == OTHERS - 1
    assert found["unexplained_requests"] == []
    assert set(holds(found).values()) == {"true"}


def test_a_connection_that_a_copy_of_its_data_made_waited_for_that(run: RunFolder) -> None:
    # User 2's ACK and request met a full queue; the copy a second later made the connection.
    second, capture, connection = handshake_of_user_2(run)
    capture.tcp(second + 0.002, connection.client, BACKEND, ACK, seq=2_001, ack=7_001, data=120)
    connection.ask(second + 15).answer(second + 22.07)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    found, _ = account(run)

    assert found["causes"]["waited-for-ack-retry"] == 1
    assert found["hops"][0]["dropped_later"] == 2


def test_a_connection_that_a_repeated_syn_ack_made_waited_for_that(run: RunFolder) -> None:
    # User 2's ACK and request met a full queue, and so did a copy of the request. The ACK that answered the server's
    # second SYN-ACK found room; the server lost its patience and closed before the request was sent again.
    second, capture, connection = handshake_of_user_2(run)
    for copy in (0.001, 0.201):
        capture.tcp(second + copy, connection.client, BACKEND, ACK, seq=2_001, ack=7_001, data=120)
    capture.tcp(second + 1.0, BACKEND, connection.client, SYN | ACK, seq=7_000, ack=2_001)
    capture.tcp(second + 1.0001, connection.client, BACKEND, ACK, seq=2_121, ack=7_001)
    capture.tcp(second + 21.0, BACKEND, connection.client, FIN | ACK, seq=7_001, ack=2_001)
    capture.tcp(second + 21.0001, connection.client, BACKEND, ACK, seq=2_121, ack=7_002)
    connection.answered += 1
    connection.ask(second + 22).answer(second + 22.07)
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    found, _ = account(run)

    assert found["hops"][0]["dropped_later"] == 3


PCAPS: dict[str, tuple[bytes | None, str]] = {
    "missing": (None, "capture/backend-1: capture.pcap: missing"),
    "empty": (b"", "it is empty"),
    "without packets": (Capture().content(), "capture.pcap holds 0 packets, capture.json says 521"),
    "cut": (make_packets().content()[:-30], "capture.pcap is unreadable from byte"),
    "no capture": (b"GET / HTTP/1.1\r\n" * 20, "not a capture that can be read"),
    "of another time": (foreign(), "capture.pcap has packets of another time than capture.json"),
}


@pytest.mark.parametrize("what", PCAPS)
def test_a_bad_capture_is_reported_and_leaves_unknown_what_rests_on_it(run: RunFolder, what: str) -> None:
    content, message = PCAPS[what]
    folder = run.write()
    path = folder / "raw" / "backend-1" / "collector" / "capture.pcap"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    verdict = judge(folder)
    found = document(verdict.account)

    assert any(message in each for each in found["lacks"]), found["lacks"]
    assert [each.status for each in verdict.predictions] == ["unknown"] * 3
    unknown = {id_ for id_, status in holds(found).items() if status == "unknown"}
    assert unknown == set(holds(found)) - {"drops-by-overflow", "dials-without-port"}
    assert holds(found)["drops-by-overflow"] == "true"
    assert found["hops"][0]["dropped_syns"] == {"recovered": None, "lost": None}


def test_a_cut_capture_proves_no_cause_by_what_is_not_in_it(run: RunFolder) -> None:
    whole = make_packets().packets
    run.captures["backend-1"] = Capture(sorted(whole)[: len(whole) // 2])
    found, predictions = account(run)

    assert found["causes"] == {}
    assert found["unexplained"] == 102
    assert {each["why"] for each in found["unexplained_requests"]} == {"there is no complete capture of its connection"}
    assert predictions == ["unknown"] * 3


def test_a_capture_that_ended_at_its_size_limit_proves_what_was_over_by_then(run: RunFolder) -> None:
    # User 2 was answered after 22 s; the dials of those who failed took 30 s.
    packets = [each for each in make_packets().packets if each[0] < at_us(MEASURE_S + 25)]
    run.captures["backend-1"] = Capture(packets)
    Connection(run.captures["backend-1"], "172.18.0.3:49000", BACKEND, isn=90_000).syns(MEASURE_S + 25)
    run.lines["backend-1/capture.json"] = [make_capture(len(packets)) | {"truncated": True}]
    found, predictions = account(run)

    assert found["causes"] == {"waited-in-accept-queue": 1}
    assert found["unexplained"] == 101
    assert predictions == ["unknown"] * 3


@pytest.mark.parametrize("lines", [None, 0, 40], ids=["without k6's record", "an empty one", "one that was cut"])
def test_without_a_whole_record_of_requests_nobody_knows_how_many_are_unexplained(
    run: RunFolder, lines: int | None
) -> None:
    run.predict("listen.backend.depth.max == 2")
    folder = run.write()
    path = folder / "raw" / "k6-1" / "role" / "requests.jsonl"
    path.unlink() if lines is None else path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    verdict = judge(folder)
    found = document(verdict.account)

    if not lines:
        assert (found["requests"], found["unexplained"], found["causes"]) == (None, None, {})
    assert any(each.startswith("k6/k6-1: requests.jsonl") for each in found["lacks"])
    assert verdict.verdict.verdict == "inconclusive"
    told = "the number of unexplained requests is unknown; the scenario tolerates 0"
    assert told in [each.message for each in verdict.problems]


def test_a_capture_with_kernel_drops_proves_what_it_holds_and_nothing_is_predicted_on_it(run: RunFolder) -> None:
    run.lines["backend-1/capture.json"][0]["packets_dropped_by_kernel"] = 3
    found, predictions = account(run)

    assert found["lacks"] == ["capture/backend-1: the kernel dropped 3 packets"]
    assert predictions == ["unknown"] * 3
    assert holds(found)["syns-dropped"] == "unknown"


def test_without_a_capture_no_failure_is_explained(run: RunFolder) -> None:
    run.set_knobs(capture__mode="off")
    del run.captures["backend-1"], run.lines["backend-1/capture.json"]
    found, predictions = account(run)

    assert found["lacks"] == ["no packet was captured from k6 → backend"]
    assert found["unexplained"] == 102
    assert found["unexplained_requests"][1] == {
        "request": "k6-1/3",
        "outcome": "slow",
        "why": "there is no complete capture of its connection",
    }
    assert predictions == ["unknown"] * 3


def test_where_nothing_failed_there_is_nothing_to_explain_even_without_a_capture(run: RunFolder) -> None:
    run.manifest["slow_ms"] = None
    run.clients["k6-1"].requests = run.clients["k6-1"].requests[:3]
    run.predict("ledger.unexplained == 0 and ledger.requests.failed == 0 and ledger.cause.slow_handler == 0")
    run.set_knobs(capture__mode="off", load__users=3)
    del run.captures["backend-1"], run.lines["backend-1/capture.json"]

    assert account(run)[1] == ["true"]


def test_without_samples_around_its_syns_a_failure_is_unexplained(run: RunFolder) -> None:
    run.samples["backend-1"].lose_ticks(MEASURE_S + 2, MEASURE_S + 60)
    found, predictions = account(run)

    assert found["causes"] == {}
    assert found["unexplained_requests"][2]["why"] == "no samples of its server around its SYNs"
    assert predictions == ["unknown"] * 3


def test_syns_that_met_no_overflow_are_no_accept_queue_drop(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].ticks:
        tick["counters"] |= {"TcpExt.ListenOverflows": 7, "TcpExt.ListenDrops": 7}
    found, predictions = account(run)

    assert found["causes"] == {"connect-timeout": 100, "waited-in-accept-queue": 2}
    assert holds(found)["syns-dropped"] == "false"
    assert predictions == ["true", "false", "false"]


def drop_for_another_reason(run: RunFolder) -> None:
    for tick in run.samples["backend-1"].ticks:
        tick["counters"]["TcpExt.ListenOverflows"] = 7


def test_drops_for_another_reason_are_no_overflow(run: RunFolder) -> None:
    drop_for_another_reason(run)
    found, _ = account(run)

    assert found["unexplained"] == 100
    assert found["unexplained_requests"][0]["why"] == "of its 5 lost SYNs, 0 are proven to have met a full accept queue"
    assert holds(found)["drops-by-overflow"] == "false"


@pytest.mark.parametrize(("tolerated", "result"), [(100, "reproduced"), (99, "inconclusive")])
def test_more_unexplained_requests_than_the_scenario_tolerates_reproduce_nothing(
    run: RunFolder, tolerated: int, result: str
) -> None:
    drop_for_another_reason(run)
    run.predict("client.requests.failed == 100", "ledger.identities.failed == 1")
    run.manifest["tolerance"]["unexplained"] = tolerated
    verdict = judge(run.write())

    assert verdict.verdict.verdict == result
    told = [each.message for each in verdict.problems]
    assert ("100 requests are unexplained; the scenario tolerates 99" in told) == (result == "inconclusive")


@pytest.mark.parametrize(
    ("predictions", "result"),
    [
        (["client.requests.failed == 100"], "inconclusive"),
        (["client.requests.failed == 99"], "not-reproduced"),
        (["client.requests.failed == 100", "ledger.identities.failed == 1"], "reproduced"),
        (["client.requests.failed == 100", "ledger.identities.failed == 0"], "not-reproduced"),
        (["ledger.identities.holding >= 1"], "inconclusive"),
        (["client.requests.failed == 100", "ledger.identities.unknown == 0"], "inconclusive"),
    ],
)
def test_observers_who_contradict_each_other_reproduce_nothing(
    run: RunFolder, predictions: list[str], result: str
) -> None:
    drop_for_another_reason(run)
    run.predict(*predictions)
    run.manifest["tolerance"]["unexplained"] = 100
    verdict = judge(run.write())

    assert verdict.verdict.verdict == result
    told = [each.message for each in verdict.problems if each.instrument == "ledger"]
    assert len(told) == (not any("identities.failed" in each for each in predictions))
    assert all("contradict each other" in each and "drops-by-overflow: " in each for each in told)


def test_a_prediction_about_identities_that_does_not_apply_leaves_the_contradiction(run: RunFolder) -> None:
    drop_for_another_reason(run)
    run.predict("client.requests.failed == 100", "ledger.identities.failed == 1")
    run.manifest["predictions"][1]["when"] = "load.users < 3"
    run.manifest["tolerance"]["unexplained"] = 100
    judged = judge(run.write())

    assert [each.status for each in judged.predictions] == ["true", "not-applicable"]
    assert judged.verdict.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("when", "expression", "status", "result"),
    [
        ("load.users == 103", "client.requests.failed == 100", "true", "reproduced"),
        ("load.users == 103", "client.requests.failed == 99", "false", "not-reproduced"),
        ("load.users == 3", "client.requests.failed == 99", "not-applicable", "inconclusive"),
        ("model.users_failed > 0", "client.requests.failed == 100", "true", "reproduced"),
        ("load.nothing == 3", "client.requests.failed == 100", "unknown", "inconclusive"),
    ],
)
def test_a_prediction_about_other_settings_is_neither_for_nor_against(
    run: RunFolder, when: str, expression: str, status: str, result: str
) -> None:
    run.predict(expression, when=when)
    judged = judge(run.write())

    assert ([each.status for each in judged.predictions], judged.verdict.verdict) == ([status], result)
    told = [each.message for each in judged.problems]
    assert ("no prediction is about these settings" in told) == (status == "not-applicable")


def test_a_prediction_that_does_not_apply_leaves_the_verdict_to_the_others(run: RunFolder) -> None:
    run.predict("client.requests.failed == 100", "client.requests.failed == 0")
    run.manifest["predictions"][1]["when"] = "load.users < 3"
    judged = judge(run.write())

    assert [each.status for each in judged.predictions] == ["true", "not-applicable"]
    assert judged.verdict.verdict == "reproduced"
    assert judged.predictions[1].why == "it is about other settings: load.users < 3"


def test_a_clock_that_is_set_back_leaves_unknown_what_rests_on_time(run: RunFolder) -> None:
    set_clock(run, Clock(((MEASURE_S + 12, -0.9),)))
    found, predictions = account(run)

    assert any(each.startswith("clock: was set back, and showed ") for each in found["lacks"])
    assert predictions == ["unknown"] * 3
    assert holds(found)["syns-dropped"] == "unknown"


def test_a_k6_that_died_half_way_is_reported_and_what_it_recorded_is_explained(run: RunFolder) -> None:
    client = run.clients["k6-1"]
    client.ended = False
    client.requests, client.dials = client.requests[:40], client.dials[:40]
    run.manifest["exits"]["k6-1"] = 137
    found, predictions = account(run)

    assert found["requests"] == {"total": 40, "ok": 3, "failed": 37, "slow": 2}
    assert found["causes"] == {"accept-queue-drop": 37, "waited-in-accept-queue": 2}
    assert any("k6 did not end cleanly, so requests may be missing" in each for each in found["lacks"])
    assert predictions == ["unknown"] * 3
    assert holds(found)["dials-unanswered"] == "unknown"
    assert holds(found)["syns-dropped"] == "true"


@pytest.mark.parametrize("status", ["aborted", "failed"])
def test_a_run_that_broke_off_has_an_account_of_what_there_is(run: RunFolder, status: str) -> None:
    run.manifest |= {"status": status, "reason": "Ctrl-C"}
    found, predictions = account(run)

    assert found["lacks"] == [f"the run is {status}, not complete: Ctrl-C"]
    assert found["causes"] == {"accept-queue-drop": 100, "waited-in-accept-queue": 2}
    assert set(holds(found).values()) == {"unknown"}
    assert predictions == ["unknown"] * 3


def test_a_run_that_never_measured_has_no_account_and_no_records(run: RunFolder) -> None:
    folder = run.write()
    analyse(folder)
    run.manifest |= {"status": "aborted", "phases": []}
    analyse(run.write())
    found = ledger(folder)

    assert (found["requests"], found["unexplained"], found["causes"], found["hops"]) == (None, None, {}, [])
    assert not list((folder / "derived").glob("*.parquet"))


def test_the_answers_of_a_proxy_are_those_that_the_client_read(proxied_run: RunFolder) -> None:
    found, _ = account(proxied_run)
    answers = {
        each["id"]: (each["left"]["value"], each["right"]["value"], each["holds"])
        for each in found["hops"][0]["identities"]
        if each["id"].startswith("answers")
    }

    # The tests' nginx answered one request with 502 that no client sent; its line before the measurement counts not.
    assert answers["answers-2xx"] == (3, 3, "true")
    assert answers["answers-5xx"] == (0, 1, "false")
    # No upgrade was asked for, so there is nothing to compare.
    assert "answers-1xx" not in answers


def test_an_upgrade_that_a_proxy_logged_is_one_that_the_client_has(proxied_run: RunFolder) -> None:
    proxied_run.lines["nginx/access.jsonl"].append(make_access(30.0, 101))
    found, _ = account(proxied_run)

    assert holds(found)["answers-1xx"] == "false"


@pytest.mark.parametrize("status", [408, 499])
def test_a_client_that_went_or_was_too_slow_is_no_answer(proxied_run: RunFolder, status: int) -> None:
    proxied_run.lines["nginx/access.jsonl"].append(make_access(30.0, status))
    found, _ = account(proxied_run)

    assert holds(found)["answers-4xx"] == "true"


def test_a_database_behind_the_server_changes_no_cause(run: RunFolder) -> None:
    alone = analyse(run.write()).model_dump(mode="json")
    before = ledger(run.folder)
    database = role("server", "db", port=5432)
    run.manifest |= {
        "path": ["k6", "backend", "db"],
        "roles": contents("k6", "backend") | {"db": database},
    }
    run.manifest["instances"]["db"] = ["db-1"]
    run.manifest["addresses"]["db-1"] = ["172.18.0.9"]
    run.samples["db-1"] = make_samples("db-1", lambda _: ({}, 0), "postgres", port=5432)
    behind = analyse(run.write()).model_dump(mode="json")
    after = ledger(run.folder)

    assert after["causes"] == before["causes"]
    first, second = ({each["id"]: each["holds"] for each in of["hops"][0]["identities"]} for of in (before, after))
    assert first == second
    assert (after["hops"][1]["from"], after["hops"][1]["to"]) == ("backend", "db")
    # The database's samples have no counters here, so the third one, on all identities, is unknown.
    told = [row["status"] for row in alone["predictions"]]
    assert [row["status"] for row in behind["predictions"]] == [*told[:2], "unknown"]


@pytest.mark.parametrize(("pages", "cause"), [(False, "time-in-server"), (True, "unexplained")])
def test_the_time_in_a_server_that_tells_nothing_of_itself_has_a_cause(
    run: RunFolder, cause: str, *, pages: bool
) -> None:
    """One that has a page of its threads must tell by it what it did; here the page is lost."""
    run.manifest["roles"] = contents("k6", "backend")
    if not pages:
        run.manifest["roles"]["backend"]["scrape"] = {}
    del run.lines["backend-1/tomcat.jsonl"]
    run.manifest["slow_ms"] = 500
    found, _ = account(run)

    causes = {"accept-queue-drop": 100, "waited-in-accept-queue": 2, **({} if pages else {cause: 1})}
    assert (found["causes"], found["unexplained"]) == (causes, 1 if pages else 0)


def test_connections_that_carried_streams_are_counted(run: RunFolder) -> None:
    for request in run.clients["k6-1"].requests:
        request["protocol"] = "http2"
    found, _ = account(run)
    assert found["streams"]["requests"] > 0
