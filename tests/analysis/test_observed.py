"""A system that the lab only watched: the ledger of its connections, by packets, queue and counters."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis.derivation import analyse
from analysis.reports import run_report
from analysis.verdicts.connections_file import COUNTERS, STEPS, Connections
from analysis.verdicts.derived import DerivedError
from tests.analysis.clocks import Clock, set_clock
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import END_S, MEASURE_S, OTHERS, SERVED_MS, SYNS_S, RunFolder, at_us, make_capture
from tests.analysis.whole import observed

SERVER = "172.18.0.2:8080"
LISTENER = "backend-1:8080"


@pytest.fixture
def watched(run: RunFolder) -> RunFolder:
    return observed(run)


def account(run: RunFolder) -> dict[str, Any]:
    analyse(run.write())
    found: dict[str, Any] = json.loads((run.folder / Connections.file).read_text())
    return found


def captured(run: RunFolder, capture: Capture) -> RunFolder:
    run.captures["backend-1"] = capture
    run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets))]
    return run


def of_listener(found: dict[str, Any]) -> dict[str, Any]:
    (one,) = [each for each in found["targets"][0]["servers"] if each["server"] == LISTENER]
    return dict(one)


def quiet(run: RunFolder, depth: int = 0) -> None:
    """Let the kernel count nothing, and the queue hold as many connections as it is said."""
    for tick in run.samples["backend-1"].ticks:
        tick["counters"] |= {"TcpExt.ListenOverflows": 7, "TcpExt.ListenDrops": 7}
        tick["listen"][0] |= {"drops": 7, "depth": depth if tick["time_us"] > at_us(MEASURE_S + 1) else 0}


def connection(capture: Capture, number: int = 1) -> Connection:
    return Connection(capture, f"172.18.0.3:{41_000 + number}", SERVER, isn=7_000 * number)


@pytest.mark.parametrize("ahead_s", [-40, 3])
def test_a_node_s_clock_may_differ_from_the_lab_s(watched: RunFolder, ahead_s: int) -> None:
    by_one_clock = account(watched)
    ahead_us = ahead_s * 1_000_000
    for phase in watched.manifest["phases"]:
        phase["start_us"] -= ahead_us
        phase["end_us"] -= ahead_us
    watched.manifest["nodes"] = {"backend-1": "node-2"}
    shown = [at_us(MEASURE_S), at_us(END_S)]
    looks = [(each - ahead_us - 50_000, each, each - ahead_us + 50_000) for each in shown]
    watched.manifest["clocks"] = [
        {"instance": "backend-1", "asked_us": asked, "shown_us": each, "told_us": told} for asked, each, told in looks
    ]
    found = account(watched)
    # The window begins earlier, by as much as nobody knows of the two clocks.
    full_percent = [each["targets"][0]["listeners"][0].pop("full_percent") for each in (found, by_one_clock)]
    assert full_percent[0] == pytest.approx(full_percent[1], abs=1)
    # It begins earlier for the same reason.
    assert abs(found.pop("start_us") - by_one_clock.pop("start_us")) < 1000
    assert found == by_one_clock


def test_each_client_that_a_full_queue_shut_out_is_counted_and_has_the_cause(watched: RunFolder) -> None:
    found = account(watched)
    server = of_listener(found)
    assert server["outcomes"]["never-answered"] == OTHERS
    assert sum(server["outcomes"].values()) == OTHERS + len(SERVED_MS)
    assert server["causes"]["accept-queue-drop"] == OTHERS
    assert found["unexplained"] == 0
    (listener,) = found["targets"][0]["listeners"]
    assert (listener["limit"], listener["overflows"]) == (1, OTHERS * len(SYNS_S))


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_that_is_set_leaves_the_account_as_it_was(watched: RunFolder, step_s: int) -> None:
    wanted = account(watched)
    set_clock(watched, Clock(((30, step_s),)))
    assert account(watched) == wanted


def test_the_estimator_s_bounds_have_the_true_number_in_them(watched: RunFolder) -> None:
    (by_ladder,) = account(watched)["failed"]
    assert (by_ladder["failed"], by_ladder["least"], by_ladder["most"]) == (OTHERS, OTHERS, OTHERS)
    watched.manifest["observed"]["connect_timeout_ms"] = 30_000
    (by_timeout,) = account(watched)["failed"]
    assert by_timeout["least"] <= OTHERS <= by_timeout["most"]


def test_a_client_that_gave_up_earlier_moves_the_estimator_s_upper_bound(watched: RunFolder) -> None:
    capture = watched.captures["backend-1"]
    del capture.packets[-2:]  # its last SYNs
    (failed,) = account(captured(watched, capture))["failed"]
    assert failed["rests_on"].startswith(f"the 3 to {len(SYNS_S)} SYNs ")
    assert (failed["least"], failed["most"]) == (OTHERS, len(SYNS_S) * OTHERS // 3)


def test_without_packets_the_estimator_needs_the_clients_time_out(watched: RunFolder) -> None:
    watched.manifest["observed"]["capture"] = "off"
    watched.captures.clear()
    watched.lines.clear()
    found = account(watched)
    (failed,) = found["failed"]
    assert failed["failed"] is None
    assert failed["most"] is None
    assert "--connect-timeout" in failed["rests_on"]
    assert found["unexplained"] is None
    assert "no packet was captured" in found["lacks"][0]
    watched.manifest["observed"]["connect_timeout_ms"] = 30_000
    (failed,) = account(watched)["failed"]
    assert failed["least"] <= OTHERS <= failed["most"]


def test_advice_names_the_limit_the_setting_and_its_source(watched: RunFolder) -> None:
    (advice,) = account(watched)["advice"]
    assert (advice["limit"], advice["program"], advice["setting"]) == (1, "Tomcat", "acceptCount")
    assert advice["source"] == "https://example.org/tomcat"
    assert advice["value"] >= advice["places"] >= OTHERS
    assert not advice["raise_somaxconn"]


def test_a_program_that_the_lab_does_not_know_gets_no_setting(watched: RunFolder) -> None:
    del watched.manifest["observed"]["targets"][0]["program"]
    (advice,) = account(watched)["advice"]
    assert advice["setting"] is None
    assert any("does not know the program" in sentence for sentence in advice["says"])


def test_the_kernel_s_own_bound_in_the_way_is_named(watched: RunFolder) -> None:
    watched.manifest["sysctls"]["backend-1"]["net.core.somaxconn"] = "1"
    (advice,) = account(watched)["advice"]
    assert advice["raise_somaxconn"]
    assert any("net.core.somaxconn is 1" in sentence for sentence in advice["says"])


def test_syns_that_the_kernel_did_not_drop_were_not_lost_to_the_queue(watched: RunFolder) -> None:
    quiet(watched)
    found = account(watched)
    assert of_listener(found)["causes"] == {"connect-timeout": OTHERS}
    assert found["advice"] == []


def test_drops_that_are_no_overflows_prove_nothing(watched: RunFolder) -> None:
    for tick in watched.samples["backend-1"].ticks:
        tick["counters"]["TcpExt.ListenOverflows"] = 7
    found = account(watched)
    assert of_listener(found)["causes"] == {"unexplained": OTHERS}
    assert found["unexplained"] == OTHERS


def test_overflows_that_may_be_another_listener_s_prove_nothing(watched: RunFolder) -> None:
    for tick in watched.samples["backend-1"].ticks:
        mine = tick["listen"][0]
        tick["listen"].append({**mine, "port": 9_000})
    found = account(watched)
    assert of_listener(found)["causes"] == {"unexplained": OTHERS}
    assert {each["overflows"] for each in found["targets"][0]["listeners"]} == {0}


def test_another_listener_that_dropped_nothing_takes_no_proof_away(watched: RunFolder) -> None:
    for tick in watched.samples["backend-1"].ticks:
        tick["listen"].append({"address": "127.0.0.11", "port": 9_000, "depth": 0, "limit": 4_096, "drops": 3})
    assert of_listener(account(watched))["causes"]["accept-queue-drop"] == OTHERS


def test_missing_samples_leave_the_cause_open(watched: RunFolder) -> None:
    watched.samples["backend-1"].lose_ticks(MEASURE_S + 2, END_S + 1)
    found = account(watched)
    assert of_listener(found)["causes"].get("accept-queue-drop", 0) < OTHERS
    assert found["lacks"]


AT = MEASURE_S + 1

# What the packets of a connection show → its outcome, and the cause that they prove.
SHOWN: dict[str, tuple[Callable[[Connection], object], str, dict[str, int]]] = {
    "a SYN that got a RST": (lambda one: one.refused(AT), "refused", {"connection-refused": 1}),
    "no data": (lambda one: one.handshake(AT), "idle", {}),
    "an answer": (lambda one: one.handshake(AT).ask(AT + 0.1).answer(AT + 0.2).close_by_client(AT + 1), "answered", {}),
    "an end instead of an answer": (
        lambda one: one.handshake(AT).ask(AT + 0.1).close_by_server(AT + 0.2),
        "closed-unanswered",
        {"closed-without-answer": 1},
    ),
    "a client that left": (
        lambda one: one.handshake(AT).ask(AT + 0.1).close_by_client(AT + 5),
        "given-up",
        {"time-in-server": 1},
    ),
    "a client's RST after its answer": (
        lambda one: one.handshake(AT).ask(AT + 0.1).answer(AT + 0.2).reset_by_client(AT + 1),
        "answered",
        {},
    ),
    "a server's RST after its answer": (
        lambda one: one.handshake(AT).ask(AT + 0.1).answer(AT + 0.2).reset_by_server(AT + 0.3),
        "answered",
        {},
    ),
    "a server's RST in place of the second answer": (
        lambda one: one.handshake(AT).ask(AT + 0.1).answer(AT + 0.2).ask(AT + 1).reset_by_server(AT + 1.1),
        "reset",
        {"reset-by-peer": 1},
    ),
    "an answer for a client that had left": (
        lambda one: one.handshake(AT).ask(AT + 0.1).half_close_by_client(AT + 5).answer(AT + 6),
        "given-up",
        {"time-in-server": 1},
    ),
    "a client that waits": (lambda one: one.handshake(AT).ask(AT + 0.1), "waiting", {}),
    "a lost SYN, then an answer": (
        lambda one: one.syns(AT).handshake(AT + 1).ask(AT + 1.1).answer(AT + 1.2),
        "recovered",
        {"syn-lost": 1},
    ),
    "a lost SYN, then a connection that nobody wants any more": (
        lambda one: one.syns(AT).handshake(AT + 1).close_by_client(AT + 1.1),
        "given-up",
        {"syn-lost": 1},
    ),
    "data without a SYN": (lambda one: one.ask(AT).answer(AT + 0.1), "earlier", {}),
}


@pytest.mark.parametrize(("made", "outcome", "causes"), SHOWN.values(), ids=SHOWN)
def test_outcomes_by_packets(
    watched: RunFolder, made: Callable[[Connection], object], outcome: str, causes: dict[str, int]
) -> None:
    quiet(watched)
    capture = Capture()
    made(connection(capture))
    server = of_listener(account(captured(watched, capture)))
    assert server["outcomes"] == {outcome: 1}
    assert server["causes"] == causes


def test_a_client_that_left_the_queue_waited_in_it(watched: RunFolder) -> None:
    quiet(watched, depth=1)
    capture = Capture()
    connection(capture).handshake(AT).ask(AT + 0.1).close_by_client(AT + 5)
    server = of_listener(account(captured(watched, capture)))
    assert (server["outcomes"], server["causes"]) == ({"given-up": 1}, {"waited-in-accept-queue": 1})


def test_a_client_that_may_still_try_is_undecided(watched: RunFolder) -> None:
    quiet(watched)
    capture = Capture()
    connection(capture).syns(MEASURE_S + 49, MEASURE_S + 50.8)
    watched.manifest["phases"] = watched.manifest["phases"][:2]
    captured(watched, capture)
    report_of = watched.lines["backend-1/capture.json"][0]
    report_of["ended_us"] = watched.manifest["phases"][1]["end_us"] + 2_000_000
    assert of_listener(account(watched))["outcomes"] == {"undecided": 1}


def test_connections_of_its_own_are_told_apart_and_its_ports_counted(watched: RunFolder) -> None:
    quiet(watched)
    watched.manifest["sysctls"]["backend-1"]["net.ipv4.ip_local_port_range"] = "32768 60999"
    capture = Capture()
    for number in range(3):
        at = MEASURE_S + 1 + number
        one = Connection(capture, f"172.18.0.2:{50_000 + number}", "172.18.0.9:5432", isn=9_000 * (number + 1))
        one.handshake(at).ask(at + 0.1).answer(at + 0.2).close_by_client(at + 0.3)
    (target,) = account(captured(watched, capture))["targets"]
    (server,) = target["servers"]
    assert (server["server"], server["direction"]) == ("backend-1>172.18.0.9:5432", "out")
    assert server["time_wait"] == {"client": 3}
    assert target["ports"] == [{"server": server["server"], "time_wait_most": 3, "range": 28_232}]
    assert target["peers"][0]["peer"] == "172.18.0.9"


def test_a_target_that_ended_leaves_what_was_recorded(watched: RunFolder) -> None:
    """Its collector was killed with it: the samples break off, and the capture has no account of itself."""
    watched.manifest["observed"]["targets"][0]["ended"] = True
    watched.samples["backend-1"].lose_ticks(MEASURE_S + 30, END_S + 1)
    watched.samples["backend-1"].ended = False
    watched.lines.clear()
    watched.captures["backend-1"].packets = [
        (time_us, frame)
        for time_us, frame in watched.captures["backend-1"].packets
        if time_us < watched.manifest["phases"][1]["start_us"] + 30_000_000
    ]
    found = account(watched)
    assert found["targets"][0]["ended"]
    assert found["lacks"][0] == "shop ended while it was observed"
    # The capture may lack its last packets: nobody knows who had given up.
    assert of_listener(found)["outcomes"]["undecided"] == OTHERS
    assert "accept-queue-drop" not in of_listener(found)["causes"]
    assert found["targets"][0]["listeners"][0]["overflows"] > 0
    assert found["seconds"] < 30


def test_a_target_that_ended_at_once_leaves_what_was_sampled_before(watched: RunFolder) -> None:
    watched.samples["backend-1"].lose_ticks(MEASURE_S - 1, END_S + 1)
    watched.captures["backend-1"].packets.clear()
    found = account(watched)
    assert found["seconds"] == pytest.approx(MEASURE_S - 1.1)
    assert [each["port"] for each in found["targets"][0]["listeners"]] == [8080]


def test_nothing_recorded_is_an_account_of_nothing(watched: RunFolder) -> None:
    watched.samples["backend-1"].lose_ticks(0, END_S + 1)
    found = account(watched)
    assert found["targets"] == [] or found["targets"][0]["listeners"] == []
    assert found["lacks"]


def test_a_sampler_that_costs_a_tenth_of_a_processor_is_named(watched: RunFolder) -> None:
    for reading in watched.samples["backend-1"].slow:
        if reading["kind"] == "self":
            reading["cpu_ms"] *= 15
    found = account(watched)
    assert found["targets"][0]["cost"]["sampler_percent"] == pytest.approx(12.0, abs=0.5)
    assert any("of a processor" in lack for lack in found["lacks"])


def add_peer(watched: RunFolder) -> None:
    watched.manifest["instances"]["web"] = ["web"]
    watched.manifest["addresses"]["web"] = ["172.18.0.3"]
    watched.manifest["observed"]["targets"].append(
        {"instance": "web", "kind": "container", "name": "web", "peer": True}
    )


def test_a_peer_s_view_counts_what_got_lost_on_the_way(watched: RunFolder) -> None:
    quiet(watched)
    here, there = Capture(), Capture()
    at = MEASURE_S + 1
    for capture in (here, there):
        connection(capture).handshake(at).ask(at + 0.1).answer(at + 0.2)
    connection(here, 2).syns(at, at + 1, at + 3)
    connection(there, 2).syns(at + 3)
    connection(here, 3).syns(at, at + 1)
    captured(watched, there)
    add_peer(watched)
    watched.samples["web"] = watched.samples["backend-1"]
    watched.captures["web"] = here
    watched.lines["web/capture.json"] = [make_capture(len(here.packets))]
    assert account(watched)["crossings"] == [
        {"peer": "web", "target": "backend-1", "both": 2, "peer_only": 1, "syns_lost_between": 4}
    ]


def test_what_the_server_s_end_proves_explains_the_client_s_end(watched: RunFolder) -> None:
    add_peer(watched)
    for name in ("samples", "captures"):
        getattr(watched, name)["web"] = getattr(watched, name)["backend-1"]
    watched.lines["web/capture.json"] = watched.lines["backend-1/capture.json"]
    found = account(watched)
    assert found["unexplained"] == 0
    (server,) = found["targets"][1]["servers"]
    assert (server["direction"], server["causes"]["accept-queue-drop"]) == ("out", OTHERS)


def test_a_server_elsewhere_that_never_answers_is_unexplained(watched: RunFolder) -> None:
    quiet(watched)
    capture = Capture()
    Connection(capture, "172.18.0.2:50001", "172.18.0.9:5432", isn=9_000).syns(AT, AT + 1, AT + 3)
    assert account(captured(watched, capture))["unexplained"] == 1


def test_the_same_raw_files_give_the_same_bytes_and_a_page(watched: RunFolder) -> None:
    watched.write()
    analyse(watched.folder)
    derived = watched.folder / "derived"
    before = {path.name: path.read_bytes() for path in derived.iterdir()}
    analyse(watched.folder)
    assert {path.name: path.read_bytes() for path in derived.iterdir()} == before
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", run_report.write(watched.folder).read_text()))
    for pattern in (
        "Observed: shop",
        r"100 backend-1:8080 accept queue full accept-queue-drop",
        "100 connections never reached the server",
        "What to change at backend-1:8080 .*acceptCount",
        r"the limit is 1\.",
    ):
        assert re.search(pattern, page), pattern


def test_without_packets_the_page_says_nothing_of_connections(watched: RunFolder) -> None:
    watched.manifest["observed"]["capture"] = "off"
    watched.captures.clear()
    watched.lines.clear()
    account(watched)
    page = run_report.render(watched.folder)
    assert "The outcome of connections is unknown: no packet was captured." in page
    assert "No connection is on record." in page


def test_a_page_of_a_folder_that_was_not_analysed_says_so(watched: RunFolder) -> None:
    folder: Path = watched.write()
    with pytest.raises(DerivedError, match=r"connections\.json"):
        run_report.write(folder)


def test_counters_grow_from_reading_to_reading_and_stand_above_the_connections(watched: RunFolder) -> None:
    kernel = account(watched)["targets"][0]["kernel"]
    query = "SELECT counter, from_us, to_us, growth FROM read_parquet(?) ORDER BY ALL"
    grown: dict[str, list[tuple[int, int, int]]] = {}
    for counter, *row in duckdb.execute(query, [str(watched.folder / COUNTERS)]).fetchall():
        grown.setdefault(counter, []).append(tuple(row))
    assert {name: sum(growth for *_, growth in rows) for name, rows in grown.items()} == {
        name: value for name, value in kernel.items() if value
    }
    for rows in grown.values():
        assert len(rows) <= STEPS
        assert [to_us for _, to_us, _ in rows[:-1]] == [from_us for from_us, *_ in rows[1:]]
    page = run_report.render(watched.folder)
    assert page.index('data-chart="queue-1"') < page.index('data-chart="drops-1"') < page.index('id="waterfall"')
