"""What the observers counted against each other: each identity holds in a whole run, and is seen to fail."""

import struct
from collections.abc import Callable

import pytest

from analysis.derivation import judge
from analysis.figures import catalogue
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import (
    DRAIN_END_S,
    END_S,
    MEASURE_S,
    USERS,
    RunFolder,
    at_us,
    make_access,
    make_capture,
    make_dial,
)
from tests.analysis.test_ledger import BACKEND

Change = Callable[[RunFolder], object]

K6, NGINX = "172.18.0.3", "172.18.0.4"
# In the middle of the load.
LATER_S = MEASURE_S + 25


def every(*changes: Change) -> Change:
    def change(run: RunFolder) -> None:
        for each in changes:
            each(run)

    return change


def time_wait(local: str, peer: str) -> Change:
    """A socket in TIME_WAIT in all readings of the backend's."""

    def change(run: RunFolder) -> None:
        group = {"side": "server", "port": 8080, "local": local, "peer": peer, "count": 1}
        for reading in run.samples["backend-1"].slow:
            if reading["kind"] == "time_wait":
                reading["groups"] = [group]

    return change


def count(instance: str, *names: str, more: int = 1, at_s: float = LATER_S) -> Change:
    """A kernel that counted more."""

    def change(run: RunFolder) -> None:
        for tick in run.samples[instance].tick_between(at_s, END_S + 1):
            for name in names:
                tick["counters"][name] += more

    return change


def dropped(more: int = 1) -> Change:
    return count("backend-1", "TcpExt.ListenDrops", "TcpExt.ListenOverflows", more=more)


def inner(drops: int) -> Change:
    """Another socket listens in the backend's namespace, on the loopback, and drops so many while the load lasts."""

    def change(run: RunFolder) -> None:
        for tick in run.samples["backend-1"].ticks:
            dropped_so_far = 2 + drops * (tick["time_us"] >= at_us(LATER_S))
            other = {"address": "127.0.0.1", "port": 9000, "depth": 0, "limit": 1, "drops": dropped_so_far}
            tick["listen"] = [*tick["listen"], other]

    return change


def without_dial(number: int) -> Change:
    def change(run: RunFolder) -> None:
        client = run.clients["k6-1"]
        client.dials = [dial for dial in client.dials if dial["id"] != number]

    return change


def dial(number: int, **changes: object) -> Change:
    """A dial that ended otherwise, or one more that took no time."""

    def change(run: RunFolder) -> None:
        dials = run.clients["k6-1"].dials
        if number > USERS:
            dials.append(make_dial(number, failed=True, duration_ms=0.2))
        next(each for each in dials if each["id"] == number).update(changes)

    return change


def packets(change: Callable[[Capture], object]) -> Change:
    """Other packets in the run's one capture."""

    def of_run(run: RunFolder) -> None:
        ((observer, capture),) = run.captures.items()
        change(capture)
        run.lines[f"{observer}/capture.json"] = [make_capture(len(capture.packets))]

    return of_run


def connection(client: str, make: Callable[[Connection], object], isn: int = 900_000) -> Change:
    """More packets of a connection to the backend."""
    return packets(lambda capture: make(Connection(capture, client, BACKEND, isn)))


def without_packets(port: int, *, last: int = 0) -> Change:
    """A capture without the packets of a connection, or without the last of them."""
    ends = [struct.pack(">HH", *pair) for pair in ((port, 8080), (8080, port))]

    def change(capture: Capture) -> None:
        lost = [each for each in capture.packets if each[1][34:38] in ends][-last:]
        assert lost
        capture.packets = [each for each in capture.packets if each not in lost]

    return packets(change)


def failing(run: RunFolder, hop: int) -> set[str]:
    """The identities of a hop that are false; none is unknown."""
    balances = [*catalogue.balance_hops(judge(run.write()).run).values()][hop]
    assert {each.why for each in balances} == {None}
    return {each.id for each in balances if each.holds == "false"}


def scraped(more: int, *, counted: int) -> Change:
    """A run with metrics ports: so many connections came to each, and so many more did the kernel accept."""

    def change(run: RunFolder) -> None:
        run.manifest["metrics_port"] = 9645
        for sampled in run.samples.values():
            for tick in sampled.ticks:
                tick["metrics_connections"] = 5
            for tick in sampled.tick_between(LATER_S, END_S + 1):
                tick["metrics_connections"] += more
        for instance in run.samples:
            count(instance, "Tcp.PassiveOpens", more=counted)(run)

    return change


OF_USERS: dict[str, tuple[Change, set[str]]] = {
    "nothing": (every(), set()),
    "scrapes of the metrics ports": (scraped(3, counted=3), set()),
    "a connection that the sampler takes for a scrape": (scraped(3, counted=2), {"opened", "accepted"}),
    "a connection without its dial": (without_dial(2), {"dials-made"}),
    "a dial that was reset as soon as it was made": (dial(2, error="reset", error_kind="reset"), set()),
    "a failure without its dial": (without_dial(50), {"dials-unanswered", "syns-of-failed-dials"}),
    "a dial that k6's end cut short": (dial(50, error_kind="canceled"), set()),
    "a dial held half open, and the connection was made": (
        dial(2, error="held", error_kind="half-open"),
        {"dials-made", "dials-unanswered"},
    ),
    "a refused dial that no RST answered": (dial(104, error_kind="refused"), {"dials-refused"}),
    "a RST that no dial tells of": (
        connection(f"{K6}:49000", lambda one: one.refused(LATER_S)),
        {"dials-refused", "opened"},
    ),
    "a refused dial, and the RST": (
        every(
            dial(104, error_kind="refused", local=f"{K6}:49000"),
            connection(f"{K6}:49000", lambda one: one.refused(LATER_S)),
            count("k6-1", "Tcp.ActiveOpens"),
        ),
        set(),
    ),
    "a dial without a port while there were some": (
        dial(104, error_kind="address-not-available", local=None),
        {"dials-without-port"},
    ),
    "a SYN that is not in the capture": (
        without_packets(40_050, last=1),
        {"syns-of-failed-dials", "syns-repeated", "syns-dropped"},
    ),
    "a SYN that the client had no cause to send": (
        connection(f"{K6}:40050", lambda one: one.syns(MEASURE_S + 16.5), isn=50_000),
        {"syns-of-failed-dials", "syns-repeated", "syns-dropped"},
    ),
    "a connection that only the client's kernel opened": (count("k6-1", "Tcp.ActiveOpens"), {"opened"}),
    "a connection within the client": (count("k6-1", "Tcp.ActiveOpens", "Tcp.PassiveOpens"), set()),
    "a connection that only the server's kernel accepted": (count("backend-1", "Tcp.PassiveOpens"), {"accepted"}),
    "a connection within the server": (count("backend-1", "Tcp.ActiveOpens", "Tcp.PassiveOpens"), set()),
    "a SYN that only the client's kernel sent again": (count("k6-1", "TcpExt.TCPSynRetrans"), {"syns-repeated"}),
    "a drop that only the kernel saw": (dropped(), {"syns-dropped"}),
    "a drop that the kernel counted after the window": (
        every(
            dial(104, error=None, error_kind=None, local=f"{K6}:49000"),
            connection(f"{K6}:49000", lambda one: one.handshake(DRAIN_END_S - 1).unheard(DRAIN_END_S - 0.9, END_S)),
            count("k6-1", "Tcp.ActiveOpens"),
            dropped(2),
        ),
        set(),
    ),
    "a dial that timed out because the server's answers got lost": (
        every(
            dial(104, error_kind="timeout", local=f"{K6}:49000"),
            connection(f"{K6}:49000", lambda one: one.syns(LATER_S).answered_again(LATER_S + 0.1)),
            count("k6-1", "Tcp.ActiveOpens"),
        ),
        set(),
    ),
    # A socket counts a packet after the SYN twice.
    "a drop at a socket behind the first one": (every(dropped(3), inner(3)), set()),
    "a packet after the SYN that was dropped there": (every(dropped(2), inner(3)), set()),
    "one drop more than the socket behind the first one had": (every(dropped(4), inner(3)), {"syns-dropped"}),
    "fewer drops than it had": (every(dropped(1), inner(3)), {"syns-dropped"}),
    "a connection within the server that was never accepted": (
        every(dropped(3), inner(3), count("backend-1", "Tcp.ActiveOpens", more=3)),
        set(),
    ),
    "more such connections than were kept out": (
        every(dropped(3), inner(3), count("backend-1", "Tcp.ActiveOpens", more=4)),
        {"accepted"},
    ),
    "one that closed within the server after the last reading": (
        every(
            count("backend-1", "sockstat.TCP.tw", more=2),
            time_wait("127.0.0.1", "127.0.0.1"),
            count("backend-1", "Tcp.ActiveOpens", "Tcp.PassiveOpens", at_s=END_S - 3),
        ),
        set(),
    ),
    "a drop for another reason": (
        count("backend-1", "TcpExt.ListenDrops"),
        {"syns-dropped", "drops-by-overflow"},
    ),
    "a socket in TIME_WAIT at the client": (count("k6-1", "sockstat.TCP.tw"), {"time-wait-k6-1"}),
    "a socket in TIME_WAIT at the server": (count("backend-1", "sockstat.TCP.tw"), {"time-wait-backend-1"}),
    "one of a connection that never left the server": (
        every(count("backend-1", "sockstat.TCP.tw"), time_wait("127.0.0.1", "127.0.0.1")),
        set(),
    ),
    "one of a connection to its own address": (
        every(count("backend-1", "sockstat.TCP.tw"), time_wait("172.18.0.2", "172.18.0.2")),
        set(),
    ),
    "one of a connection with another machine": (
        every(count("backend-1", "sockstat.TCP.tw"), time_wait("172.18.0.2", "172.18.0.3")),
        {"time-wait-backend-1"},
    ),
}


@pytest.mark.parametrize("damage", OF_USERS)
def test_what_two_observers_of_the_clients_hop_count_differently_is_false(run: RunFolder, damage: str) -> None:
    change, false = OF_USERS[damage]
    change(run)

    assert failing(run, 0) == false


def test_a_server_may_have_connections_to_services_beside_the_path(run: RunFolder) -> None:
    every(count("backend-1", "Tcp.ActiveOpens", more=3), count("backend-1", "sockstat.TCP.tw"))(run)
    assert failing(run, 0) == {"accepted", "time-wait-backend-1"}
    run.manifest["images"]["db"] = "sha256:1"
    assert failing(run, 0) == set()
    count("backend-1", "Tcp.PassiveOpens", more=20)(run)
    assert failing(run, 0) == {"accepted"}


def test_others_may_connect_to_what_ran_before_the_run_as_often_as_its_capture_says(run: RunFolder) -> None:
    every(
        connection("192.0.2.7:40000", lambda one: one.handshake(MEASURE_S + 1).ask(MEASURE_S + 1.1)),
        count("backend-1", "Tcp.PassiveOpens"),
        count("backend-1", "sockstat.TCP.tw"),
    )(run)
    assert failing(run, 0) == {"accepted", "time-wait-backend-1"}
    run.manifest["roles"]["backend"]["shared"] = True
    assert failing(run, 0) == set()
    count("backend-1", "Tcp.PassiveOpens")(run)
    assert failing(run, 0) == {"accepted"}


def test_services_beside_the_path_may_connect_or_find_a_full_queue(
    run: RunFolder,
) -> None:
    every(
        connection("192.0.2.7:40000", lambda one: one.handshake(MEASURE_S + 1).ask(MEASURE_S + 1.1)),
        connection("192.0.2.7:40001", lambda one: one.syns(MEASURE_S + 1)),
        count("backend-1", "Tcp.PassiveOpens", "sockstat.TCP.tw", "TcpExt.ListenDrops", "TcpExt.ListenOverflows"),
    )(run)
    assert failing(run, 0) == {"accepted", "syns-dropped", "time-wait-backend-1"}
    run.manifest["images"]["db"] = "sha256:1"
    assert failing(run, 0) == set()
    count("backend-1", "TcpExt.ListenDrops", "TcpExt.ListenOverflows")(run)
    assert failing(run, 0) == {"syns-dropped"}


@pytest.mark.parametrize(
    ("change", "lost", "false"),
    [
        (count("k6-1", "TcpExt.TCPSynRetrans"), 1, set()),
        (count("k6-1", "TcpExt.TCPSynRetrans"), 0, {"syns-repeated"}),
        # The client's FIN got lost, and the server's, which came later, is the first in the capture.
        (count("k6-1", "sockstat.TCP.tw"), 1, set()),
        (count("k6-1", "sockstat.TCP.tw"), 0, {"time-wait-k6-1"}),
    ],
)
def test_a_packet_that_a_link_lost_is_in_no_capture(run: RunFolder, change: Change, lost: int, false: set[str]) -> None:
    change(run)
    link = {"instance": "k6-1", "to": "backend", "way": "netem", "asked": {}, "read_back": {}}
    run.manifest["links"] = [{**link, "use": {"packets": 100, "lost": lost}}]

    assert failing(run, 0) == false


def test_all_identities_behind_a_proxy_hold(proxied_run: RunFolder) -> None:
    assert failing(proxied_run, 1) == set()


def try_of(status: int, tried: str, **changes: object) -> Change:
    """A request for which nginx did not reach the backend."""
    line = make_access(LATER_S + 1, status) | {"upstream_status": tried, "upstream_response_time": "0.000"}
    line |= {"upstream_connect_time": "-", "upstream_header_time": "-", **changes}
    return lambda run: run.lines["nginx/access.jsonl"].append(dict(line))


def without_line(status: int) -> Change:
    """An access log without the last line of a status; its lines are still no fewer than nginx counted."""

    def change(run: RunFolder) -> None:
        lines = run.lines["nginx/access.jsonl"]
        lines.remove([line for line in lines if line["status"] == status][-1])

    return change


def log(text: str) -> Change:
    return lambda run: run.texts.update({"nginx/error.log": text})


@pytest.fixture
def proxied(proxied_run: RunFolder) -> RunFolder:
    """The run through nginx, with a try that timed out, one that was refused, and one for which there was no port."""
    every(
        try_of(504, "504"),
        connection(f"{NGINX}:50011", lambda one: one.syns(LATER_S, LATER_S + 1)),
        dropped(2),
        count("nginx", "TcpExt.TCPSynRetrans"),
        try_of(503, "502"),
        connection(f"{NGINX}:50012", lambda one: one.refused(LATER_S)),
        try_of(503, "502"),
        log("2025/11/21 07:27:15 [crit] 7#7: *7 connect() to 172.18.0.2:8080 failed (99: Cannot assign requested)\n"),
    )(proxied_run)
    return proxied_run


OF_NGINX: dict[str, tuple[Change, set[str]]] = {
    "nothing": (every(), set()),
    "a try without its connection": (
        without_packets(50_002),
        {"tries-connected", "accepted", "time-wait-backend-1"},
    ),
    "a connection without its try": (without_line(200), {"tries-connected"}),
    "a try that timed out, without its SYNs": (
        without_packets(50_011),
        {"tries-unanswered", "syns-dropped", "syns-repeated"},
    ),
    "SYNs without the try that sent them": (without_line(504), {"tries-unanswered"}),
    "a refused try without the RST": (without_packets(50_012), {"tries-refused"}),
    "a RST without the try that it refused": (without_line(503), {"tries-refused"}),
    "a try without a port of which the error log says nothing": (log(""), {"tries-refused"}),
    "a try that timed out because the server's answers got lost": (
        every(
            try_of(504, "504"),
            connection(f"{NGINX}:50013", lambda one: one.syns(LATER_S).answered_again(LATER_S + 0.1)),
        ),
        set(),
    ),
    "a try whose TLS handshake timed out": (
        every(
            try_of(504, "504", connection=8),
            log(
                "2025/11/21 07:27:16 [error] 7#7: *8 upstream timed out (110: Connection timed out) while SSL"
                ' handshaking to upstream, client: 172.18.0.3, upstream: "https://172.18.0.2:8080/"\n'
                "2025/11/21 07:27:15 [crit] 7#7: *7 connect() to 172.18.0.2:8080 failed (99: Cannot assign)\n"
            ),
            connection(f"{NGINX}:50013", lambda one: one.handshake(LATER_S)),
            count("backend-1", "Tcp.PassiveOpens"),
        ),
        set(),
    ),
    "a client that went while nginx was connecting, in vain": (
        every(
            try_of(499, "-"),
            connection(f"{NGINX}:50013", lambda one: one.syns(LATER_S)),
            dropped(),
        ),
        set(),
    ),
    "a client that went as nginx was connected": (
        every(
            try_of(499, "-"),
            connection(f"{NGINX}:50013", lambda one: one.handshake(LATER_S)),
            count("backend-1", "Tcp.PassiveOpens"),
        ),
        set(),
    ),
    "a client that went, and two connections": (
        every(
            try_of(499, "-"),
            *(connection(f"{NGINX}:{port}", lambda one: one.handshake(LATER_S), isn=port) for port in (50_013, 50_014)),
            count("backend-1", "Tcp.PassiveOpens", more=2),
        ),
        {"tries-connected"},
    ),
}


@pytest.mark.parametrize("damage", OF_NGINX)
def test_what_two_observers_of_nginx_s_hop_count_differently_is_false(proxied: RunFolder, damage: str) -> None:
    change, false = OF_NGINX[damage]
    change(proxied)

    assert failing(proxied, 1) == false


def test_where_nginx_keeps_connections_a_try_need_not_have_its_own(proxied: RunFolder) -> None:
    proxied.set_knobs(nginx__upstream_keepalive=8)
    without_line(200)(proxied)

    assert failing(proxied, 1) == set()


# Connections as health checks make them: three that are made, one that is refused, one that nothing answers.
CHECKS = every(
    *(connection(f"{NGINX}:{port}", lambda one: one.handshake(LATER_S), isn=port) for port in (50_024, 50_025, 50_026)),
    count("backend-1", "Tcp.PassiveOpens", more=3),
    connection(f"{NGINX}:50022", lambda one: one.refused(LATER_S), isn=50_022),
    connection(f"{NGINX}:50023", lambda one: one.syns(LATER_S), isn=50_023),
    dropped(),
)


@pytest.mark.parametrize(
    ("checks", "false"),
    [
        (None, {"tries-connected", "tries-unanswered", "tries-refused"}),
        ({"servers": 1, "every_ms": 2000}, set()),
        ({"servers": 1, "every_ms": 86_400_000}, {"health-checks", "tries-connected"}),
    ],
)
def test_health_checks_are_counted_apart_as_far_as_their_interval_allows(
    proxied: RunFolder, checks: object, false: set[str]
) -> None:
    proxied.manifest["roles"]["nginx"]["checks"] = checks
    CHECKS(proxied)

    assert failing(proxied, 1) == false


def test_a_health_check_at_the_window_s_edge_is_counted_on_either_side(proxied: RunFolder) -> None:
    proxied.manifest["roles"]["nginx"]["checks"] = {"servers": 1, "every_ms": 2000}
    count("backend-1", "Tcp.PassiveOpens")(proxied)
    assert failing(proxied, 1) == set()
    count("backend-1", "Tcp.PassiveOpens", more=2)(proxied)
    assert failing(proxied, 1) == {"accepted"}
