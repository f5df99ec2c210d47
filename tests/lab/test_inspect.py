"""`connlab inspect`: captures, dumps and logs from elsewhere, and what they prove."""

import gzip
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence import given_logs
from analysis.evidence.rawfiles import Places
from analysis.reports import run_report
from analysis.verdicts.connections_file import COUNTERS
from formats.manifest import EvidenceKind
from lab import paths
from lab.errors import BadInput
from lab.observe import printing
from lab.observe.inspect.folder import InspectOptions
from lab.observe.inspect.inspecting import inspect, parse_logs, parse_server
from lab.runs import run_results
from tests.analysis.packets import ACK, FIN, RST, SYN, Capture, Connection
from tests.analysis.support import at_us

CLIENT, SERVER = "172.18.0.3", "172.18.0.2:8080"

pytestmark = pytest.mark.usefixtures("elsewhere")

Account = dict[str, Any]
Inspect = Callable[..., Account]


@pytest.fixture
def inspected(tmp_path: Path) -> Inspect:
    """Write files, inspect them, and return the account; `folder` is that of the run."""

    def run(
        *named: str,
        nstat: tuple[str, ...] = (),
        logs: dict[EvidenceKind, list[str]] | None = None,
        options: InspectOptions | None = None,
        **files: bytes | str | Capture,
    ) -> Account:
        for key, content in files.items():
            path = tmp_path / key.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            data = content.content() if isinstance(content, Capture) else content
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
        folder, passed = inspect(
            [tmp_path / each for each in named],
            [tmp_path / each for each in nstat],
            {kind: [tmp_path / each for each in of_kind] for kind, of_kind in (logs or {}).items()},
            options or InspectOptions(),
            ["connlab", "inspect"],
        )
        found = printing.read_connections(folder)
        # The page and the terminal take all that an account may hold.
        assert "What to record next time" in run_report.render(folder)
        text = "\n".join(printing.connection_lines(found, folder))
        return {**found, "folder": folder, "passed": passed, "text": text}

    return run


def by_outcome(found: Account) -> dict[str, int]:
    counts: dict[str, int] = {}
    for target in found["targets"]:
        for server in target["servers"]:
            for outcome, count in server["outcomes"].items():
                counts[outcome] = counts.get(outcome, 0) + count
    return counts


def said(found: Account) -> str:
    inspection = found["inspection"]
    return "\n".join(each["says"] for part in ("findings", "connections") for each in inspection[part])


def exchange(*, syn_ack: float = 0.05, request: float = 0.001, answer: float = 0.05) -> Capture:
    """One request and its answer, as the client's end sees them."""
    capture, client = Capture(), f"{CLIENT}:41001"
    capture.tcp(0, client, SERVER, SYN, seq=1_000)
    at = syn_ack
    capture.tcp(at, SERVER, client, SYN | ACK, seq=6_000, ack=1_001)
    capture.tcp(at := at + 0.001, client, SERVER, ACK, seq=1_001, ack=6_001)
    capture.tcp(at := at + request, client, SERVER, ACK, seq=1_001, ack=6_001, data=300)
    capture.tcp(at + 0.05, SERVER, client, ACK, seq=6_001, ack=1_301)
    capture.tcp(at + answer, SERVER, client, ACK, seq=6_001, ack=1_301, data=900)
    return capture


def test_a_capture_whose_clock_jumped_is_named(inspected: Inspect) -> None:
    jumped, beside = exchange(), exchange()
    jumped.tcp(86_400 * 600, f"{CLIENT}:41001", SERVER, ACK, seq=1_301, ack=6_901)
    assert any("spans 600 days" in each for each in inspected("a.pcap", a_pcap=jumped)["lacks"])
    assert inspected("b.pcap", b_pcap=exchange())["lacks"] == []
    # A packet of UDP: no connection has its time.
    beside.tcp(86_400 * 600, f"{CLIENT}:41001", SERVER, ACK, seq=1_301)
    time_us, frame = beside.packets[-1]
    beside.packets[-1] = (time_us, frame[:23] + bytes([17]) + frame[24:])
    assert any("spans 600 days" in each for each in inspected("c.pcap", c_pcap=beside)["lacks"])
    set_back = exchange()
    set_back.shown = lambda us: us - 5_000_000 if us == max(us for us, _ in set_back.packets) else us
    (told,) = inspected("d.pcap", d_pcap=set_back)["lacks"]
    assert "d.pcap has a packet that is 4,950.0 ms earlier than the one in front of it: a clock was set" in told


def test_a_tls_alert_names_who_broke_the_handshake_off(inspected: Inspect) -> None:
    refused, client = exchange(), f"{CLIENT}:41001"
    for second, ends, seq, ack, alert in (
        (0.2, (SERVER, client), 6_901, 1_301, 48), (0.3, (client, SERVER), 1_301, 6_908, 0),
    ):  # fmt: skip
        refused.tcp(second, *ends, ACK, seq=seq, ack=ack, data=7)
        time_us, frame = refused.packets[-1]
        refused.packets[-1] = (time_us, frame[:-7] + bytes([21, 3, 3, 0, 2, 2, alert]))
    (told,) = inspected("tls.pcap", tls_pcap=refused)["inspection"]["connections"]
    assert told["says"] == "the server sent the TLS alert unknown_ca."


@pytest.mark.parametrize(
    ("capture", "sentence"),
    [
        (exchange(), None),
        (exchange(syn_ack=0.88), "the SYN-ACK came after 880 ms"),
        (exchange(request=1.34), "connected, the client sent nothing for 1.34 s"),
        (exchange(answer=1.03), "the server's first data came 1.03 s after the request"),
    ],
    ids=["normal", "slow wire", "slow client", "slow server"],
)
def test_a_slow_exchange_names_who_was_slow(inspected: Inspect, capture: Capture, sentence: str | None) -> None:
    found = inspected("latency.pcap", latency_pcap=capture)
    assert by_outcome(found) == {"answered": 1}
    assert [sentence in each["says"] for each in found["inspection"]["connections"]] == ([True] if sentence else [])


@pytest.mark.parametrize(
    ("times_s", "sentence"),
    [
        ((0.1, 0.15, 0.2), None),
        ((0.1, 1.1, 1.15), "TLS: the server's ServerHello came 1 s after the ClientHello."),
        ((0.1, 0.15, 1.15), "TLS: the client's reply came 1 s after the ServerHello."),
    ],
)
def test_a_slow_tls_handshake_names_whom_it_waited_for(
    inspected: Inspect, times_s: tuple[float, ...], sentence: str | None
) -> None:
    capture = Capture()
    Connection(capture, f"{CLIENT}:41001", SERVER).handshake(0).secure(*times_s).ask(1.3).answer(1.35)
    told = inspected("tls.pcap", tls_pcap=capture)["inspection"]["connections"]
    assert [each["says"] for each in told] == ([sentence] if sentence else [])


def test_a_client_that_is_refused_and_tries_again_is_one_attempt(inspected: Inspect) -> None:
    capture, client = Capture(), f"{CLIENT}:1074"
    for second in (0, 0.5, 1.0):
        capture.tcp(second, client, SERVER, SYN, seq=1_000)
        capture.tcp(second + 0.0001, SERVER, client, RST | ACK, seq=0, ack=1_001)
    found = inspected("a.pcap", a_pcap=capture)
    assert by_outcome(found) == {"refused": 1}
    assert "3 SYNs and 3 RSTs within 1 s" in said(found)


def test_syns_without_an_answer_were_never_answered_and_the_file_that_would_tell_why_is_named(
    inspected: Inspect,
) -> None:
    capture = Capture()
    Connection(capture, f"{CLIENT}:1251", SERVER).syns(0, 3, 9)
    found = inspected("a.pcap", a_pcap=capture)
    assert (by_outcome(found), found["unexplained"]) == ({"never-answered": 1}, 1)
    assert "3 SYNs within 9 s, at 0, 3, 9 s, and no answer" in said(found)
    assert "dropped at the server or on the way; `nstat -az` there, before and after, would tell which" in said(found)
    assert any("a capture at the other end" in each for each in found["inspection"]["record_next"])


def test_the_times_of_linux_s_syns_tell_when_connect_ends(inspected: Inspect) -> None:
    capture = Capture()
    Connection(capture, f"{CLIENT}:41001", SERVER).syns(0, 1, 2, 3, 4, 5, 7, 11.2, 19.5, 35.6, 69.2)
    Connection(capture, f"{CLIENT}:41002", SERVER).syns(0, 0.5, 1)
    told = {
        each["client"][-1]: each["says"] for each in inspected("a.pcap", a_pcap=capture)["inspection"]["connections"]
    }
    assert "at 0, 1, 2, 3, 4, 5, 7, 11.2, 19.5, 35.6, 69.2 s (if Linux sent these" in told["1"]
    assert "fails with ETIMEDOUT at 133 s)" in told["1"]
    assert told["2"] == "3 SYNs within 1 s, at 0, 0.5, 1 s, and no answer."


def test_a_capture_of_one_direction_does_not_say_that_nobody_answered(inspected: Inspect) -> None:
    capture = Capture()
    for source, target, flags in ((f"{CLIENT}:41001", SERVER, SYN), (SERVER, f"{CLIENT}:41002", SYN | ACK)):
        capture.tcp(0, source, target, flags, seq=1_000, ack=6_001)
        capture.tcp(0.1, source, target, ACK, seq=1_001, ack=6_001, data=300)
    found = inspected("a.pcap", a_pcap=capture)
    assert by_outcome(found) == {"one-sided": 2}
    assert "Of 2 connections, the capture has one side's packets alone, 1 of these the client's" in said(found)
    assert found["inspection"]["connections"] == []


def test_without_samples_nobody_waited_in_an_accept_queue(inspected: Inspect) -> None:
    capture = Capture()
    Connection(capture, f"{CLIENT}:41001", SERVER).handshake(0).ask(0.1).close_by_client(3)
    (target,) = inspected("a.pcap", a_pcap=capture)["targets"]
    assert [each["causes"] for each in target["servers"]] == [{"unexplained": 1}]


def test_servers_of_ipv6_have_brackets_before_the_port(inspected: Inspect) -> None:
    capture, ends = Capture(), [IPv6Address(f"fd00::{host}").packed for host in (3, 2)]
    for flags, ports in ((SYN, (41_001, 80)), (RST | ACK, (80, 41_001))):
        tcp = struct.pack(">HHIIBBHHH", *ports, 1_000, 1_001, 5 << 4, flags, 64_240, 0, 0)
        source, target = ends if flags == SYN else ends[::-1]
        frame = bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + source + target + tcp
        capture.packets.append((at_us(0.1 if flags & RST else 0), frame))
    found = inspected("a.pcap", a_pcap=capture)
    assert "1 connection to [fd00::2]:80 was refused" in said(found)
    assert [each["server"] for each in found["targets"][0]["servers"]] == ["a>[fd00::2]:80"]


def test_a_capture_without_tcp_says_so(inspected: Inspect) -> None:
    assert "The capture has 0 packets, and no TCP connection." in said(inspected("a.pcap", a_pcap=Capture()))


def test_a_middle_of_a_connection_shows_what_was_sent_again(inspected: Inspect) -> None:
    capture, client = Capture(), f"{CLIENT}:51048"
    for second in (0, 0.2, 0.8, 2.0, 4.4, 9.2):
        capture.tcp(second, client, SERVER, ACK, seq=1_000, ack=6_000, data=500)
    found = inspected("a.pcap", a_pcap=capture)
    assert by_outcome(found) == {"earlier": 1}
    assert "the client sent data again 5 times, 200 ms to 9.2 s after the first time" in said(found)


@pytest.mark.parametrize(
    ("opens_s", "sentence"),
    [(None, "the server's receive window was 0 to the capture's end (2 s)"), (0.11, "receive window was 0 for 10 ms")],
)
def test_a_receiver_without_room_is_named(inspected: Inspect, opens_s: float | None, sentence: str) -> None:
    capture = Capture()
    connection = Connection(capture, f"{CLIENT}:2235", SERVER).handshake(0).ask(0.05, 1_000)
    frames = len(capture.packets)
    connection._from_server(0.1, ACK)  # noqa: SLF001  its window is changed below
    if opens_s is not None:
        connection._from_server(opens_s, ACK)  # noqa: SLF001  as above
    connection.ask(2.1)
    time_us, frame = capture.packets[frames]
    capture.packets[frames] = (time_us, frame[:48] + b"\0\0" + frame[50:])
    if opens_s is None:
        # Nothing of the server after that.
        capture.packets = [
            each for n, each in enumerate(capture.packets) if n <= frames or each[1][26:30] != frame[26:30]
        ]
    assert sentence in said(inspected("a.pcap", a_pcap=capture))


def test_a_scan_is_no_full_queue(inspected: Inspect) -> None:
    capture = Capture()
    for port in range(1, 301):
        client, server = f"{CLIENT}:36050", f"172.18.0.2:{port}"
        capture.tcp(0.01 * port, client, server, SYN, seq=port)
        if port in (25, 113):
            capture.tcp(0.01 * port + 0.001, server, client, RST | ACK, seq=0, ack=port + 1)
        if port in (22, 80):
            for again in range(4):
                capture.tcp(0.01 * port + 0.001 + 3 * again, server, client, SYN | ACK, seq=9, ack=port + 1)
    found = inspected("a.pcap", a_pcap=capture)
    assert "scanned 172.18.0.2: 300 SYNs to 300 ports, 2 refused, 8 SYN-ACKs never completed" in said(found)
    assert found["unexplained"] == 0
    assert [server["server"] for server in found["targets"][0]["servers"]] == ["a>172.18.0.2:*"]


def overflowing(*, lost: int = 6, served: int = 4) -> Capture:
    """A server whose queue is full: clients that are served, and others whose SYNs get no answer."""
    capture = Capture()
    for number in range(served):
        one = Connection(capture, f"172.18.1.{number}:4000{number}", SERVER, isn=7_000 * (number + 1))
        one.handshake(0.1 * number).ask(0.1 * number + 0.01).answer(0.1 * number + 0.02)
    for number in range(lost):
        one = Connection(capture, f"172.18.2.{number}:4000{number}", SERVER, isn=9_000 * (number + 1))
        one.syns(1, 2, 4)
    return capture


def nstat(overflows: int, drops: int, **more: int) -> str:
    counters = {"TcpExtListenOverflows": overflows, "TcpExtListenDrops": drops, "TcpExtTCPReqQFullDrop": 0, **more}
    return "#kernel\n" + "".join(f"{name:<32}{value:<20}0.0\n" for name, value in counters.items())


def causes(found: Account) -> dict[str, int]:
    return {name: count for each in found["targets"][0]["servers"] for name, count in each["causes"].items()}


def test_counters_before_and_after_prove_what_a_capture_alone_cannot(inspected: Inspect) -> None:
    files: dict[str, Any] = {"a_pcap": overflowing(), "before_txt": nstat(100, 100)}
    found = inspected("a.pcap", nstat=("before.txt", "after.txt"), **files, after_txt=nstat(118, 118))
    assert causes(found) == {"accept-queue-drop": 6}
    assert found["unexplained"] == 0
    found = inspected("a.pcap", nstat=("before.txt", "after.txt"), **files, after_txt=nstat(117, 118))
    assert causes(found) == {"unexplained": 6}
    found = inspected("a.pcap", nstat=("before.txt", "after.txt"), **files, after_txt=nstat(100, 100))
    assert causes(found) == {"connect-timeout": 6}


def test_a_socket_that_dropped_nothing_had_none_of_the_overflows(inspected: Inspect) -> None:
    capture = Capture()
    for number in range(3):
        client = f"{CLIENT}:4100{number}"
        Connection(capture, client, SERVER, isn=900 * (number + 1)).handshake(0.1 * number)
        Connection(capture, f"{CLIENT}:4200{number}", SERVER, isn=9_000 * (number + 1)).syns(1, 2, 4)
    sockets = "LISTEN 0 4096 127.0.0.11:37205 *:*\n skmem:(r0,rb1,t0,tb1,f0,w0,o0,bl0,d0)\n"
    found = inspected(
        "a.pcap", nstat=("b.txt", "c.txt"), a_pcap=capture, b_txt=nstat(0, 0) + sockets, c_txt=nstat(9, 9) + sockets
    )
    assert causes(found) == {"accept-queue-drop": 3}
    assert [(each["port"], each["overflows"]) for each in found["targets"][0]["listeners"]] == [(37205, 0)]


def test_a_dump_in_between_without_a_time_bounds_no_lost_syn(inspected: Inspect) -> None:
    start, end = f"2025-11-21T07:26:38Z\n{nstat(0, 0)}", f"2025-11-21T07:26:59Z\n{nstat(18, 18)}"
    between = "LISTEN 6 5 *:8080 *:*\n" + nstat(18, 18)
    files = {"a_pcap": overflowing(), "b_txt": start, "m_txt": between, "z_txt": end}
    found = inspected("a.pcap", "m.txt", nstat=("b.txt", "z.txt"), **files)
    assert causes(found) == {"accept-queue-drop": 6}
    assert found["targets"][0]["listeners"][0]["depth_max"] == 6


def test_a_second_dump_under_one_time_may_be_of_any_later_moment(inspected: Inspect) -> None:
    start = f"2025-11-21T07:26:38Z\n{nstat(0, 0)}$ sleep 9; nstat -az\n{nstat(18, 18)}"
    end = f"2025-11-21T07:26:59Z\n{nstat(18, 18)}"
    found = inspected("a.pcap", nstat=("b.txt", "z.txt"), a_pcap=overflowing(), b_txt=start, z_txt=end)
    assert causes(found) == {"accept-queue-drop": 6}


def test_dumps_that_were_given_the_wrong_way_round_prove_no_more(inspected: Inspect) -> None:
    files: dict[str, Any] = {"a_pcap": overflowing(), "b_txt": nstat(100, 100), "c_txt": nstat(118, 118)}
    found = inspected("a.pcap", nstat=("c.txt", "b.txt"), **files)
    assert (causes(found), found["targets"][0]["kernel"]["TcpExt.ListenOverflows"]) == ({"accept-queue-drop": 6}, 18)


def test_counters_of_another_time_prove_nothing_and_the_times_are_named(inspected: Inspect) -> None:
    before, after = (
        "Fri Nov 21 09:00:0{} UTC 2025\n{}".format(*each) for each in ((1, nstat(0, 0)), (9, nstat(18, 18)))
    )
    found = inspected("a.pcap", nstat=("b.txt", "c.txt"), a_pcap=overflowing(), b_txt=before, c_txt=after)
    assert causes(found) == {"unexplained": 6}
    assert any("use `date -u`" in each for each in found["inspection"]["record_next"])


def test_a_capture_of_handshakes_alone_does_not_say_who_was_answered(inspected: Inspect) -> None:
    capture = Capture()
    for number in range(3):
        client = f"172.18.1.{number}:40000"
        capture.tcp(number, client, SERVER, SYN, seq=1_000)
        capture.tcp(number + 0.1, SERVER, client, SYN | ACK, seq=6_000, ack=1_001)
        capture.tcp(number + 0.5, client, SERVER, FIN | ACK, seq=1_301, ack=6_901)
        capture.tcp(number + 0.6, SERVER, client, FIN | ACK, seq=6_901, ack=1_302)
    found = inspected("a.pcap", a_pcap=capture)
    assert by_outcome(found) == {"connected": 3}
    assert "only handshakes were captured" in found["lacks"][0]


def test_a_proxy_s_addresses_are_found_by_its_peers(inspected: Inspect) -> None:
    capture = Capture()
    for number in range(12):
        for client, server in (
            (f"10.0.1.{number}:4000", "10.0.0.5:80"),
            (f"10.9.0.5:{5000 + number}", f"10.9.0.{7 + number % 2}:81"),
        ):
            Connection(capture, client, server, isn=900 * (number + 1)).handshake(number).ask(number + 0.1).answer(
                number + 0.2
            )
    found = inspected("lb.pcap", lb_pcap=capture)
    assert {each["server"]: each["direction"] for each in found["targets"][0]["servers"]} == {
        "lb:80": "in", "lb>10.9.0.7:81": "out", "lb>10.9.0.8:81": "out",
    }  # fmt: skip


def test_overflows_are_no_proof_for_two_listeners_that_lost_more_together(inspected: Inspect) -> None:
    capture = overflowing()
    for number in range(2):
        Connection(capture, f"172.18.3.{number}:41000", "172.18.0.2:9000", isn=11_000 * (number + 1)).syns(1, 2, 4)
    before, after = nstat(0, 0), nstat(18, 18)
    found = inspected("a.pcap", nstat=("before.txt", "after.txt"), a_pcap=capture, before_txt=before, after_txt=after)
    assert set(causes(found)) == {"unexplained"}
    found = inspected(
        "a.pcap", nstat=("before.txt", "after.txt"), a_pcap=capture, before_txt=before, after_txt=nstat(24, 24)
    )
    assert set(causes(found)) == {"accept-queue-drop"}


def test_a_dump_of_sockets_alone_bounds_no_counter(inspected: Inspect) -> None:
    sockets = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 0.0.0.0:8080 0.0.0.0:*\n"
    found = inspected(
        "a.pcap", nstat=("ss.txt", "after.txt"), a_pcap=overflowing(), ss_txt=sockets, after_txt=nstat(18, 18)
    )
    assert causes(found) == {"unexplained": 6}
    (listener,) = found["targets"][0]["listeners"]
    assert (listener["limit"], listener["overflows"], listener["drops"]) == (128, None, None)


def test_sockets_alone_tell_what_they_dropped_in_between(inspected: Inspect) -> None:
    sockets = "LISTEN 2 1 0.0.0.0:8080 *:*\n skmem:(r0,rb1,t0,tb1,f0,w0,o0,bl0,d{})\n"
    found = inspected("a", a__ss1=sockets.format(7), a__ss2=sockets.format(14), a__nstat="$ nstat\n" + nstat(26, 26))
    assert "full 100 % of the dumps, 7 drops" in found["text"]


def test_why_one_dump_is_not_enough_is_said_and_nothing_is_lost_within_a_host(inspected: Inspect) -> None:
    capture = Capture()
    Connection(capture, "127.0.0.1:4000", "127.0.0.1:80").syns(0, 1, 3)
    found = inspected("a", a__c=capture, a__nstat="$ nstat\n" + nstat(3, 3))
    asked = "\n".join(found["inspection"]["record_next"])
    assert "a single dump does not tell whether it counted what the capture has" in asked
    assert "at the other end" not in asked


def test_what_both_ends_show_stands_there_once_with_the_number_of_those_alike(inspected: Inspect) -> None:
    found = inspected("b.pcap", "c.pcap", b_pcap=overflowing(), c_pcap=overflowing())
    of_one = inspected("b.pcap", b_pcap=overflowing())
    assert len(found["inspection"]["connections"]) == len(of_one["inspection"]["connections"])
    assert " and " in found["text"].partition("one by one")[2].splitlines()[1]
    assert "\n    3 more like it" in of_one["text"]


def test_what_a_server_refused_reset_or_closed_is_said_with_its_listeners(inspected: Inspect) -> None:
    capture = Capture()
    capture.tcp(0, f"{CLIENT}:1074", SERVER, SYN, seq=1_000)
    capture.tcp(0.0001, SERVER, f"{CLIENT}:1074", RST | ACK, seq=0, ack=1_001)
    files: dict[str, Any] = {"a__c": capture, "a__ip": f"{SERVER.partition(':')[0]}\n"}
    alone = inspected("a", **files)
    assert "was refused. Nothing listened there, or a filter rejected them: `ss -ltnp`" in said(alone)
    beside = inspected("b", b__c=capture, b__ss=f"LISTEN 0 128 {SERVER.partition(':')[0]}:22 *:*\n")
    assert "Nothing listens on 8080 in the dumps of this host, only on 22" in said(beside)


def test_the_pace_of_answers_says_whom_a_longer_queue_helps(inspected: Inspect) -> None:
    capture = overflowing(lost=6, served=0)
    for number in range(3):
        one = Connection(capture, f"172.18.1.{number}:4000{number}", SERVER, isn=7_000 * (number + 1))
        one.handshake(0.01 * number).ask(0.1).answer(2.0 * (number + 1))
    files: dict[str, Any] = {"before_txt": nstat(100, 100), "after_txt": nstat(118, 118)}
    files["before_txt"] += "LISTEN 2 1 172.18.0.2:8080 *:*\n"
    found = inspected("a.pcap", nstat=("before.txt", "after.txt"), a_pcap=capture, **files)
    assert "Its answers began 2 s apart" in "\n".join(found["advice"][0]["says"])


def moved(capture: Capture, ahead_s: float) -> Capture:
    return Capture([(time_us + round(ahead_s * 1e6), frame) for time_us, frame in capture.packets])


@pytest.mark.parametrize("ahead_s", [0, 3600])
def test_two_ends_are_put_on_one_clock_and_what_got_lost_between_them_is_named(
    inspected: Inspect, ahead_s: float
) -> None:
    here, there = Capture(), Capture()
    for number in range(20):
        at, client, isn = 0.2 * number, f"172.18.0.3:{41_000 + number}", 7_000 * (number + 1)
        for capture, syn, syn_ack, ack in ((here, 0, 0.02, 0.0201), (there, 0.01, 0.0101, 0.03)):
            capture.tcp(at + syn, client, SERVER, SYN, seq=isn)
            capture.tcp(at + syn_ack, SERVER, client, SYN | ACK, seq=6_000, ack=isn + 1)
            capture.tcp(at + ack, client, SERVER, ACK, seq=isn + 1, ack=6_001)
            # A card sends in one packet what comes as two; what is sent twice and comes once has lost a copy.
            whole = capture is here
            for seq, data in ((0, 2_000),) if whole else ((0, 1_000), (1_000, 1_000)):
                capture.tcp(at + ack + 0.001 + seq / 1e9, client, SERVER, ACK, seq=isn + 1 + seq, ack=6_001, data=data)
            for again in range(2 if whole and number == 3 else 1):
                capture.tcp(at + ack + 0.002 + again / 100, client, SERVER, ACK, seq=isn + 2_001, ack=6_001, data=10)
    Connection(here, "172.18.0.3:42000", SERVER, isn=99_000).syns(1, 2)
    found = inspected("client.pcap", "server.pcap", client_pcap=here, server_pcap=moved(there, ahead_s))
    (losses,) = found["inspection"]["losses"]
    assert (losses["client_end"], losses["server_end"], losses["both"]) == ("client", "server", 20)
    assert losses["clocks_apart_us"] is not None
    assert losses["clocks_apart_us"] < 50_000
    lost_syn = (f"172.18.0.3:42000 → {SERVER}", "client", "SYN")
    copy = (f"172.18.0.3:41003 → {SERVER}", "client", "10 bytes from 2,001")
    assert [(each["connection"], each["sent_by"], each["what"]) for each in losses["named"]] == [
        copy,
        lost_syn,
        lost_syn,
    ]


def test_the_parts_of_a_rotated_capture_are_one(inspected: Inspect) -> None:
    whole = overflowing()
    middle = sorted(whole.packets)[len(whole.packets) // 2][0]
    parts = [Capture([each for each in whole.packets if (each[0] < middle) is first]) for first in (True, False)]
    found = inspected("a.pcap", "a.pcap1", a_pcap=parts[0], a_pcap1=parts[1])
    assert [target["instance"] for target in found["targets"]] == ["a"]
    assert by_outcome(found) == by_outcome(inspected("a.pcap", a_pcap=whole))


def test_a_folder_is_told_apart_by_content_and_what_is_none_is_named(inspected: Inspect) -> None:
    found = inspected(
        "incident",
        incident__one=overflowing(),
        incident__before=nstat(100, 100),
        incident__after=nstat(118, 118),
        incident__notes="We saw timeouts since noon.\n",
    )
    assert causes(found) == {"accept-queue-drop": 6}
    assert found["passed"] == ["notes: is no capture, dump or log that the lab knows"]


def test_a_capture_that_has_packets_twice_counts_no_syn_twice(inspected: Inspect) -> None:
    once = overflowing()
    twice = Capture([(time_us + late_us, frame) for time_us, frame in once.packets for late_us in (0, 30)])
    found = inspected("a.pcap", nstat=("b.txt", "c.txt"), a_pcap=twice, b_txt=nstat(0, 0), c_txt=nstat(18, 18))
    assert by_outcome(found) == {"answered": 4, "never-answered": 6}
    assert causes(found) == {"accept-queue-drop": 6}
    assert "has most packets twice" in said(found)
    assert "data again" not in said(found)


def test_what_tcpdump_printed_when_it_ended_says_whether_the_capture_is_whole(inspected: Inspect) -> None:
    capture = overflowing()
    count = len(capture.packets)
    said_of = "{} packets captured\n{} packets received by filter\n{} packets dropped by kernel\n"
    asked = "what tcpdump prints when it ends"
    found = inspected("one", one__a=capture, one__end=said_of.format(count, count + 9, 9))
    assert found["targets"][0]["cost"]["packets_dropped"] == 9
    assert not any(each.startswith(asked) for each in found["inspection"]["record_next"])
    # That of another capture says nothing of this one.
    found = inspected("two", two__a=capture, two__end=said_of.format(count + 1, count + 1, 0))
    assert found["targets"][0]["cost"]["packets_dropped"] is None
    assert any(each.startswith(asked) for each in found["inspection"]["record_next"])


def test_no_advice_says_whether_a_queue_overflowed_is_known(inspected: Inspect) -> None:
    def advised(found: Account) -> str:
        return "\n".join(printing.advice_lines(found))

    alone = inspected("a.pcap", a_pcap=exchange())
    assert "whether one overflowed" in advised(alone)
    none = inspected("b.pcap", nstat=("b.txt", "c.txt"), b_pcap=exchange(), b_txt=nstat(5, 5), c_txt=nstat(5, 5))
    assert advised(none) == "No accept queue overflowed between the first dump and the last."
    some = inspected("c.pcap", nstat=("d.txt",), c_pcap=exchange(), d_txt="$ nstat -z\n" + nstat(26, 26))
    assert "26 SYNs or last ACKs of a handshake met a full accept queue" in advised(some)


def test_a_capture_that_is_cut_is_named_as_the_user_names_it(inspected: Inspect) -> None:
    found = inspected("shop.pcap", shop_pcap=overflowing().content()[:-7])
    assert any("shop.pcap is unreadable from byte" in each for each in found["lacks"])


def test_a_server_that_no_capture_has_is_answered_with_those_that_are_there(inspected: Inspect) -> None:
    found = inspected("a.pcap", a_pcap=overflowing(), options=InspectOptions(server="10.9.9.9:80"))
    assert f"no TCP connection to 10.9.9.9:80. It has connections to {SERVER}." in said(found)


def test_a_file_that_is_not_there_is_answered_with_the_nearest(inspected: Inspect) -> None:
    with pytest.raises(BadInput, match=r"server.pcapp: No such file.*did you mean 'server.pcap'"):
        inspected("server.pcapp", server_pcap=exchange())


def test_one_server_can_be_chosen(inspected: Inspect) -> None:
    capture = overflowing()
    Connection(capture, "172.18.0.2:50000", "172.18.0.9:5432", isn=5).handshake(3)
    options = InspectOptions(server=parse_server("172.18.0.9:5432"))
    assert by_outcome(inspected("a.pcap", a_pcap=capture, options=options)) == {"idle": 1}


def test_connections_to_several_servers_are_counted_in_all_too(inspected: Inspect) -> None:
    capture = overflowing()
    Connection(capture, "172.18.0.2:50000", "172.18.0.9:5432", isn=5).handshake(3)
    lines = list(printing.connection_lines(inspected("a.pcap", a_pcap=capture), Path()))
    assert "  in all 11 connections: 4 answered, 6 never-answered, 1 idle" in lines


def test_the_times_of_a_server_s_connections_are_said_where_the_capture_has_their_handshakes(
    inspected: Inspect,
) -> None:
    lines = list(printing.connection_lines(inspected("a.pcap", a_pcap=exchange()), Path()))
    assert "    handshake 51 ms, first byte 50 ms after the request, 102 ms in all" in lines, lines
    lines = list(printing.connection_lines(inspected("b.pcap", b_pcap=overflowing()), Path()))
    assert any(line.endswith(" in all (medians)") for line in lines), lines


def test_a_packed_capture_is_unpacked(inspected: Inspect) -> None:
    packed = gzip.compress(overflowing().content())
    assert by_outcome(inspected("a.pcap.gz", a_pcap_gz=packed)) == {"answered": 4, "never-answered": 6}


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 64,
    "cut gzip": gzip.compress(bytes(1000))[:20],
    "snoop of FDDI": b"snoop\0\0\0\0\0\0\2\0\0\0\x08" + bytes(64),
    "text": b"Nothing to see here.\n" * 100,
    "words about it": b"EADDRNOTAVAIL comes from no port; kernel.backend.TcpExt.ListenOverflows = 500\n",
    "long line": b"LISTEN 0 128 " + b"a/" * 1_000_000 + b"\n",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_evidence_is_refused_with_one_message(inspected: Inspect, content: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        inspected("a.bin", a_bin=content)
    assert len(refused.value.problems) == 1
    assert "a.bin" in str(refused.value)


def test_a_capture_of_another_program_is_refused_with_the_command_that_converts_it(inspected: Inspect) -> None:
    with pytest.raises(BadInput, match=r"a\.bin: is a capture of Network Monitor; convert it: editcap -F pcap a\.bin "):
        inspected("a.bin", a_bin=b"GMBU\0\2\1\0" + bytes(64))


def test_no_link_pipe_or_foreign_file_in_a_folder_is_opened(inspected: Inspect, tmp_path: Path) -> None:
    (tmp_path / "incident").mkdir()
    (tmp_path / "incident" / "link").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "incident" / "pipe")
    found = inspected("incident", incident__a=overflowing())
    assert [each["name"] for each in found["inspection"]["files"]] == ["a"]
    assert found["passed"] == ["pipe: is a named pipe"]


@pytest.mark.parametrize(
    ("text", "message"), [("shop", "is not an address and a port"), ("1.2.3.4:0", "is not an address and a port")]
)
def test_a_server_is_an_address_and_a_port(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_server(text)


def test_a_log_has_a_kind() -> None:
    with pytest.raises(BadInput, match="did you mean 'haproxy'"):
        parse_logs(["haprox=a.log"])


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: apt-get install tshark")
def test_no_connection_of_tshark_s_list_is_missing_or_counted_twice(inspected: Inspect, tmp_path: Path) -> None:
    capture = overflowing()
    Connection(capture, f"{CLIENT}:1048", SERVER).refused(5)
    # Ports that are used again make a second stream.
    Connection(capture, "172.18.1.0:40000", SERVER, isn=77_000).handshake(50).ask(50.1).answer(50.2)
    found = inspected("a.pcap", a_pcap=capture)
    fields = ("tcp.stream", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport")
    command = ["tshark", "-n", "-r", str(tmp_path / "a.pcap"), "-T", "fields", *(f"-e{each}" for each in fields)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    streams: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        stream, *ends = line.split("\t")
        streams.setdefault(stream, tuple(ends))
    query = "SELECT client_address, client_port::VARCHAR, server_address, server_port::VARCHAR FROM read_parquet(?)"
    rows = duckdb.execute(query, [f"{found['folder']}/derived/connections.parquet"]).fetchall()
    assert sorted(rows) == sorted(streams.values())
    assert len(rows) == sum(by_outcome(found).values()) == 12


def test_the_folder_is_analysed_again_to_the_same_bytes(inspected: Inspect) -> None:
    found = inspected("a.pcap", nstat=("b.txt", "c.txt"), a_pcap=overflowing(), b_txt=nstat(0, 0), c_txt=nstat(18, 18))
    derived = found["folder"] / "derived"
    before = {path.name: path.read_bytes() for path in derived.iterdir()}
    run_results.analyse_run(found["folder"])
    assert {path.name: path.read_bytes() for path in derived.iterdir()} == before
    assert json.loads((found["folder"] / "manifest.json").read_text())["observed"]["targets"][0]["kind"] == "files"


NGINX_ERROR = (
    "2025/11/21 07:26:{:02} [error] 7#7: *{} upstream timed out (110: Connection timed out) while connecting to"
    ' upstream, client: 10.0.0.1, server: , request: "GET / HTTP/1.1", upstream: "http://172.18.0.2:8080/",'
    ' host: "shop"\n'
)
HAPROXY = (
    "Nov 21 07:26:40 lb haproxy[7]: {}:{} [21/Nov/2025:07:26:40.000] front back/srv1 0/0/-1/-1/5002 503 217 - - sC--"
    ' 1/1/1/1/3 0/0 "GET / HTTP/1.1"\n'
)
ACCESS = '10.0.0.1 - - [21/Nov/2025:07:26:40 +0100] "GET / HTTP/1.1" {} 167 "-" "curl/8"\n'


def test_a_log_is_told_apart_and_its_failures_stand_beside_the_packets(inspected: Inspect) -> None:
    lines = "".join(NGINX_ERROR.format(number, number) for number in range(6))
    found = inspected("a.pcap", "error.log", a_pcap=overflowing(), error_log=lines)
    (log,) = found["inspection"]["logs"]
    assert (log["kind"], log["lines"], log["failures"]) == ("nginx-error", 6, {"connect timeout": 6})
    assert log["servers"] == [{"server": SERVER, "failure": "connect timeout", "lines": 6, "connections": 6}]
    # Both ends of the same connections count them once.
    found = inspected("b.pcap", "c.pcap", "error.log", b_pcap=overflowing(), c_pcap=overflowing())
    assert found["inspection"]["logs"][0]["servers"][0]["connections"] == 6


def test_lines_of_haproxy_are_joined_with_their_client_s_connections(inspected: Inspect) -> None:
    lines = HAPROXY.format("172.18.2.0", 40000) + HAPROXY.format("172.18.9.9", 1) + "no line\n"
    found = inspected("a.pcap", a_pcap=overflowing(), h_log=lines, logs={"haproxy": ["h.log"]})
    (log,) = found["inspection"]["logs"]
    assert (log["lines"], log["unread"], log["joined"], log["failures"]) == (2, 1, 1, {"connect timeout": 2})
    assert log["first"] == "2025-11-21T07:26:40.000Z"


def test_an_access_log_tells_statuses_that_proxies_make(inspected: Inspect) -> None:
    lines = "".join(map(ACCESS.format, (200, 499, 502, 502, 504)))
    (log,) = inspected("access.log", access_log=lines)["inspection"]["logs"]
    assert (log["kind"], sum(log["failures"].values()), log["first"]) == ("nginx-access", 4, "2025-11-21T06:26:40.000Z")


def test_limits_that_a_log_names_have_advice_and_its_times_the_zone_of_the_host(inspected: Inspect) -> None:
    lines = "2025/11/21 07:26:40 [alert] 7#7: 512 worker_connections are not enough\n"
    found = inspected("lb", lb__access=ACCESS.format(503), lb__error=lines)
    assert "set it to at least twice what clients hold at once" in said(found)
    error = next(each for each in found["inspection"]["logs"] if each["kind"] == "nginx-error")
    assert (error["first"], error["zone_of"]) == ("2025-11-21T06:26:40.000Z", "access")


TEXTS = st.sampled_from([NGINX_ERROR.format(1, 1), HAPROXY.format("c", 1), ACCESS.format(499), '{"status": 499}', "["])


@given(st.data())
def test_no_line_breaks_the_reader_of_a_log(data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 9))
    line = (text[:at] + data.draw(st.text(max_size=9)) + text[at + length :]).encode("utf-8", "replace")
    for kind in given_logs.READERS:
        assert given_logs.read_log(kind, [line]).lines in (0, 1)


def test_a_real_run_s_capture_and_counters_give_the_causes_of_its_ledger(inspected: Inspect) -> None:
    """The dumps are what `nstat` and `ss -m` would have printed at two ticks of its collector."""
    example = paths.ROOT / "docs" / "example"
    collector = Places(example).collector("backend-1")
    counters: dict[str, int] = {}
    dumps: list[str] = []
    for record in map(json.loads, (collector / "samples.jsonl").read_text().splitlines()):
        counters |= record.get("counters", {})
        if any(each["port"] == 8080 for each in record.get("listen", [])):
            listening = "".join(
                f"LISTEN {each['depth']} {each['limit']} *:{each['port']} *:*\n skmem:(r0,o0,bl0,d{each['drops']})\n"
                for each in record["listen"]
            )
            told = {name.replace(".", ""): value for name, value in counters.items() if name.startswith("Tcp")}
            dumps.append(f"{record['time_us'] / 1e6:.6f}\n{listening}{nstat(0, 0, **told)}")
    capture = (collector / "capture.pcap").read_bytes()
    found = inspected("s.pcap", nstat=("b.txt", "a.txt"), s_pcap=capture, b_txt=dumps[0], a_txt=dumps[-1])
    ledger = json.loads((example / "derived" / "ledger.json").read_text())
    assert causes(found) == ledger["failed_causes"]
    assert found["unexplained"] == 0


def test_the_example_of_the_document_gives_what_it_shows() -> None:
    document = (paths.ROOT / "docs" / "inspect.md").read_text()
    example = paths.ROOT / "examples" / "incident"
    for shown, named, timeout_ms in (
        ("examples/incident/incident.pcap", example / "incident.pcap", None),
        ("examples/incident --connect-timeout 5s", example, 5_000),
    ):
        folder, _ = inspect([named], [], {}, InspectOptions(connect_timeout_ms=timeout_ms), [])
        printed = "\n".join(printing.connection_lines(printing.read_connections(folder), folder))
        assert document.partition(f"$ connlab inspect {shown}\n")[2].partition("\n```")[0] in printed


def test_several_dumps_with_times_make_a_series_of_each_counter(inspected: Inspect) -> None:
    def dump(second: int, overflows: int) -> str:
        return f"2026-11-26T11:45:{second:02d}+00:00\nTcpExtListenOverflows {overflows} 0.0\nTcpRetransSegs 7 0.0\n"

    sockets = "2026-11-26T11:45:03+00:00\nState Recv-Q Send-Q Local\nLISTEN 6 5 0.0.0.0:8000 0.0.0.0:*\n"
    found = inspected("dumps.txt", dumps_txt=dump(0, 100) + dump(2, 100) + sockets + dump(12, 150))
    query = "SELECT counter, from_us // 1000000, to_us // 1000000, growth FROM read_parquet(?)"
    assert duckdb.execute(query, [str(found["folder"] / COUNTERS)]).fetchall() == [
        ("TcpExt.ListenOverflows", 0, 2, 0), ("TcpExt.ListenOverflows", 2, 12, 50),
    ]  # fmt: skip
    assert '"points": [[0.0, 0.0], [2.0, 5.0], [12.0, 5.0], [12.0, null]]' in run_report.render(found["folder"])


def test_one_dump_of_a_socket_s_drops_between_two_of_counters_limits_no_overflows(inspected: Inspect) -> None:
    lost = Capture()
    for number in range(1, 5):
        Connection(lost, f"{CLIENT}:{41_000 + number}", SERVER, isn=7_000 * number).syns(10 + number / 10, 11, 13)
    sockets = "LISTEN 3 2 0.0.0.0:8080 0.0.0.0:*\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d7)\n"
    counters = "TcpExtListenOverflows {0} 0.0\nTcpExtListenDrops {0} 0.0\n".format
    begun = min(us for us, _ in lost.packets) // 1_000_000
    when = [datetime.fromtimestamp(begun + second, UTC).isoformat() + "\n" for second in (-2, 2, 6)]
    chat = when[0] + counters(5) + when[1] + sockets + when[2] + counters(17)
    found = inspected("incident", incident__node_pcap=lost, incident__chat_txt=chat)
    assert found["unexplained"] == 0
    assert [each["overflows"] for each in found["failed"]] == [12]
