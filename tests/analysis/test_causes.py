"""Each cause of the ledger's list: proven by its evidence, and not without it."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from analysis.derivation import judge
from tests.analysis.packets import ACK, RST, Capture, Connection
from tests.analysis.scenes import BACKEND, BEGIN_S, CLIENT, NGINX, Scene, found, kinds, proxied, scene
from tests.analysis.support import END_S, RunFolder, at_us, knob, make_access, make_capture

__all__ = ["found", "kinds", "proxied", "scene"]

Record = dict[str, Any]

# All in one process, which derives the scenes' common runs once.
pytestmark = pytest.mark.xdist_group("causes")


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="all tests run in one process")
def test_one_process_has_all_of_these_tests(request: pytest.FixtureRequest) -> None:
    """pytest-xdist marks the tests of a group by their ids, and assigns them by these."""
    assert request.node.nodeid.endswith("@causes")


def log(scene: Scene, status: int, lasted_s: float, **changes: object) -> None:
    line = make_access(BEGIN_S + lasted_s, status) | {"connection": 9, "remote_port": 41_000, "request_time": lasted_s}
    scene.run.lines["nginx/access.jsonl"].append(line | changes)


def complain(scene: Scene, text: str, after_s: int = 0) -> None:
    """A line of nginx's error log, in the second in which the request begins or so many after."""
    scene.run.texts["nginx/error.log"] = f"2025/11/21 07:27:{34 + after_s} [error] 7#7: {text}\n"


def answered(scene: Scene, lasted_s: float) -> None:
    """A request over a connection of its own, which has its answer so late."""
    scene.dial()
    scene.request(lasted_s, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + lasted_s - 0.001)


def test_a_request_that_timed_out_while_it_connected_leaves_its_dial_behind(scene: Scene) -> None:
    """The dial goes on when the request has timed out, until k6 ends."""
    scene.dial(error_kind="canceled", lasted_s=2.2)
    scene.request(2.002, connected=False, error_code=1050, error="request timeout")
    scene.connection().syns(BEGIN_S + 0.0001, BEGIN_S + 1.0001)
    cause, evidence = scene.cause()

    assert cause == "connect-timeout"
    assert "failed after 2.200 s (canceled); flow backend-1/1: 2 SYNs at" in evidence


def test_a_refused_dial_needs_the_server_s_rst(scene: Scene) -> None:
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)
    scene.connection().refused(BEGIN_S + 0.0001)
    cause, evidence = scene.cause()

    assert cause == "connection-refused"
    assert evidence.endswith("flow backend-1/1: the server answered with RST at 44.000 s")


def test_a_refused_dial_without_a_trace_on_the_wire_is_unexplained(scene: Scene) -> None:
    scene.dial(error_kind="refused")
    scene.request(0.0003, connected=False)

    assert scene.cause() == ("unexplained", "its connection is not in the capture")


@pytest.mark.parametrize(
    ("ports", "cause"), [("41001 41002", "ephemeral-ports-exhausted"), ("41001 41003", "unexplained")]
)
def test_ports_are_exhausted_only_if_all_of_the_range_are_held(scene: Scene, ports: str, cause: str) -> None:
    scene.run.manifest["sysctls"]["k6-1"]["net.ipv4.ip_local_port_range"] = ports.replace(" ", "\t")
    scene.dial(error_kind="address-not-available", local=None)
    scene.request(0.0003, connected=False)
    # One that is open, and one in TIME_WAIT.
    scene.connection(client="172.18.0.3:41001").handshake(BEGIN_S - 2)
    scene.connection(client="172.18.0.3:41002").handshake(BEGIN_S - 3).close_by_client(BEGIN_S - 1)

    found, evidence = scene.cause()
    assert found == cause
    assert cause == "unexplained" or evidence.endswith("; 2 of 2 ports were held, 1 in TIME_WAIT")


@pytest.mark.parametrize(("taken_s", "cause"), [(0.0001, "ephemeral-ports-exhausted"), (0.01, "unexplained")])
def test_the_last_port_may_be_taken_while_a_dial_begins(scene: Scene, taken_s: float, cause: str) -> None:
    scene.run.manifest["sysctls"]["k6-1"]["net.ipv4.ip_local_port_range"] = "41001\t41002"
    scene.dial(error_kind="address-not-available", local=None, lasted_s=0.0003)
    scene.request(0.0005, connected=False)
    scene.connection(client="172.18.0.3:41001").handshake(BEGIN_S - 2)
    scene.connection(client="172.18.0.3:41002").handshake(BEGIN_S + taken_s)

    assert scene.cause()[0] == cause


def test_a_dial_without_an_answer_and_without_a_drop_is_a_connect_timeout(scene: Scene) -> None:
    scene.dial(error_kind="timeout", lasted_s=2)
    scene.request(2, connected=False)
    scene.connection().syns(BEGIN_S + 0.0001, BEGIN_S + 1.0001)
    cause, evidence = scene.cause()

    assert cause == "connect-timeout"
    assert evidence.endswith("2 SYNs at 44.000 s, 45.000 s, none answered, none dropped by the server's kernel")


def counts(scene: Scene, **changed: tuple[int, int]) -> None:
    """Let the backend's kernel have counters: their values before the request and 1.1 s after it began."""
    for tick in scene.run.samples["backend-1"].ticks:
        late = tick["time_us"] >= at_us(BEGIN_S + 1.1)
        tick["counters"] = tick["counters"] | {name: values[late] for name, values in changed.items()}


SOCKETS = {"TcpExt.TCPSynRetrans": (3, 3), "TcpExt.SyncookiesSent": (1, 1)}


@pytest.mark.parametrize(
    ("counted", "cause", "said"),
    [
        ({}, "dropped-before-socket", "no counter says what dropped them"),
        ({"conntrack.drop": (1, 3)}, "dropped-before-socket", "it dropped 2 packets meanwhile"),
        (
            {"conntrack.table.entries": (60, 64), "conntrack.table.max": (64, 64)},
            "dropped-before-socket",
            "its table of connections (nf_conntrack) was full: 64 of 64",
        ),
        # The socket had the SYN and answered again, or with a cookie: the answers got lost.
        ({"TcpExt.TCPSynRetrans": (3, 4)}, "connect-timeout", ""),
        ({"TcpExt.SyncookiesSent": (1, 2)}, "connect-timeout", ""),
    ],
)
def test_a_syn_that_no_socket_had_was_dropped_before_it(
    scene: Scene, counted: dict[str, tuple[int, int]], cause: str, said: str
) -> None:
    scene.dial(error_kind="timeout", lasted_s=2)
    scene.request(2, connected=False)
    scene.connection().syns(BEGIN_S + 0.0001, BEGIN_S + 1.0001)
    counts(scene, **(SOCKETS | counted))

    found, evidence = scene.cause()
    assert found == cause
    assert said in evidence


@pytest.mark.parametrize(("kind", "cause"), [("unreachable", "unreachable"), ("refused", "unreachable")])
def test_a_dial_that_an_icmp_message_ended_is_unreachable(scene: Scene, kind: str, cause: str) -> None:
    scene.dial(error_kind=kind)
    scene.request(0.0005, connected=False)
    scene.connection().syns(BEGIN_S + 0.0001)

    found, evidence = scene.cause()
    assert found == cause
    assert "no packet of TCP answered" in evidence


def test_a_dial_of_which_the_server_saw_nothing_is_a_connect_timeout(scene: Scene) -> None:
    scene.dial(error_kind="timeout", lasted_s=2)
    scene.request(2, connected=False)

    assert scene.cause()[0] == "connect-timeout"


def test_a_reset_while_the_request_waits(scene: Scene) -> None:
    scene.dial()
    scene.request(0.5, error="read: connection reset by peer")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).reset_by_server(BEGIN_S + 0.5)

    assert scene.cause() == (
        "reset-by-peer", "flow backend-1/1: RST from backend-1 at 44.500 s; k6: read: connection reset by peer"
    )  # fmt: skip


@pytest.mark.parametrize("kept", [False, True])
def test_a_reset_of_the_client_s_own_is_none_by_its_peer(scene: Scene, *, kept: bool) -> None:
    """A client that has read less than came resets the connection, and the server's FIN or RST comes too late."""
    scene.dial()
    scene.request(0.5, error="request timeout")
    connection = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).reset_by_client(BEGIN_S + 0.5)
    if kept:
        connection.reset_by_server(BEGIN_S + 0.6)

    assert scene.cause()[0] == "unexplained"


@pytest.mark.parametrize(
    ("ends", "ended_s", "cause"),
    [
        (Connection.reset_by_server, -1, "unexplained"),
        (Connection.reset_by_server, 0.5, "reset-by-peer"),
        (Connection.reset_by_server, 1.45, "reset-by-peer"),
        (Connection.reset_by_server, 1.55, "unexplained"),
        (Connection.half_close_by_server, -1, "unexplained"),
        (Connection.half_close_by_server, 0.4, "closed-without-answer"),
        (Connection.half_close_by_server, 1.6, "unexplained"),
    ],
)
def test_a_reset_or_a_fin_ends_a_request_only_while_that_waits(
    scene: Scene, ends: Callable[[Connection, float], Connection], ended_s: float, cause: str
) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(0.5, reused=True)
    ends(scene.connection().handshake(BEGIN_S - 2), BEGIN_S + ended_s)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("ended_s", "cause"), [(0.4, "session-cut"), (-0.1, "unexplained"), (1.6, "unexplained")])
def test_a_session_that_the_server_closes_is_cut(scene: Scene, ended_s: float, cause: str) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 1))
    scene.request(0.5, status=101, protocol="websocket", error="websocket: close 1006", error_code=1000)
    connection = scene.connection().handshake(BEGIN_S - 1)
    connection.ask(BEGIN_S - 0.5).answer(BEGIN_S - 0.4).half_close_by_server(BEGIN_S + ended_s)

    assert scene.cause()[0] == cause


def test_a_client_that_closes_first_got_no_answer_for_its_own_reason(scene: Scene) -> None:
    scene.dial()
    scene.request(2, error="request timeout", error_code=1050)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).close_by_client(BEGIN_S + 2)

    assert scene.cause()[0] == "unexplained"


def test_a_close_that_a_reset_came_before_is_not_orderly(scene: Scene) -> None:
    """No kernel sends a FIN for a connection that it has reset: such a capture proves neither."""
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(0.5, reused=True)
    scene.connection().handshake(BEGIN_S - 2).reset_by_server(BEGIN_S - 1).half_close_by_server(BEGIN_S + 0.4)

    assert scene.cause()[0] == "unexplained"


def test_a_request_on_a_connection_that_the_server_had_just_closed(scene: Scene) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(0.01, reused=True, error="EOF")
    connection = scene.connection().handshake(BEGIN_S - 2).half_close_by_server(BEGIN_S - 0.001)
    connection.ask(BEGIN_S + 0.001).reset_by_server(BEGIN_S + 0.0011)

    assert scene.cause() == (
        "stale-keepalive",
        "flow backend-1/1: backend-1 closed the kept connection at 43.999 s, the request left at 44.001 s",
    )


def test_the_first_request_of_a_connection_went_out_on_no_stale_one(scene: Scene) -> None:
    scene.dial()
    scene.request(0.5, error="EOF")
    scene.connection().handshake(BEGIN_S).half_close_by_server(BEGIN_S + 0.001).ask(BEGIN_S + 0.002)

    assert scene.cause()[0] == "closed-without-answer"


@pytest.mark.parametrize(
    ("idle_s", "later_s", "cause"),
    [
        (20.0, 0.010, "stale-keepalive"),
        (20.0, 0.045, "stale-keepalive"),
        (20.0, 0.055, "closed-without-answer"),
        (19.9, 0.010, "closed-without-answer"),
    ],
)
def test_a_kept_connection_that_the_server_closes_as_the_client_asks(
    scene: Scene, idle_s: float, later_s: float, cause: str
) -> None:
    kept_until(scene, idle_s, later_s)

    assert scene.cause()[0] == cause


def test_how_long_the_backend_keeps_a_connection_says_nothing_of_the_proxy_s(proxied: Scene) -> None:
    proxied.run.clients["k6-1"].dials.clear()
    proxied.capture.packets.clear()
    kept_until(proxied, 20.0, 0.010)

    assert proxied.cause()[0] == "closed-without-answer"


@pytest.mark.parametrize(
    ("idle_s", "closes", "cause"), [(5, False, "flow-forgotten"), (0.5, False, "unexplained"), (5, True, "unexplained")]
)
def test_a_request_that_never_came_to_an_idle_connection(
    scene: Scene, idle_s: float, closes: object, cause: str
) -> None:
    asked_s = BEGIN_S - idle_s
    scene.dial(time_us=at_us(asked_s - 0.1))
    scene.request(3, reused=True, error="request timeout", code=1050)
    connection = scene.connection().handshake(asked_s - 0.1).ask(asked_s).answer(asked_s + 0.001)
    if closes:
        connection.close_by_server(BEGIN_S - 0.2)

    found, evidence = scene.cause()
    assert found == cause
    if cause == "flow-forgotten":
        assert evidence.startswith("flow backend-1/1: its last data came to backend-1 at ")


def kept_until(scene: Scene, idle_s: float, later_s: float) -> None:
    """A connection that the server closes so long after its last answer, and after it was asked again."""
    closed_s, answered_s = BEGIN_S + 0.001 + later_s, BEGIN_S + 0.001 + later_s - idle_s
    scene.dial(time_us=at_us(answered_s - 1))
    scene.request(0.1, reused=True, error="EOF")
    connection = scene.connection().handshake(answered_s - 1).ask(answered_s - 0.9).answer(answered_s)
    connection.ask(BEGIN_S + 0.001).close_by_server(closed_s)


@pytest.mark.parametrize(
    ("closes", "idle_s", "ended", "cause"),
    [
        (5, 1.0, (Connection.half_close_by_server, 0.010), "stale-keepalive"),
        (4, 1.0, (Connection.half_close_by_server, 0.010), "closed-without-answer"),
        (5, 0.9, (Connection.half_close_by_server, 0.010), "closed-without-answer"),
        (5, 1.0, (Connection.half_close_by_server, 0.100), "closed-without-answer"),
        (5, 1.0, (Connection.reset_by_server, 0.100), "stale-keepalive"),
        (5, 1.0, (Connection.reset_by_server, 1.100), "reset-by-peer"),
    ],
)
def test_how_long_a_server_keeps_a_connection_is_measured_from_its_closes(
    scene: Scene,
    closes: int,
    idle_s: float,
    ended: tuple[Callable[[Connection, float], Connection], float],
    cause: str,
) -> None:
    """Its own setting is not known. A RST without a FIN says that the request was not read."""
    ends, later_s = ended
    del scene.run.manifest["knobs"]["backend.keep_alive_timeout"]
    for number in range(closes):
        second = BEGIN_S - 3 + 0.1 * number
        connection = scene.connection(client=f"172.18.0.3:4200{number}").handshake(second).ask(second + 0.001)
        connection.answer(second + 0.002).close_by_server(second + 1.002 + 0.001 * number)
    closed_s = BEGIN_S + 0.001 + later_s
    scene.dial(time_us=at_us(closed_s - idle_s - 0.5))
    scene.request(later_s + 0.1, reused=True, error="EOF")
    connection = scene.connection().handshake(closed_s - idle_s - 0.5).ask(closed_s - idle_s - 0.1)
    ends(connection.answer(closed_s - idle_s).ask(BEGIN_S + 0.001), closed_s)
    found, evidence = scene.cause()

    assert found == cause
    if cause == "stale-keepalive":
        assert "; it closed 5 idle connections after 1.000 s" in evidence


@pytest.mark.parametrize(("before_s", "cause"), [(0.010, "stale-keepalive"), (0.060, "unexplained")])
def test_over_tls_the_client_s_times_tell_that_a_kept_connection_had_just_been_closed(
    scene: Scene, before_s: float, cause: str
) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(0.01, reused=True, tls_us=1, error="EOF")
    connection = scene.connection().handshake(BEGIN_S - 2).ask(BEGIN_S - 1.9).answer(BEGIN_S - 1.8)
    connection.half_close_by_server(BEGIN_S - before_s).ask(BEGIN_S + 0.001)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("gone", "cause"), [(True, "process-ended"), (False, "reset-by-peer")])
def test_a_process_that_ended_takes_its_connections_with_it(scene: Scene, *, gone: bool, cause: str) -> None:
    for reading in scene.run.samples["backend-1"].slow:
        if gone and reading["kind"] == "processes" and reading["time_us"] > at_us(BEGIN_S + 0.3):
            reading["processes"] = [one for one in reading["processes"] if one["comm"] != "java"]
    scene.dial()
    scene.request(0.3, error="read: connection reset by peer")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).reset_by_server(BEGIN_S + 0.3)
    found, evidence = scene.cause()

    assert found == cause
    if gone:
        assert "before the request was read; process" in evidence
        assert "(java) ended between 43.500 s and 44.500 s" in evidence


@pytest.mark.parametrize(
    ("files", "later_s", "cause"),
    [
        (60, 0.002, "server-connections-exhausted"),
        (61, 0.002, "reset-by-peer"),
        (60, 0.060, "reset-by-peer"),
    ],
)
def test_a_process_that_may_open_no_more_files_closes_what_comes(
    scene: Scene, files: int, later_s: float, cause: str
) -> None:
    for reading in scene.run.samples["backend-1"].slow:
        for process in reading.get("processes", []):
            process["open_files_limit"] = files
    scene.dial()
    scene.request(later_s, error="read: connection reset by peer")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).reset_by_server(BEGIN_S + later_s)
    found, evidence = scene.cause()

    assert found == cause
    if cause == "server-connections-exhausted":
        assert "while it held 0 others; process 12 (java) had 60 files open, as many as it may" in evidence


@pytest.mark.parametrize(
    ("error", "answered_s", "sent_s", "cause"),
    [
        ("write: broken pipe", 0.002, 0.0015, "closed-while-sending"),
        ("write: connection reset by peer", 0.002, 0.0015, "closed-while-sending"),
        # Its data after the answer says the same.
        ("read: connection reset by peer", 0.002, 0.0025, "closed-while-sending"),
        ("read: connection reset by peer", 0.002, 0.0015, "reset-by-peer"),
        # What came before the request is no answer to it.
        ("write: broken pipe", -0.5, 0.0015, "stale-keepalive"),
    ],
)
def test_a_server_that_answers_and_closes_while_its_client_sends(
    scene: Scene, error: str, answered_s: float, sent_s: float, cause: str
) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 1))
    scene.request(0.01, error=error, reused=True)
    data = [(BEGIN_S + 0.001, True), (BEGIN_S + sent_s, True), (BEGIN_S + answered_s, False)]
    connection = scene.connection().handshake(BEGIN_S - 1)
    for second, is_request in sorted(data):
        (connection.ask if is_request else connection.answer)(second)
    connection.reset_by_server(BEGIN_S + (0.003 if answered_s > 0 else 0.0005))
    found, evidence = scene.cause()

    assert found == cause
    if cause == "closed-while-sending":
        assert "backend-1 had its last data at 44.002 s, and closed the connection at 44.003 s (RST); k6: " in evidence


@pytest.mark.parametrize(
    ("status", "complaint", "unsent", "cause"),
    [
        (502, "writev() failed (32: Broken pipe) while sending request to upstream", 0, "closed-while-sending"),
        (502, "upstream prematurely closed connection while reading response header", 0, "upstream-failed"),
        (0, "readv() failed (104: Connection reset by peer) while reading upstream", 80_000, "closed-while-sending"),
        (0, "readv() failed (104: Connection reset by peer) while reading upstream", 0, "unexplained"),
    ],
)
def test_a_server_that_answers_and_closes_while_a_proxy_sends(
    proxied: Scene, status: int, complaint: str, unsent: int, cause: str
) -> None:
    proxied.request(0.3, status=status, error="" if status else "unexpected EOF", receiving_us=90)
    lengths = {"request_length": 100_000, "upstream_bytes_sent": str(100_000 - unsent)}
    times = KEPT if status else {"upstream_connect_time": "0.000", "upstream_header_time": "0.290"}
    log(
        proxied,
        status or 413,
        0.3,
        upstream_status=str(status or 413),
        upstream_response_time="0.298",
        **times,
        **lengths,
    )
    complain(proxied, f"*9 {complaint}")
    for port in (50_000, 50_001):
        connection = proxied.connection(BACKEND, f"172.18.0.4:{port}").handshake(BEGIN_S - 0.3).ask(BEGIN_S + 0.003)
        connection.answer(BEGIN_S + 0.29).ask(BEGIN_S + 0.291).reset_by_server(BEGIN_S + 0.292)

    assert proxied.cause()[0] == cause


@pytest.mark.parametrize(
    ("ends", "cause"),
    [
        (Connection.half_close_by_server, "stream-cut-by-server"),
        (Connection.reset_by_server, "stream-cut-by-server"),
        (Connection.half_close_by_client, "stream-idle"),
    ],
)
def test_an_answer_that_began_and_did_not_end(
    scene: Scene, ends: Callable[[Connection, float], Connection], cause: str
) -> None:
    scene.dial()
    scene.request(2, error="unexpected EOF", receiving_us=1_900_000)
    connection = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.1)
    ends(connection, BEGIN_S + 2)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(
    ("error", "cause"),
    [("invalid byte in chunk length", "stream-cut-by-server"), ("request timeout", "stream-idle")],
)
def test_a_server_adds_an_error_page_in_the_midst_of_its_answer(scene: Scene, error: str, cause: str) -> None:
    """The client reads what is no chunk of the answer, and is the first to close."""
    scene.dial()
    scene.request(2, error=error, receiving_us=1_900_000)
    last_s = BEGIN_S + (1.999 if cause == "stream-cut-by-server" else 0.1)
    connection = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.05).answer(last_s)
    connection.half_close_by_client(BEGIN_S + 2).half_close_by_server(BEGIN_S + 2.001)
    found, evidence = scene.cause()

    assert found == cause
    assert ("is no part of the answer" in evidence) == (cause == "stream-cut-by-server")


@pytest.mark.parametrize(("first_s", "cause"), [(0.1, "stream-idle"), (1.9, "unexplained")])
def test_a_server_goes_on_with_an_answer_that_its_client_has_left(scene: Scene, first_s: float, cause: str) -> None:
    scene.dial()
    scene.request(2, error="request timeout", receiving_us=1_900_000)
    connection = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + first_s)
    connection.half_close_by_client(BEGIN_S + 2).answer(BEGIN_S + 3)
    found, evidence = scene.cause()

    assert found == cause
    if found == "stream-idle":
        assert "the client gave up 1.900 s later; the server went on until 47.000 s" in evidence


def test_a_client_gives_up_on_an_answer_that_still_comes(scene: Scene) -> None:
    scene.run.manifest["roles"]["backend"]["scrape"] = {}
    scene.dial()
    scene.request(2, error="request timeout", receiving_us=1_900_000)
    connection = scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001)
    for n in range(1, 5):
        connection.answer(BEGIN_S + 0.4 * n)
    connection.half_close_by_client(BEGIN_S + 2)
    found, evidence = scene.cause()

    assert found == "time-in-server"
    assert ", and was still answering 1." in evidence


def test_an_answer_that_is_an_error(scene: Scene) -> None:
    scene.dial()
    scene.request(0.01, status=404)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.009)

    assert scene.cause()[0] == "error-status"


@pytest.mark.parametrize(("depths", "cause"), [((4, 4), "unix-socket-full"), ((4, 3), "error-status")])
def test_a_unix_socket_that_is_full_on_both_sides_of_a_502_refused_it(
    scene: Scene, depths: tuple[int, int], cause: str
) -> None:
    scene.dial()
    scene.request(0.01, status=502)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.009)
    ticks = scene.run.samples["backend-1"].ticks
    after = next(number for number, tick in enumerate(ticks) if tick["time_us"] >= at_us(BEGIN_S + 0.009))
    for tick, depth in zip(ticks[after - 1 : after + 1], depths, strict=True):
        tick["unix"] = [{"path": "/run/app.sock", "depth": depth, "limit": 3}]

    found, evidence = scene.cause()
    assert found == cause
    if found == "unix-socket-full":
        assert "the queue of unix:/run/app.sock held up to 4 then (limit 3)" in evidence


def overflow(scene: Scene) -> None:
    """Let the backend's kernel count a SYN that met a full queue as the request begins."""
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S + 0.05, 70):
        for name in ("TcpExt.ListenOverflows", "TcpExt.ListenDrops"):
            tick["counters"][name] += 1


@pytest.mark.parametrize(
    ("overflows", "cause", "more"),
    [(1, "waited-for-syn-retry", ""), (0, "syn-lost", "; the server's kernel dropped none of them")],
)
def test_a_lost_syn_that_a_later_one_recovered_makes_a_request_slow(
    scene: Scene, overflows: int, cause: str, more: str
) -> None:
    scene.dial(lasted_s=1.0003)
    scene.request(1.1, status=200)
    scene.connection().syns(BEGIN_S).handshake(BEGIN_S + 1).ask(BEGIN_S + 1.001).answer(BEGIN_S + 1.0995)
    if overflows:
        overflow(scene)

    assert scene.cause() == (
        cause,
        f"flow backend-1/1: 2 SYNs at 44.000 s, 45.000 s, answered at 45.000 s (1.000 s of 1.100 s){more}",
    )


@pytest.mark.parametrize(("again", "cause"), [(1, "syn-lost"), (0, "unexplained")])
def test_a_syn_that_never_came_is_known_from_the_client_s_counter(scene: Scene, again: int, cause: str) -> None:
    scene.dial(lasted_s=1.0003)
    scene.request(1.1, status=200)
    scene.connection().handshake(BEGIN_S + 1).ask(BEGIN_S + 1.001).answer(BEGIN_S + 1.0995)
    for tick in scene.run.samples["k6-1"].tick_between(0, 90):
        sent_again = again if tick["time_us"] > at_us(BEGIN_S + 0.95) else 0
        tick["counters"]["TcpExt.TCPSynRetrans"] = sent_again

    found, evidence = scene.cause()
    assert found == cause
    if again:
        came = "the dial began at 44.000 s, and the first SYN that came to backend-1 did at 45.000 s"
        assert evidence.startswith(f"flow backend-1/1: {came} (1.0")


def test_parts_that_explain_the_whole_only_together_name_the_greatest(scene: Scene) -> None:
    scene.dial(lasted_s=1.0003)
    scene.request(2.8, status=200)
    overflow(scene)
    # A second for the SYN, another in the accept queue: less than half each, and more than half together.
    scene.connection().syns(BEGIN_S).handshake(BEGIN_S + 1).ask(BEGIN_S + 1.001).answer(BEGIN_S + 2.79)
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S + 1, BEGIN_S + 2):
        tick["listen"][0]["depth"] = 1

    assert scene.cause()[0] == "waited-for-syn-retry"


@pytest.mark.parametrize(("waited_s", "cause"), [(0.6, "waited-in-accept-queue"), (0.4, "unexplained")])
def test_less_than_half_is_the_cause_if_without_it_the_request_is_not_slow(
    scene: Scene, waited_s: float, cause: str
) -> None:
    answered(scene, 1.5)
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S, BEGIN_S + waited_s + 0.05):
        tick["listen"][0]["depth"] = 1

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("waited_s", "cause"), [(0.0, "time-in-server"), (2.5, "waited-in-accept-queue")])
def test_a_client_that_left_a_server_which_tells_nothing_of_itself(scene: Scene, waited_s: float, cause: str) -> None:
    """What waited inside the server's own namespace meanwhile stands beside it."""
    scene.run.manifest["roles"]["backend"]["scrape"] = {}
    for tick in scene.run.samples["backend-1"].ticks:
        if at_us(BEGIN_S) <= tick["time_us"] <= at_us(BEGIN_S + waited_s + 0.05):
            tick["listen"][0]["depth"] = int(waited_s > 0)
        inner = {"address": "127.0.0.1", "port": 9000, "depth": 7, "limit": 6, "drops": 0}
        tick["listen"] = [*tick["listen"], inner]
    scene.dial()
    scene.request(3, error="request timeout", error_code=1050)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).close_by_client(BEGIN_S + 3)
    found, evidence = scene.cause()

    assert found == cause
    if cause == "time-in-server":
        assert "and its client left without an answer 2.9" in evidence
        assert "; up to 7 waited meanwhile at its port 9000 (limit 6)" in evidence


def two_queues(scene: Scene, unaccepted: float, *, port: int = 41_000) -> None:
    """Two processes listen on the backend's port, and a connection is not accepted so long after the request's begin.

    The second queue holds two connections all the time, one more than its limit, and the first none.
    """
    samples = scene.run.samples["backend-1"]
    for tick in samples.ticks:
        (one,) = tick["listen"]
        tick["listen"] = [one | {"inode": 71, "limit": 4, "drops": 0}, one | {"inode": 72, "depth": 2}]
    for reading in samples.slow:
        if reading["kind"] == "sockets":
            waits = at_us(BEGIN_S) <= reading["time_us"] <= at_us(BEGIN_S + unaccepted)
            end = {"local": "172.18.0.2", "port": 8080, "peer": "172.18.0.3", "peer_port": port}
            reading["unaccepted"] = [end] if waits else []


@pytest.mark.parametrize(
    ("port", "waited_s", "cause"),
    [(41_000, 2.6, "waited-in-accept-queue"), (41_000, 0.6, "unexplained"), (41_001, 2.6, "unexplained")],
)
def test_of_two_queues_of_a_port_the_kernel_s_sockets_say_that_no_program_had_the_connection(
    scene: Scene, port: int, waited_s: float, cause: str
) -> None:
    two_queues(scene, waited_s, port=port)
    scene.dial()
    scene.request(3, error="request timeout", error_code=1050)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).close_by_client(BEGIN_S + 3)
    found, evidence = scene.cause()

    assert found == cause
    if cause == "waited-in-accept-queue":
        assert "in the accept queue of backend-1 until 46.500 s or later (2.5" in evidence


def test_a_syn_was_dropped_by_one_of_two_queues(scene: Scene) -> None:
    two_queues(scene, 0)
    scene.dial(error_kind="timeout", lasted_s=2)
    scene.request(2, connected=False)
    scene.connection().syns(BEGIN_S + 0.0001, BEGIN_S + 1.0001)
    grow(scene, "TcpExt.ListenOverflows", "TcpExt.ListenDrops")
    for tick in scene.run.samples["backend-1"].ticks:
        tick["listen"][1]["drops"] = tick["counters"]["TcpExt.ListenDrops"]
    cause, evidence = scene.cause()

    assert cause == "accept-queue-drop"
    assert "around each, accept queue 2 of the 2 of backend-1 held 2 (limit 1)" in evidence


def test_a_wait_in_the_queue_says_whose_clients_ahead_had_left(scene: Scene) -> None:
    answered(scene, 1.5)
    ahead = scene.connection(client="172.18.0.3:41001").handshake(BEGIN_S - 0.45).ask(BEGIN_S - 0.44)
    ahead.half_close_by_client(BEGIN_S + 0.2)
    for second, depth in ((BEGIN_S - 0.45, 1), (BEGIN_S, 2)):
        for tick in scene.run.samples["backend-1"].tick_between(second, BEGIN_S + 0.85):
            tick["listen"][0]["depth"] = depth

    found, evidence = scene.cause()
    assert found == "waited-in-accept-queue", evidence
    assert "; of 1 ahead of it there, the clients of at least 1 had left" in evidence


def busy(scene: Scene, threads: int) -> None:
    """Tomcat with two threads: what is busy, and a work that grows by a second in each second."""
    for scrape in scene.run.lines["backend-1/tomcat.jsonl"]:
        second = (scrape["time_us"] - at_us(0)) // 1_000_000
        scrape["body"]["threads"] |= {"busy": threads, "max": 2}
        scrape["body"]["requests"] |= {"processingMs": 1000 * second, "count": 10 * second}


@pytest.mark.parametrize(("threads", "cause"), [(1, "slow-handler"), (2, "waited-for-a-thread")])
def test_a_late_answer_is_the_handler_s_while_there_are_threads(scene: Scene, threads: int, cause: str) -> None:
    busy(scene, threads)
    answered(scene, 4)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("waiting", "cause"), [(0, "slow-handler"), (1, "unexplained")])
def test_the_handler_is_slow_only_if_nobody_waits_to_be_accepted(scene: Scene, waiting: int, cause: str) -> None:
    """With two listeners on one port nobody knows which connection is in which queue."""
    busy(scene, 1)
    for tick in scene.run.samples["backend-1"].ticks:
        tick["listen"] *= 2
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S + 1, BEGIN_S + 2):
        tick["listen"] = [tick["listen"][0] | {"depth": waiting}, tick["listen"][1]]
    answered(scene, 4)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("busy_from_s", "cause"), [(0.5, "waited-for-a-thread"), (2.5, "unexplained")])
def test_a_burst_waits_for_threads_that_were_free_before_it(scene: Scene, busy_from_s: float, cause: str) -> None:
    busy(scene, 2)
    for scrape in scene.run.lines["backend-1/tomcat.jsonl"]:
        if scrape["time_us"] < at_us(BEGIN_S + busy_from_s):
            scrape["body"]["threads"]["busy"] = 0
    answered(scene, 4)

    assert scene.cause()[0] == cause


def test_the_middle_of_a_burst_does_not_show_yet_that_all_threads_are_busy(scene: Scene) -> None:
    """Nor do quick requests about that time count for the handler's average time of 2 s."""
    busy(scene, 2)
    scrapes = scene.run.lines["backend-1/tomcat.jsonl"]
    during = next(scrape for scrape in scrapes if scrape["time_us"] > at_us(BEGIN_S - 0.001))
    during["time_us"] = at_us(BEGIN_S + 0.02)
    for number, scrape in enumerate(scrapes, -scrapes.index(during)):
        scrape["body"]["threads"]["busy"] = 2 if 1 <= number <= 4 else 1
        served = 100 + number if number > 0 else 60
        scrape["body"]["requests"] |= {"processingMs": 2000 * max(number, 0), "count": served}
    answered(scene, 6.4)

    assert scene.cause()[0] == "waited-for-a-thread"


@pytest.mark.parametrize(("busy_until_s", "cause"), [(2.5, "waited-for-a-thread"), (1.5, "unexplained")])
def test_the_last_requests_wait_for_all_threads_and_take_fewer(scene: Scene, busy_until_s: float, cause: str) -> None:
    """The handler takes 2 s of the 4 s: threads that are free while it works on a request say nothing of its wait."""
    busy(scene, 2)
    for scrape in scene.run.lines["backend-1/tomcat.jsonl"]:
        second = (scrape["time_us"] - at_us(0)) // 1_000_000
        scrape["body"]["requests"] |= {"processingMs": 2000 * second, "count": second}
        if scrape["time_us"] > at_us(BEGIN_S + busy_until_s):
            scrape["body"]["threads"]["busy"] = 1
    answered(scene, 4.2)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(
    ("blocked", "cause"), [(0, "slow-handler"), (1, "waited-for-event-loop"), (2, "waited-for-event-loop")]
)
def test_a_request_waits_for_its_own_event_loop_though_others_are_free(scene: Scene, blocked: int, cause: str) -> None:
    scene.run.manifest["roles"]["backend"]["limits"]["event_loops"] = "threads_max"
    busy(scene, blocked)
    answered(scene, 4)

    assert scene.cause()[0] == cause


def without_readings(scene: Scene, from_s: float, to_s: float) -> None:
    scene.run.lines["backend-1/tomcat.jsonl"] = [
        scrape
        for scrape in scene.run.lines["backend-1/tomcat.jsonl"]
        if not at_us(from_s) <= scrape["time_us"] <= at_us(to_s)
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_hole_in_the_readings_proves_nothing_of_threads(scene: Scene, threads: int) -> None:
    busy(scene, threads)
    without_readings(scene, BEGIN_S + 1, BEGIN_S + 3)
    answered(scene, 3.4)

    assert scene.cause()[0] == "time-in-server"


@pytest.mark.parametrize(
    ("before", "after", "requests_a_second", "cause"),
    [
        (1, 1, 1, "slow-handler"),
        # Waves of a quarter of a second may have come and gone between the two readings.
        (1, 1, 4, "time-in-server"),
        (2, 1, 4, "time-in-server"),
        (1, 2, 4, "time-in-server"),
        (2, 2, 4, "waited-for-a-thread"),
    ],
)
def test_between_two_readings_both_must_tell(
    scene: Scene, before: int, after: int, requests_a_second: int, cause: str
) -> None:
    busy(scene, before)
    without_readings(scene, BEGIN_S + 0.5, BEGIN_S + 1.5)
    for scrape in scene.run.lines["backend-1/tomcat.jsonl"]:
        second = (scrape["time_us"] - at_us(0)) // 1_000_000
        scrape["body"]["requests"]["count"] = requests_a_second * second
        if scrape["time_us"] > at_us(BEGIN_S + 1):
            scrape["body"]["threads"]["busy"] = after
    answered(scene, 1.5)

    assert scene.cause()[0] == cause


def test_a_late_answer_without_scrapes_is_unexplained(scene: Scene) -> None:
    scene.run.lines["backend-1/tomcat.jsonl"] = []
    answered(scene, 4)

    assert scene.cause() == ("unexplained", "the proven waits take 1.0 ms of its 4.000 s")


@pytest.mark.parametrize(("idle", "cause"), [(0, "generator-starved"), (1_000, "unexplained")])
def test_an_answer_taken_late_is_the_generator_s_fault_on_a_busy_machine(scene: Scene, idle: int, cause: str) -> None:
    for samples in scene.run.samples.values():
        for reading in samples.slow:
            if reading["kind"] == "processes":
                reading["host"]["cpu_idle_ms"] = idle * (reading["time_us"] - at_us(0)) // 1_000_000
    scene.dial()
    scene.request(4, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.5)

    assert scene.cause()[0] == cause


@pytest.mark.parametrize(("idle_ms", "cause"), [(0, "generator-starved"), (20, "unexplained")])
def test_the_processors_are_judged_while_the_answer_waited_and_not_in_the_second_around(
    scene: Scene, idle_ms: int, cause: str
) -> None:
    for samples in scene.run.samples.values():
        idle = 0
        for tick in samples.ticks:
            second = (tick["time_us"] - at_us(0)) / 1_000_000
            idle += idle_ms if BEGIN_S + 0.15 < second < BEGIN_S + 1.45 else 150
            tick["host"] = {"cpu_total_ms": round(second * 2000), "cpu_idle_ms": idle}
    scene.dial()
    scene.request(1.35, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.15)

    assert scene.cause()[0] == cause


def test_a_request_that_waited_for_a_pooled_connection(scene: Scene) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(2, status=200, reused=True, blocked_us=1_900_000)
    scene.connection().handshake(BEGIN_S - 2).ask(BEGIN_S + 1.901).answer(BEGIN_S + 1.999)

    assert scene.cause()[0] == "waited-for-a-connection"


def sent_again(scene: Scene, closed_s: float, again_us: int = 1_500_000) -> None:
    """A request of HTTP/2 that went first on a connection that the client closed so late, and again after so long."""
    scene.dial(time_us=at_us(BEGIN_S + 1), id=2)
    scene.run.clients["k6-1"].dials += [
        {"kind": "close", "id": 1, "time_us": at_us(closed_s), "bytes_sent": 1, "bytes_received": 1, "error": None},
        {"kind": "close", "id": 2, "time_us": at_us(BEGIN_S + 9), "bytes_sent": 1, "bytes_received": 1, "error": None},
    ]
    scene.request(
        2, status=200, dial=2, protocol="http2", sent_again=1, first_dial=1, again_us=again_us, blocked_us=1_500_000
    )
    scene.connection().handshake(BEGIN_S + 1).ask(BEGIN_S + 1.501).answer(BEGIN_S + 1.999)


@pytest.mark.parametrize(("closed_s", "cause"), [(BEGIN_S + 0.01, "goaway"), (BEGIN_S + 5, "stream-refused")])
def test_a_request_sent_again_was_sent_away_or_refused(scene: Scene, closed_s: float, cause: str) -> None:
    sent_again(scene, closed_s)

    assert scene.cause()[0] == cause


def test_a_request_sent_again_may_have_waited_longer_for_its_first_connection(scene: Scene) -> None:
    scene.dial(id=1)
    sent_again(scene, BEGIN_S + 5, again_us=300_000)
    cause, evidence = scene.cause()

    assert cause == "waited-for-tls-handshake"
    assert evidence.startswith("dial k6-1/1 was connected at ")


def test_a_request_that_a_proxy_closed_upon_was_slow_for_that(proxied: Scene) -> None:
    """HAProxy tried its server in vain, and answered by the end of a kept connection; its line says the rest."""
    proxied.dial(time_us=at_us(BEGIN_S + 1.9), id=2, local="172.18.0.3:41001")
    proxied.request(
        2, status=200, dial=2, sent_again=1, first_dial=1, again_us=1_900_000, blocked_us=1_901_000, reused=False
    )
    log(proxied, 503, 1.9, **NO_CONNECTION)
    log(proxied, 200, 2, remote_port=41_001, connection=10)
    proxied.connection(client="172.18.0.3:41001").handshake(BEGIN_S + 1.9).ask(BEGIN_S + 1.902).answer(BEGIN_S + 1.999)
    cause, evidence = proxied.cause()

    assert cause == "closed-without-answer"
    assert "sent the request again over another one, after 1.900 s of 2.000 s" in evidence
    assert evidence.endswith("line 1: status 503 at 45.900 s for the first one, which it had tried at 172.18.0.2:8080")


def test_a_request_sent_again_is_unexplained_if_nobody_knows_what_became_of_its_first_connection(scene: Scene) -> None:
    sent_again(scene, BEGIN_S)
    scene.run.clients["k6-1"].dials[1:] = []

    assert scene.cause()[0] == "unexplained"


@pytest.mark.parametrize(
    ("code", "cause"),
    [(1611, "goaway"), (1638, "stream-refused"), (1642, "stream-refused"), (1639, "unexplained")],
)
def test_an_error_of_http_2_names_its_cause(scene: Scene, code: int, cause: str) -> None:
    scene.dial()
    scene.request(0.5, protocol="http2", error_code=code, error="http2: …")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001)

    assert scene.cause()[0] == cause


def test_a_call_that_met_a_goaway_on_its_way(scene: Scene) -> None:
    scene.dial()
    scene.request(0.5, protocol="grpc", error_code=1000, error="Unavailable: the connection is draining")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001)

    assert scene.cause()[0] == "goaway"


def test_a_call_that_its_connection_had_no_stream_for(scene: Scene) -> None:
    scene.dial(time_us=at_us(BEGIN_S - 2))
    scene.request(2, status=200, protocol="grpc", reused=True, blocked_us=1_900_000)
    scene.connection().handshake(BEGIN_S - 2).ask(BEGIN_S + 1.901).answer(BEGIN_S + 1.999)

    assert scene.cause()[0] == "waited-for-a-stream"


NO_CONNECTION = {"upstream_connect_time": "-", "upstream_header_time": "-"}
# A try that was connected, or went over a kept connection, and got no header.
KEPT = {"upstream_connect_time": "0.000", "upstream_header_time": "-"}


def test_a_backend_that_answers_too_late_for_the_proxy(proxied: Scene) -> None:
    proxied.request(2, status=504)
    log(proxied, 504, 2, upstream_status="504", upstream_header_time="-", upstream_response_time="2.000")
    proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 0.0015)

    assert proxied.cause()[0] == "upstream-timeout"


def test_a_backend_whose_process_ended_while_a_proxy_waited(proxied: Scene) -> None:
    for reading in proxied.run.samples["backend-1"].slow:
        if reading["kind"] == "processes" and reading["time_us"] > at_us(BEGIN_S + 0.3):
            reading["processes"] = [one for one in reading["processes"] if one["comm"] != "java"]
    proxied.request(0.302, status=502)
    log(proxied, 502, 0.302, upstream_status="502", upstream_header_time="-", upstream_response_time="0.300")
    upstream = proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 0.0015)
    upstream.ask(BEGIN_S + 0.002).reset_by_server(BEGIN_S + 0.301)
    cause, evidence = proxied.cause()

    assert cause == "process-ended"
    assert evidence.endswith("; process 12 (java) ended between 43.500 s and 44.500 s")


def test_a_backend_that_breaks_off_is_told_by_a_log_with_lines_that_are_none(proxied: Scene) -> None:
    proxied.request(0.2, status=502)
    log(proxied, 502, 0.2, upstream_status="502", upstream_header_time="-", upstream_response_time="0.198")
    complain(proxied, "*9 upstream prematurely closed connection while reading response header from upstream")
    said = proxied.run.texts["nginx/error.log"]
    others = said.replace("*9", "*8") * 10_000
    proxied.run.texts["nginx/error.log"] = "\0" * 200_000 + said.rstrip() + "\n" + others + said
    cause, evidence = proxied.cause()

    assert cause == "upstream-failed"
    assert "error.log line 10002: upstream prematurely closed connection" in evidence


@pytest.mark.parametrize(("status", "logged"), [(502, True), (502, False), (503, False)])
def test_a_backend_whose_icmp_message_refuses_the_proxy_is_unreachable(
    proxied: Scene, status: int, *, logged: bool
) -> None:
    """HAProxy and Apache log no error number: the try failed at once, and nothing answered the SYN."""
    proxied.request(0.002, status=status)
    of_try = {"upstream_status": "502" if status == 502 else "-", "upstream_response_time": "0.000"}
    log(proxied, status, 0.002, **of_try, **NO_CONNECTION)
    if logged:
        complain(proxied, "*9 connect() failed (111: Connection refused) while connecting to upstream")
    proxied.connection(BACKEND, "172.18.0.4:50000").syns(BEGIN_S + 0.002)

    assert proxied.cause()[0] == "unreachable"


def test_a_client_s_port_to_each_address_of_nginx_is_two_connections(proxied: Scene) -> None:
    proxied.run.manifest["addresses"]["nginx"].append("172.18.0.14")
    other = proxied.dial() | {"id": 2, "time_us": at_us(BEGIN_S + 0.0005), "remote": "172.18.0.14:8080"}
    proxied.run.clients["k6-1"].dials[1:] = [other]
    proxied.connection("172.18.0.14:8080").handshake(BEGIN_S + 0.0005).ask(BEGIN_S + 0.0006)
    proxied.request(0.002, status=502)
    log(proxied, 502, 0.002, upstream_status="502", upstream_response_time="0.000", **NO_CONNECTION)
    proxied.connection(BACKEND, "172.18.0.4:50000").refused(BEGIN_S + 0.002)

    assert proxied.cause()[0] == "connection-refused"


def test_a_proxy_without_a_port(proxied: Scene) -> None:
    proxied.request(0.002, status=502)
    log(proxied, 502, 0.002, upstream_status="502", upstream_response_time="0.000", **NO_CONNECTION)
    complain(proxied, "*9 connect() to 172.18.0.2:8080 failed (99: Cannot assign requested address)")

    assert proxied.cause()[0] == "ephemeral-ports-exhausted"


@pytest.mark.parametrize(("dropped", "cause"), [(True, "accept-queue-drop"), (False, "connect-timeout")])
def test_a_proxy_that_finds_the_backend_s_queue_full_or_nothing_at_all(
    proxied: Scene, *, dropped: bool, cause: str
) -> None:
    proxied.request(2, status=504)
    log(proxied, 504, 2, upstream_status="504", upstream_response_time="1.998", **NO_CONNECTION)
    proxied.connection(BACKEND, "172.18.0.4:50000").syns(BEGIN_S + 0.002, BEGIN_S + 1.002)
    if dropped:
        for start_s, drops in ((BEGIN_S, 1), (BEGIN_S + 1, 2)):
            for tick in proxied.run.samples["backend-1"].tick_between(start_s + 0.05, 70):
                for name in ("TcpExt.ListenOverflows", "TcpExt.ListenDrops"):
                    tick["counters"][name] = 7 + drops
    found, evidence = proxied.cause()

    assert found == cause
    assert "the proxy tried 172.18.0.2:8080 at 44.002 s; flow nginx/2: 2 SYNs" in evidence


@pytest.mark.parametrize(
    ("again", "others", "cause", "says"),
    [
        (
            1,
            0,
            "syn-lost",
            "; flow backend-1/1: the first SYN that came to backend-1 did at 45.002 s (1.000 s of 1.100 s)",
        ),
        # Two that came together: whichever it was, the try's own first SYN was lost.
        (
            1,
            1,
            "syn-lost",
            "; of 2 connections that may have been its own, the first SYN that came did so at 45.002 s",
        ),
        (0, 0, "unexplained", ""),
    ],
)
def test_a_proxy_s_syn_that_never_came_is_known_from_its_counter(
    proxied: Scene, again: int, others: int, cause: str, says: str
) -> None:
    capture = seen_by_the_backend(proxied)
    proxied.request(1.1, status=200)
    times = {"upstream_connect_time": "1.000", "upstream_header_time": "1.098", "upstream_response_time": "1.098"}
    log(proxied, 200, 1.1, **times)
    for each in range(1 + others):
        Connection(capture, f"172.18.0.4:5000{each}", BACKEND).handshake(BEGIN_S + 1.002)
    proxied.run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets)) | {"ended_us": at_us(END_S)}]
    for tick in proxied.run.samples["nginx"].tick_between(BEGIN_S + 0.95, 90):
        tick["counters"]["TcpExt.TCPSynRetrans"] = again

    found, evidence = proxied.cause()
    assert found == cause
    assert says in evidence


@pytest.mark.parametrize(("again", "cause"), [(1_000, "data-lost"), (0, "unexplained")])
def test_data_that_got_lost_on_a_connection_which_a_proxy_had_kept(proxied: Scene, again: int, cause: str) -> None:
    capture = seen_by_the_backend(proxied)
    proxied.request(1.1, status=200)
    times = {"upstream_connect_time": "0.000", "upstream_header_time": "1.097", "upstream_response_time": "1.098"}
    log(proxied, 200, 1.1, **times)
    for each, lost_s in enumerate((float(again > 0), 0.5)):
        connection = Connection(capture, f"172.18.0.4:5000{each}", BACKEND).handshake(BEGIN_S - 2 - each)
        connection.ask(BEGIN_S - 1.9).answer(BEGIN_S - 1.8)
        # The other connection's request has come by then, and its answer has not.
        connection.ask(BEGIN_S + 0.003 + lost_s).answer(BEGIN_S + 1.098 + each)
    proxied.run.lines["backend-1/capture.json"] = [make_capture(len(capture.packets)) | {"ended_us": at_us(END_S)}]
    for tick in proxied.run.samples["nginx"].tick_between(0, 90):
        tick["counters"]["Tcp.RetransSegs"] = again if tick["time_us"] > at_us(BEGIN_S + 0.5) else 0

    found, evidence = proxied.cause()
    assert found == cause
    assert again == 0 or "flow backend-1/" in evidence


TIMER = {"value": 2_000, "unit": "ms", "where": ["nginx.conf:4"]}
TIMER_SAYS = "; the timer is nginx.proxy_connect_timeout (2s, nginx.conf:4)"


def seen_by_the_backend(proxied: Scene) -> Capture:
    """The proxy's connections are captured at the backend. Scenes of which that is not so are none of the same run."""
    proxied.run.manifest["slow_ms"] = 999
    proxied.run.manifest["knobs"]["nginx.proxy_connect_timeout"] = TIMER
    proxied.run.captures["backend-1"] = capture = Capture()
    return capture


def in_vain_for(proxied: Scene, stage: str, *, packets: int = 0, status: int = 504) -> None:
    """A try that nginx gave up after two seconds, before it was connected by its own log."""
    proxied.run.lines["backend-1/capture.json"] = [make_capture(packets) | {"ended_us": at_us(END_S)}]
    proxied.request(2.002, status=status)
    log(proxied, status, 2.002, upstream_status=str(status), upstream_response_time="2.000", **NO_CONNECTION)
    said = f"*9 upstream timed out (110: Connection timed out) while {stage} upstream, client: 172.18.0.3"
    complain(proxied, f'{said}, upstream: "https://172.18.0.2:8080/api/delay"', 2)


def test_a_proxy_none_of_whose_syns_came_to_the_server(proxied: Scene) -> None:
    seen_by_the_backend(proxied)
    in_vain_for(proxied, "connecting to")
    cause, evidence = proxied.cause()

    assert cause == "connect-timeout"
    assert "; none of its SYNs is in the capture" in evidence
    assert TIMER_SAYS in evidence


@pytest.mark.parametrize(("others", "cause"), [(0, "connect-timeout"), (1, "upstream-timeout")])
def test_of_syns_that_may_be_another_try_s_none_may_have_been_dropped(proxied: Scene, others: int, cause: str) -> None:
    """Two tries and one connection: whose it is, nobody knows. It is no matter, if nothing dropped its SYNs."""
    capture = seen_by_the_backend(proxied)
    Connection(capture, "172.18.0.4:50000", BACKEND).syns(BEGIN_S + 0.002, BEGIN_S + 1.002)
    other = {"connection": 10, "remote_port": 41_010, "upstream_status": "504", "upstream_response_time": "2.000"}
    log(proxied, 504, 2.003, **other, **NO_CONNECTION)
    if others:
        overflow(proxied)
    in_vain_for(proxied, "connecting to", packets=2)

    assert proxied.cause()[0] == cause


def test_a_proxy_to_which_the_server_s_answers_never_came_back(proxied: Scene) -> None:
    capture = seen_by_the_backend(proxied)
    connection = Connection(capture, "172.18.0.4:50000", BACKEND).syns(BEGIN_S + 0.002, BEGIN_S + 1.002)
    connection.answered_again(BEGIN_S + 0.00205, BEGIN_S + 1.00205)
    in_vain_for(proxied, "connecting to", packets=4)
    cause, evidence = proxied.cause()

    assert cause == "connect-timeout"
    assert ", backend-1 answered at 44.002 s, and no ACK came: its answers got lost on the way back" in evidence
    assert TIMER_SAYS in evidence


def test_a_client_to_which_the_server_s_answers_never_came_back(scene: Scene) -> None:
    scene.dial(error_kind="timeout", lasted_s=2)
    scene.request(2, connected=False)
    scene.connection().syns(BEGIN_S, BEGIN_S + 1).answered_again(BEGIN_S + 0.0001, BEGIN_S + 1.0001)
    cause, evidence = scene.cause()

    assert cause == "connect-timeout"
    assert evidence.endswith("backend-1 answered at 44.000 s, and no ACK came: its answers got lost on the way back")


@pytest.mark.parametrize(("waited_s", "cause"), [(0.0, "tls-handshake-timeout"), (1.9, "upstream-timeout")])
def test_a_proxy_whose_tls_handshake_with_the_server_did_not_end(proxied: Scene, waited_s: float, cause: str) -> None:
    capture = seen_by_the_backend(proxied)
    Connection(capture, "172.18.0.4:50000", BACKEND).handshake(BEGIN_S + 0.0021).ask(BEGIN_S + 0.003)
    if waited_s:
        for tick in proxied.run.samples["backend-1"].tick_between(BEGIN_S, BEGIN_S + waited_s + 0.05):
            tick["listen"][0]["depth"] = 1
    in_vain_for(proxied, "SSL handshaking to", packets=5)
    found, evidence = proxied.cause()

    assert found == cause
    if waited_s:
        assert "; its connection was in the accept queue of backend-1 from 44.002 s to 45.900 s or later" in evidence
    else:
        assert "flow backend-1/1: connected at 44.002 s; the server sent no data; " in evidence
        assert TIMER_SAYS in evidence


def test_a_proxy_that_names_its_port_shows_that_its_handshake_did_not_end(proxied: Scene) -> None:
    """HAProxy logs no stage: it was not connected, and its connection stood and had data."""
    capture = seen_by_the_backend(proxied)
    Connection(capture, "172.18.0.4:50000", BACKEND).handshake(BEGIN_S + 0.0021).ask(BEGIN_S + 0.003)
    in_vain_for(proxied, "doing something else with", packets=5, status=503)
    proxied.run.lines["nginx/access.jsonl"][-1] |= {"upstream_status": "504", "upstream_local_port": "50000"}

    assert proxied.cause()[0] == "tls-handshake-timeout"


@pytest.mark.parametrize(("answers", "said"), [(True, True), (False, False)])
def test_a_proxy_that_gave_up_while_the_server_s_answer_was_lost_on_the_way(
    proxied: Scene, *, answers: bool, said: bool
) -> None:
    capture = seen_by_the_backend(proxied)
    upstream = Connection(capture, "172.18.0.4:50000", BACKEND).handshake(BEGIN_S + 0.0021).ask(BEGIN_S + 0.003)
    for second in (BEGIN_S + 0.5, BEGIN_S + 0.7) if answers else ():
        capture.tcp(second, BACKEND, upstream.client, ACK, seq=upstream.isn + 5_001, ack=1_121, data=200)
    in_vain_for(proxied, "reading response header from", packets=7 if answers else 5)
    proxied.run.lines["nginx/access.jsonl"][-1] |= KEPT
    cause, evidence = proxied.cause()

    assert cause == "upstream-timeout"
    lost = "; backend-1 had sent its answer at 44.500 s, and again: it got lost on the way back"
    assert (lost in evidence) is said


def grow(scene: Scene, *names: str) -> None:
    """The backend's kernel counted something in each second from the request's beginning on."""
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S + 0.05, 70):
        for name in names:
            tick["counters"][name] += 1 + (tick["time_us"] - at_us(BEGIN_S + 0.05)) // 1_000_000


@pytest.mark.parametrize(("inside", "cause"), [(0, "waited-for-syn-retry"), (1, "syn-lost")])
def test_what_another_socket_of_the_server_dropped_explains_no_syn(scene: Scene, inside: int, cause: str) -> None:
    scene.dial(lasted_s=1.0003)
    scene.request(1.1, status=200)
    scene.connection().syns(BEGIN_S).handshake(BEGIN_S + 1).ask(BEGIN_S + 1.001).answer(BEGIN_S + 1.0995)
    overflow(scene)
    for tick in scene.run.samples["backend-1"].ticks:
        late = tick["time_us"] >= at_us(BEGIN_S + 0.05)
        own, other = (late, 0) if not inside else (0, late)
        address = {"address": "127.0.0.1", "port": 9000, "depth": 0, "limit": 1, "drops": int(other)}
        tick["listen"] = [tick["listen"][0] | {"drops": 7 + int(own)}, address]

    assert scene.cause()[0] == cause


def in_vain(connection: Connection, *seconds: float) -> Connection:
    """Data of the client, the same each time, that the server takes no notice of."""
    for second in seconds:
        seq, ack = connection.isn + 1, connection.isn + 5_001
        connection.capture.tcp(second, connection.client, connection.server, ACK, seq=seq, ack=ack, data=120)
    return connection


def test_a_handshake_that_the_server_has_forgotten_ends_with_a_reset_of_its_data(scene: Scene) -> None:
    """Without tcp_abort_on_overflow too: the last SYN-ACK is sent, the server forgets, and data finds no connection."""
    scene.dial()
    scene.request(4, error="read: connection reset by peer")
    connection = scene.connection().handshake(BEGIN_S).answered_again(BEGIN_S + 1, BEGIN_S + 3)
    in_vain(connection, BEGIN_S + 0.5, BEGIN_S + 3.9).reset_by_server(BEGIN_S + 3.9001)
    grow(scene, "TcpExt.ListenOverflows", "TcpExt.ListenDrops")
    cause, evidence = scene.cause()

    assert cause == "accept-queue-drop"
    assert evidence.endswith("and all data, 2 packets, met a full accept queue of backend-1")


def test_a_proxy_whose_syns_the_backend_s_syn_queue_has_no_place_for(proxied: Scene) -> None:
    proxied.request(2, status=504)
    log(proxied, 504, 2, upstream_status="504", upstream_response_time="1.998", **NO_CONNECTION)
    proxied.connection(BACKEND, "172.18.0.4:50000").syns(BEGIN_S + 0.002, BEGIN_S + 1.002)
    grow(proxied, "TcpExt.TCPReqQFullDrop", "TcpExt.ListenDrops")
    cause, evidence = proxied.cause()

    assert cause == "syn-queue-drop"
    assert evidence.endswith("counted a SYN that its queue of half-open connections had no place for")


@pytest.mark.parametrize("status", [502, 504])
def test_a_proxy_of_whose_connection_the_backend_knows_nothing(proxied: Scene, status: int) -> None:
    proxied.request(1.5, status=status)
    log(proxied, status, 1.5, upstream_status=str(status), upstream_response_time="1.498", **KEPT)
    in_vain(
        proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 0.0021),
        *(BEGIN_S + second for second in (0.0025, 0.2, 0.6)),
    )
    grow(proxied, "TcpExt.ListenOverflows", "TcpExt.ListenDrops")
    cause, evidence = proxied.cause()

    assert cause == "accept-queue-drop"
    assert evidence.endswith("the ACK of 44.002 s, and all data, 4 packets, met a full accept queue of backend-1")


@pytest.mark.parametrize(("aborts", "cause"), [("1", "accept-queue-reset"), ("0", "upstream-failed")])
def test_a_proxy_whose_connection_a_full_queue_resets(proxied: Scene, aborts: str, cause: str) -> None:
    proxied.request(0.003, status=502)
    log(proxied, 502, 0.003, upstream_status="502", upstream_response_time="0.001", **KEPT)
    connection = proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 0.0021)
    proxied.capture.tcp(BEGIN_S + 0.0025, BACKEND, connection.client, RST, seq=connection.isn + 5_001)
    proxied.run.manifest["sysctls"]["backend-1"]["net.ipv4.tcp_abort_on_overflow"] = aborts
    grow(proxied, "TcpExt.ListenOverflows", "TcpExt.ListenDrops")

    assert proxied.cause()[0] == cause


WAITS = ("waited-for-syn-retry", "waited-for-ack-retry", "waited-in-accept-queue")


def held_up(scene: Scene, connection: Connection, wait: str, begin_s: float) -> Connection:
    """A connection to the backend that can carry its request only a second later than it might."""
    if wait == "waited-for-syn-retry":
        overflow(scene)
        return connection.syns(begin_s).handshake(begin_s + 1).ask(begin_s + 1.001)
    if wait == "waited-for-ack-retry":
        grow(scene, "TcpExt.ListenOverflows", "TcpExt.ListenDrops")
        return in_vain(connection.handshake(begin_s), begin_s + 0.001).ask(begin_s + 1)
    for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S, BEGIN_S + 1.05):
        tick["listen"][0]["depth"] = 1
    return connection.handshake(begin_s).ask(begin_s + 0.001)


def held_up_behind_a_proxy(proxied: Scene, wait: str, lasted_s: float) -> None:
    proxied.request(lasted_s, status=200)
    took = f"{lasted_s - 0.002:.3f}"
    connected = "1.000" if wait == "waited-for-syn-retry" else "0.000"
    times = {"upstream_connect_time": connected, "upstream_header_time": took, "upstream_response_time": took}
    log(proxied, 200, lasted_s, **times)
    connection = proxied.connection(BACKEND, "172.18.0.4:50000")
    held_up(proxied, connection, wait, BEGIN_S + 0.0021).answer(BEGIN_S + lasted_s - 0.001)


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_of_the_proxy_s_connection_is_the_request_s(proxied: Scene, wait: str) -> None:
    held_up_behind_a_proxy(proxied, wait, 1.2)
    cause, evidence = proxied.cause()

    assert cause == wait
    assert evidence.startswith("the proxy tried 172.18.0.2:8080 at 44.002 s; flow nginx/2: ")


def test_connections_of_a_proxy_that_began_together_are_distinguished_by_their_order(proxied: Scene) -> None:
    proxied.request(2, status=504)
    for connection, began_s in ((9, 0.002), (10, 0.003)):
        late = {"connection": connection, "upstream_status": "504", "upstream_response_time": "1.998"}
        log(proxied, 504, began_s + 1.998, **late, **NO_CONNECTION)
        proxied.connection(BACKEND, f"172.18.0.4:{50_000 + connection}").syns(BEGIN_S + began_s)
    found, evidence = proxied.cause()

    assert found == "connect-timeout"
    assert "the proxy tried 172.18.0.2:8080 at 44.002 s; flow nginx/2: 1 SYN at 44.002 s" in evidence


def test_connections_that_took_another_time_than_the_tries_are_not_theirs(proxied: Scene) -> None:
    """Two tries began within nginx's millisecond: by the order of its lines the slow one would get the other's SYNs."""
    proxied.request(3.5, status=200)
    other = {"connection": 10, "remote_port": 41_010, "upstream_response_time": "3.018"}
    log(proxied, 200, 3.02, **other, upstream_connect_time="3.000", upstream_header_time="3.018")
    times = {"upstream_connect_time": "1.000", "upstream_header_time": "3.498"}
    log(proxied, 200, 3.5, upstream_response_time="3.498", **times)
    proxied.connection(BACKEND, "172.18.0.4:50000").syns(BEGIN_S + 0.0021).handshake(BEGIN_S + 1.002)
    proxied.connection(BACKEND, "172.18.0.4:50001").syns(BEGIN_S + 0.0022, BEGIN_S + 1).handshake(BEGIN_S + 3.002)

    # The slow one waited for one SYN alone: that explains less than half of its time.
    assert proxied.cause() == ("unexplained", "the proven waits take 1000.0 ms of its 3.500 s")


def test_a_connection_whose_syn_was_sent_again_belongs_to_the_try_that_connected_late(proxied: Scene) -> None:
    """Beside it, a try over a kept connection connects at once, so that there are fewer connections than tries."""
    proxied.request(1.5, status=200)
    kept = {"connection": 10, "remote_port": 41_010, "upstream_response_time": "0.018"}
    log(proxied, 200, 0.02, **kept, upstream_connect_time="0.000", upstream_header_time="0.018")
    times = {"upstream_connect_time": "1.000", "upstream_header_time": "1.498"}
    log(proxied, 200, 1.5, upstream_response_time="1.498", **times)
    proxied.connection(BACKEND, "172.18.0.4:50001").syns(BEGIN_S + 0.0022).handshake(BEGIN_S + 1.002)

    _, evidence = proxied.cause()
    assert "which connection" not in evidence


def test_a_line_of_another_request_over_the_connection_is_no_evidence(proxied: Scene) -> None:
    """The first request's record is missing, so the line of the first is not that of the one that is left."""
    proxied.run.clients["k6-1"].dials[0]["time_us"] = at_us(BEGIN_S - 4)
    proxied.capture.packets.clear()
    proxied.connection().handshake(BEGIN_S - 4).ask(BEGIN_S - 3.999).ask(BEGIN_S + 0.001)
    proxied.request(2, status=504, reused=True)
    late = {"upstream_status": "504", "upstream_header_time": "-", "upstream_response_time": "2.000"}
    log(proxied, 504, -1.5, request_time=2, **late)
    log(proxied, 504, 2, connection_requests=2, **late)

    assert proxied.cause()[0] == "unexplained"


def test_a_complaint_of_the_request_before_is_not_this_one_s(proxied: Scene) -> None:
    proxied.request(0.3, status=503)
    log(proxied, 503, 0.3, upstream_status="503")
    complain(proxied, "*9 connect() to 172.18.0.2:8080 failed (99: Cannot assign requested address)")

    assert proxied.cause()[0] == "error-status"


@pytest.mark.parametrize(("status", "cause"), [(503, "unexplained"), (500, "error-status")])
def test_a_second_proxy_may_have_made_up_a_status_of_its_own(proxied: Scene, status: int, cause: str) -> None:
    proxied.run.manifest["roles"]["backend"]["relays"] = True
    proxied.request(0.3, status=status)
    log(proxied, status, 0.3, upstream_status=str(status))

    assert proxied.cause()[0] == cause


@pytest.mark.parametrize(
    ("status", "noted", "times", "gave_up", "cause"),
    [
        (503, "503", "0.0 0.2", "", "error-status"),
        (504, "504", "0.0 -", "", "upstream-timeout"),
        (502, "502", "0.0 -", "", "upstream-failed"),
        (502, "502", "0.0 0.2", "", "error-status"),
        # It never had a connection: only a kernel tells why.
        (504, "504", "- -", "", "unexplained"),
        (503, "", " ", "queue-timeout", "proxy-queue-timeout"),
        (503, "", " ", "no-server", "no-live-upstream"),
        (503, "", " ", "", "refused-by-proxy"),
        (403, "", " ", "denied", "refused-by-proxy"),
    ],
)
def test_the_log_of_a_second_proxy_tells_whose_status_it_is(
    proxied: Scene, status: int, noted: str, times: str, *, gave_up: str, cause: str
) -> None:
    proxied.run.manifest["roles"]["backend"] |= {"relays": True, "logs": {"access.jsonl": "nginx-access"}}
    proxied.request(0.3, status=status)
    log(proxied, status, 0.3, upstream_status=str(status), upstream_header_time="0.25")
    connect, _, header = times.partition(" ")
    upstream = {"upstream_addr": "172.18.0.9:8080" if noted else "", "upstream_status": noted}
    line = make_access(BEGIN_S + 0.25, status) | {"request_time": 0.24, "gave_up": gave_up or None}
    line |= upstream | {"upstream_connect_time": connect, "upstream_header_time": header}
    proxied.run.lines["backend-1/access.jsonl"] = [line | {"remote_addr": NGINX.partition(":")[0]}]

    assert proxied.cause()[0] == cause


# nginx's clock may be late by a turn of its event loop, and its log has seconds: the request begins with one.
COMPLAINTS = [(-5, False), (-2, False), (-1, True), (0, True), (1, False)]
NO_FILE = "socket() failed (24: Too many open files)"


@pytest.mark.parametrize(
    ("what", "after_s", "counts"),
    [*(("512 worker_connections are not enough", *each) for each in COMPLAINTS), (NO_FILE, 0, True)],
)
def test_a_proxy_without_a_connection_or_a_file_for_the_server(
    proxied: Scene, what: str, after_s: int, *, counts: bool
) -> None:
    proxied.request(0.002, status=500)
    log(proxied, 500, 0.002, upstream_status="-", upstream_response_time="-", **NO_CONNECTION)
    complain(proxied, f"*9 {what} while connecting to upstream", after_s)

    assert proxied.cause()[0] == ("proxy-connections-exhausted" if counts else "error-status")


@pytest.mark.parametrize(("after_s", "counts"), COMPLAINTS)
def test_a_proxy_that_closes_at_once_for_want_of_connections(proxied: Scene, after_s: int, *, counts: bool) -> None:
    proxied.request(0.003, error="EOF")
    Connection(proxied.capture, CLIENT, NGINX, sent=120).close_by_server(BEGIN_S + 0.002)
    complain(proxied, "512 worker_connections are not enough", after_s)

    assert proxied.cause()[0] == ("proxy-connections-exhausted" if counts else "closed-without-answer")


def test_a_proxy_that_gives_a_client_s_connection_to_another(proxied: Scene) -> None:
    proxied.request(0.003, error="EOF")
    Connection(proxied.capture, CLIENT, NGINX, sent=120).close_by_server(BEGIN_S + 0.002)
    proxied.run.texts["nginx/error.log"] = (
        "2025/11/21 07:27:34 [warn] 7#7: 64 worker_connections are not enough, reusing connections\n"
    )
    cause, evidence = proxied.cause()

    assert cause == "proxy-connections-exhausted"
    assert evidence == (
        "flow nginx/1 was closed at 44.002 s without an answer; error.log line 1: worker_connections are not enough"
    )


def test_the_ledger_says_who_held_the_connections_of_a_full_proxy(proxied_run: RunFolder) -> None:
    scene = Scene(proxied_run, NGINX, "nginx")
    scene.run.manifest["knobs"] |= {"nginx.worker_connections": knob(64), "nginx.worker_processes": knob("1")}
    for number in (2, 3):
        scene.dial(id=number, time_us=at_us(BEGIN_S - 2), local=f"172.18.0.3:{41_000 + number}")
        scene.connection(client=f"172.18.0.3:{41_000 + number}").handshake(BEGIN_S - 2).ask(BEGIN_S - 1).answer(BEGIN_S)
    scene.request(1, status=101, id=2, dial=2, time_us=at_us(BEGIN_S - 1), protocol="websocket", error_code=0)
    scene.dial()
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).close_by_server(BEGIN_S + 0.002)
    scene.request(0.003, error="EOF")
    complain(scene, "512 worker_connections are not enough")
    scene.run.lines["nginx/capture.json"] = [make_capture(len(scene.capture.packets)) | {"ended_us": at_us(END_S)}]
    (held,) = judge(scene.run.write()).account.places
    assert (held.sessions, held.requests, held.idle, held.servers, held.places) == (1, 0, 1, 0, 64)
    assert "so at most 32 fit" in held.sentences


@pytest.mark.parametrize(
    ("closed_s", "asked_s", "cause"),
    [
        # The FIN was on its way; the server closed without having read; the server broke off its work.
        (20.0, 20.001, "stale-keepalive"),
        (20.010, 20.0, "stale-keepalive"),
        (5.010, 5.0, "upstream-failed"),
        (25.0, 5.0, "upstream-failed"),
    ],
)
def test_a_kept_connection_that_the_backend_closes_as_the_proxy_sends(
    proxied: Scene, closed_s: float, asked_s: float, cause: str
) -> None:
    answered_s = BEGIN_S + 0.002 - asked_s
    proxied.request(0.03, status=502)
    log(proxied, 502, 0.03, upstream_status="502", upstream_response_time="0.028", **KEPT)
    kept = proxied.connection(BACKEND, "172.18.0.4:50000").handshake(answered_s - 1).ask(answered_s - 0.9)
    kept.answer(answered_s)
    if closed_s < asked_s:
        kept.half_close_by_server(answered_s + closed_s).ask(answered_s + asked_s)
        kept.reset_by_server(answered_s + asked_s + 0.0001)
    else:
        kept.ask(answered_s + asked_s).reset_by_server(answered_s + closed_s)
    found, evidence = proxied.cause()

    assert found == cause
    if cause == "stale-keepalive":
        assert f"closed the kept connection at {answered_s + closed_s - 10:.3f} s, {closed_s:.3f} s after" in evidence


RULES = [
    {"text": "limit_req zone=api burst=10 nodelay", "where": "nginx.conf:5"},
    {"text": "limit_req zone=other", "where": "nginx.conf:6"},
    {"text": "deny 10.0.0.0/8", "where": "nginx.conf:7"},
    {"text": "return 429", "where": "nginx.conf:8"},
    {"text": "client_max_body_size 1k", "where": "nginx.conf:9"},
]


@pytest.mark.parametrize(
    ("status", "logged", "complaint", "rule"),
    [
        (503, 503, 'limiting requests, excess: 10.600 by zone "api", client: 172.18.0.3', "nginx.conf:5: limit_req"),
        (403, 403, "access forbidden by rule, client: 172.18.0.3", "nginx.conf:7: deny 10.0.0.0/8"),
        (429, 429, None, "nginx.conf:8: return 429"),
        (0, 413, "client intended to send too large body: 2000 bytes", "nginx.conf:9: client_max_body_size 1k"),
        (0, 444, None, None),
    ],
)
def test_a_proxy_refuses_by_a_rule_of_its_own(
    proxied: Scene, status: int, logged: int, complaint: str | None, rule: str | None
) -> None:
    proxied.run.manifest["roles"]["nginx"]["rules"] = RULES
    proxied.request(0.002, status=status)
    log(proxied, logged, 0.002, upstream_addr="", upstream_status="", upstream_response_time="", **NO_CONNECTION)
    if complaint:
        complain(proxied, f"*9 {complaint}")
    cause, evidence = proxied.cause()

    assert cause == "refused-by-proxy"
    assert f"status {logged} at" in evidence
    assert "no server was tried" in evidence
    assert (f"; by {rule}" in evidence) if rule else ("; by " not in evidence)
    assert "zone=other" not in evidence


@pytest.mark.parametrize(("logged", "tried"), [(503, "172.18.0.2:8080"), (499, "")])
def test_a_server_that_was_tried_and_a_client_that_closed_are_no_refusal_by_the_proxy(
    proxied: Scene, logged: int, tried: str
) -> None:
    proxied.request(0.002, status=503 if tried else 0)
    log(proxied, logged, 0.002, upstream_addr=tried, upstream_status=str(logged))

    assert proxied.cause()[0] == ("error-status" if tried else "unexplained")


@pytest.mark.parametrize(
    ("complaint", "cause"),
    [
        ("upstream timed out (110: Connection timed out) while reading upstream", "stream-cut-by-proxy"),
        ("upstream prematurely closed connection while reading upstream", "stream-cut-by-server"),
        ("upstream sent invalid chunked response while reading upstream", "stream-cut-by-server"),
        ("readv() failed (104: Connection reset by peer) while reading upstream", "stream-cut-by-server"),
        ("something else", "unexplained"),
    ],
)
def test_a_stream_breaks_off_at_a_proxy_that_has_sent_status_200(proxied: Scene, complaint: str, cause: str) -> None:
    timer = {"value": 1_900, "unit": "ms", "where": ["nginx.conf:3"]}
    proxied.run.manifest["knobs"]["nginx.proxy_read_timeout"] = timer
    proxied.request(2, error="unexpected EOF", receiving_us=1_900_000)
    log(proxied, 200, 2)
    complain(proxied, f"*9 {complaint}", 2)
    Connection(proxied.capture, CLIENT, NGINX).answer(BEGIN_S + 0.1).close_by_server(BEGIN_S + 2)
    found, evidence = proxied.cause()

    assert found == cause
    if cause == "stream-cut-by-proxy":
        assert "; the client had had 1.900 s of the answer; no data came for 1.900 s; " in evidence
        assert "the timer is nginx.proxy_read_timeout (1900ms, nginx.conf:3)" in evidence


def test_a_proxy_that_has_left_all_servers_out(proxied: Scene) -> None:
    proxied.request(0.002, status=502)
    nothing = {"upstream_addr": "backend", "upstream_status": "502", "upstream_response_time": "0.000"}
    log(proxied, 502, 0.002, **nothing, **NO_CONNECTION)
    complain(proxied, "*9 no live upstreams while connecting to upstream, client: 172.18.0.3")

    assert proxied.cause()[0] == "no-live-upstream"


def test_a_proxy_that_tries_another_server_first(proxied: Scene) -> None:
    proxied.run.manifest["slow_ms"] = 1_000
    proxied.request(2.5, status=200)
    tries = {"upstream_addr": "172.18.0.5:8080, 172.18.0.2:8080", "upstream_status": "504, 200"}
    times = {"upstream_connect_time": "-, 0.000", "upstream_header_time": "-, 0.498"}
    log(proxied, 200, 2.5, **tries, **times, upstream_response_time="2.000, 0.498")
    proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 2.002).ask(BEGIN_S + 2.003)

    assert proxied.cause() == (
        "waited-for-another-server",
        (
            "the proxy tried 172.18.0.5:8080 at 44.002 s without success (status 504), and after 2.000 s of 2.500 s"
            " tried 172.18.0.2:8080"
        ),
    )


def tls_request(scene: Scene, lasted_s: float, handshake_s: float = 0.0, **changes: object) -> None:
    """A request to an https address, whose handshake took so long."""
    scene.request(lasted_s, url="https://backend:8080/", tls_us=round(1e6 * handshake_s), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "cause", "who"),
    [
        ("remote error: tls: protocol version not supported", "tls-handshake-failed", "the server sent an alert"),
        ("x509: certificate signed by unknown authority", "tls-handshake-failed", "the client refused the server"),
        ("EOF", "unexplained", ""),
    ],
)
def test_a_failed_tls_handshake_is_named_by_the_client_s_error(scene: Scene, error: str, cause: str, who: str) -> None:
    scene.dial()
    tls_request(scene, 0.01, connected=False, error=error)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 0.002)
    found, evidence = scene.cause()

    assert found == cause
    assert who in evidence


def test_a_proxy_without_connections_breaks_no_handshake_off(proxied: Scene) -> None:
    proxied.dial()
    tls_request(proxied, 0.01, connected=False, error_code=1220, error="read: connection reset by peer")
    Connection(proxied.capture, CLIENT, NGINX, sent=120).close_by_server(BEGIN_S + 0.002)
    complain(proxied, "512 worker_connections are not enough", 0)

    assert proxied.cause()[0] == "proxy-connections-exhausted"


def test_a_server_that_ends_the_connection_breaks_the_tls_handshake_off(scene: Scene) -> None:
    scene.dial()
    tls_request(scene, 0.01, connected=False, error_code=1220, error="read: connection reset by peer")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).reset_by_server(BEGIN_S + 0.002)
    cause, evidence = scene.cause()

    assert cause == "tls-handshake-failed"
    assert evidence.endswith("the server ended the connection at 44.002 s, within the handshake")


@pytest.mark.parametrize(("url", "cause"), [("https", "tls-handshake-timeout"), ("http", "unexplained")])
def test_a_tls_handshake_that_does_not_end_times_out(scene: Scene, url: str, cause: str) -> None:
    scene.dial()
    scene.request(5, connected=False, error_code=1050, error="request timeout", url=f"{url}://backend:8080/")
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001)
    found, evidence = scene.cause()

    assert found == cause
    if cause != "unexplained":
        assert "the server sent no data; after 5.000 s in the handshake the request ended: request timeout" in evidence


def test_the_packets_say_whom_a_tls_handshake_waited_for(scene: Scene) -> None:
    scene.dial()
    tls_request(scene, 2, 1.9, status=200)
    connection = scene.connection().handshake(BEGIN_S).secure(BEGIN_S + 0.001, BEGIN_S + 1.501, BEGIN_S + 1.901)
    connection.ask(BEGIN_S + 1.902).answer(BEGIN_S + 1.999)
    cause, evidence = scene.cause()

    assert cause == "waited-for-tls-handshake"
    waited = "1.500 s from the ClientHello to the ServerHello, then 400.0 ms to the client's reply"
    assert evidence.endswith(f"its TLS handshake took 1.900 s of 2.000 s (by its packets, {waited})")


@pytest.mark.parametrize("connected", ["1.700", "0.001"])
def test_a_proxy_s_tls_handshake_is_a_part_of_the_request_s_time(proxied: Scene, connected: str) -> None:
    """Whether its log counts it as connecting, as nginx's does, or not."""
    proxied.request(2, status=200)
    times = {"upstream_header_time": "1.998", "upstream_response_time": "1.998"}
    log(proxied, 200, 2, upstream_connect_time=connected, **times)
    connection = proxied.connection(BACKEND, "172.18.0.4:50000").handshake(BEGIN_S + 0.0021)
    connection.secure(BEGIN_S + 0.0025, BEGIN_S + 1.6025, BEGIN_S + 1.7025)
    connection.ask(BEGIN_S + 1.703).answer(BEGIN_S + 1.999)
    cause, evidence = proxied.cause()

    assert cause == "waited-for-tls-handshake"
    assert evidence == (
        "the proxy tried 172.18.0.2:8080 at 44.002 s; flow nginx/2: its TLS handshake took 1.700 s of 2.000 s (by its"
        " packets, 1.600 s from the ClientHello to the ServerHello, then 100.0 ms to the client's reply)"
    )


@pytest.mark.parametrize(
    ("times_s", "who"),
    [
        ((0.001,), "the server sent no data"),
        ((0.001, 0.101), "the ServerHello came 100.0 ms after the ClientHello, and the client sent no reply"),
    ],
)
def test_a_tls_handshake_that_timed_out_names_the_side_that_was_silent(
    scene: Scene, times_s: tuple[float, ...], who: str
) -> None:
    scene.dial()
    tls_request(scene, 5, connected=False, error_code=1050, error="request timeout")
    scene.connection().handshake(BEGIN_S).secure(*(BEGIN_S + each for each in times_s))
    cause, evidence = scene.cause()

    assert cause == "tls-handshake-timeout"
    assert f": {who}; after 5.000 s in the handshake" in evidence


@pytest.mark.parametrize(("waited_s", "cause"), [(0.0, "waited-for-tls-handshake"), (1.5, "waited-in-accept-queue")])
def test_a_wait_in_the_accept_queue_is_no_part_of_the_tls_handshake(scene: Scene, waited_s: float, cause: str) -> None:
    scene.dial()
    tls_request(scene, 2, 1.9, status=200)
    scene.connection().handshake(BEGIN_S).ask(BEGIN_S + 0.001).answer(BEGIN_S + 1.999)
    if waited_s:
        for tick in scene.run.samples["backend-1"].tick_between(BEGIN_S, BEGIN_S + waited_s + 0.05):
            tick["listen"][0]["depth"] = 1

    assert scene.cause()[0] == cause
