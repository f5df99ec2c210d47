"""What each file of SQL makes of a few rows, where its tables are not those of a run's account."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import pytest

from analysis.database import create, in_memory
from analysis.diagnosis.joins.tables import FLOWS
from tests.analysis.test_sql import APART, table

Row = dict[str, Any]

PATHS = {path.stem: path for path in APART}

# An event of a connection, as analysis.evidence.clocks makes the table.
EVENTS = """machine VARCHAR, side VARCHAR, client VARCHAR, server VARCHAR, isn BIGINT, place BIGINT, places BIGINT,
    what VARCHAR, sender VARCHAR, time_us BIGINT"""
ENDS = "client_address VARCHAR, client_port BIGINT, server_address VARCHAR, server_port BIGINT, client_isn BIGINT"


class Rows:
    """A database with the tables of a test."""

    def __init__(self) -> None:
        self.database = in_memory()

    def given(self, name: str, columns: str, *rows: tuple[Any, ...]) -> None:
        """Make a table, with these rows."""
        self.database.execute(f"CREATE TABLE {name} ({columns})")
        for row in rows:
            self.database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", list(row))  # noqa: S608

    def made(
        self, file: str, columns: str = "*", parts: Mapping[str, str] | None = None, **parameters: object
    ) -> list[tuple[Any, ...]]:
        """Run a file and give these columns of all rows of its table; of a query, its rows. `parts` are SQL in it."""
        found = self.database.execute(Template(PATHS[file].read_text()).safe_substitute(parts or {}), parameters)
        name = table(PATHS[file])
        return (
            found.fetchall()
            if name is None
            else self.database.execute(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall()  # noqa: S608
        )


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_every_file_is_put_to_rows_here() -> None:
    tested = set(re.findall(r'\.made\(\s*"(\w+)"', Path(__file__).read_text()))
    assert PATHS.keys() - tested == set()


def test_events_captured_are_those_of_one_end_and_whose_packets_they_are(rows: Rows, tmp_path: Path) -> None:
    path = str(tmp_path / "flows.parquet")
    rows.given("instances", "instance VARCHAR, machine VARCHAR, address VARCHAR", ("k6-1", "one", "c"))
    rows.given("events", EVENTS)
    times = ("synack_times_us", "handshake_ack_time_us", "client_first_data_time_us", "server_first_data_time_us",
             "client_last_data_time_us", "client_fin_time_us", "server_fin_time_us", "first_rst_time_us")  # fmt: skip
    rows.given(
        "written",
        f"{ENDS}, first_packet BIGINT, truncated_start BOOLEAN, syn_count BIGINT, syn_times_us BIGINT[],"
        f" first_rst_by VARCHAR, {times[0]} BIGINT[], " + ", ".join(f"{name} BIGINT" for name in times[1:]),
        ("c", 1000, "s", 80, 7, 1, False, 2, [1, 2], "server", [3], 4, 5, 6, 8, None, None, 9),
        ("c", 1001, "s", 80, 7, 2, True, 1, [1], None, [3], 4, 5, 6, 8, None, None, None),
    )
    rows.database.execute(f"COPY written TO '{path}'")
    found = rows.made("events_captured", "time_us, what, sender", path=path, instance="k6-1", one_of=1)
    # The client's last data may not have come: at the client's end it says nothing.
    assert found == [
        (1, "syn", "client"), (2, "syn 2 of 2", "client"), (3, "answer", "server"), (4, "ack", "client"),
        (5, "client data", "client"), (6, "server data", "server"), (9, "server rst", "server"),
    ]  # fmt: skip
    assert rows.database.execute("SELECT DISTINCT machine, side, client, server FROM events").fetchall() == [
        ("one", "client", "c 1000", "s 80")
    ]


DIALLED = """id BIGINT, client VARCHAR, server VARCHAR, place BIGINT, places BIGINT, time_us BIGINT,
    duration_us BIGINT, error VARCHAR, error_kind VARCHAR"""


def test_events_dialled_bound_the_syn_and_the_answer_of_what_was_connected(rows: Rows) -> None:
    rows.given("instances", "instance VARCHAR, machine VARCHAR, address VARCHAR", ("k6-1", "one", "c"))
    rows.given("events", EVENTS)
    rows.given(
        "dialled", DIALLED,
        (1, "c 1", "s 80", 1, 1, 10, 5, None, None), (2, "c 2", "s 80", 1, 1, 20, 5, "late", "timeout"),
    )  # fmt: skip
    found = rows.made("events_dialled", "client, what, sender, time_us, machine", instance="k6-1")
    assert found == [
        ("c 1", "answer", "server", 15, "one"),
        ("c 1", "syn", "client", 10, "one"),
        ("c 2", "syn", "client", 20, "one"),
    ]


def test_events_requested_bound_the_data_of_a_connection(rows: Rows) -> None:
    rows.given("instances", "instance VARCHAR, machine VARCHAR, address VARCHAR", ("k6-1", "one", "c"))
    rows.given("events", EVENTS)
    rows.given("dialled", DIALLED, (1, "c 1", "s 80", 1, 1, 10, 5, None, None))
    rows.given("answered", "dial BIGINT, first_us BIGINT, last_us BIGINT, end_us BIGINT", (1, 20, 30, 25), (9, 1, 1, 1))
    found = rows.made("events_requested", "what, sender, time_us", instance="k6-1")
    assert found == [
        ("client data", "client", 20), ("last client data", "client", 30), ("server data", "server", 25),
    ]  # fmt: skip


def test_pairs_are_one_event_at_two_machines_from_sender_to_receiver(rows: Rows) -> None:
    here, there = ("one", "client", "c 1", "s 80"), ("two", "server", "c 1", "s 80")
    rows.given(
        "events", EVENTS,
        (*here, 7, 1, 1, "syn", "client", 10), (*there, 7, 1, 1, "syn", "client", 12),
        (*there, 7, 1, 1, "answer", "server", 13), (*here, None, 1, 1, "answer", "server", 15),
        (*there, 8, 1, 1, "ack", "client", 99), (*here, 7, 1, 1, "ack", "client", 16),
    )  # fmt: skip
    assert sorted(rows.made("pairs")) == [("one", "two", 10, 12), ("two", "one", 13, 15)]


def test_too_late_counts_those_whose_next_syn_was_due_after_the_end(rows: Rows) -> None:
    rows.given(
        "timeline", "instance VARCHAR, time_us BIGINT, ticks BIGINT, listen_depth BIGINT, listen_limit BIGINT",
        ("backend", 10, 1, 2, 1), ("backend", 20, 1, 1, 1), ("backend", 15, 0, None, None),
    )  # fmt: skip
    rows.given(
        "requests",
        "cause VARCHAR, dial_error_kind VARCHAR, dial_time_us BIGINT, dial_duration_us BIGINT, flow_observer VARCHAR,"
        " flow_id BIGINT",
        ("full", "timeout", 1, 29, "backend", 1), ("full", "timeout", 1, 18, "backend", 2),
        ("else", "timeout", 1, 29, "backend", 1),
    )  # fmt: skip
    rows.given(
        "flows",
        "observer VARCHAR, id BIGINT, to_instance VARCHAR, first_time_us BIGINT, syn_times_us BIGINT[],"
        " established BOOLEAN",
        ("backend", 1, "backend", 2, [2, 9], False), ("backend", 2, "backend", 2, [2], False),
    )  # fmt: skip
    # The second gave up at 19, before there was a free place.
    assert rows.made("too_late", queues=1, cause="full") == [(1, 20, 7, 30, 30)]


TICKS = """instance VARCHAR, n BIGINT, time_us BIGINT, listeners BIGINT, depth BIGINT, queue_limit BIGINT,
    listen_drops BIGINT, overflows BIGINT"""


def test_queues_are_those_that_held_a_connection_by_steps(rows: Rows) -> None:
    rows.given(
        "ticks", TICKS,
        ("a:80", 1, 0, 1, 0, 5, 0, 0), ("a:80", 2, 50, 1, 3, 5, 0, 0), ("a:80", 3, 100, 1, 1, 5, 0, 0),
        ("b:80", 1, 50, 1, 0, 5, 0, 0),
    )  # fmt: skip
    assert rows.made("queues", start_us=0, end_us=100, steps=2) == [("a:80", 0, 0, 5), ("a:80", 1, 3, 5)]


def test_listeners_are_counted_from_the_tick_before_the_window_to_the_one_after(rows: Rows) -> None:
    rows.given(
        "ticks", TICKS,
        ("a:80", 1, 0, 1, 0, 1, 3, 10), ("a:80", 2, 10, 1, 0, 1, 5, 20), ("a:80", 3, 20, 1, 2, 1, 6, 25),
        ("a:80", 4, 30, 1, 1, 1, 9, 27), ("a:80", 5, 40, 1, 9, 1, 99, 99), ("b:80", 1, 20, 1, 9, 9, 9, 9),
    )  # fmt: skip
    assert rows.made("listeners", prefix="a:", start_us=15, end_us=25) == [("a:80", 1, 2, 33.33, 4, 7)]


LEDGER = f"""observer VARCHAR, direction VARCHAR, to_instance VARCHAR, {ENDS}, outcome VARCHAR, cause VARCHAR,
    syn_count BIGINT, time_wait_owner VARCHAR, first_time_us BIGINT, last_time_us BIGINT, queued_us BIGINT,
    in_queue_us BIGINT, answered_us BIGINT, in_window BOOLEAN, syns_lost BIGINT, client_retransmissions BIGINT,
    server_retransmissions BIGINT, handshake_us BIGINT, first_byte_us BIGINT, closed_by VARCHAR"""


def of_ledger(port: int, outcome: str, **values: object) -> tuple[Any, ...]:
    row = {
        "observer": "a", "direction": "in", "to_instance": "a:80", "client_address": "c", "client_port": port,
        "server_address": "s", "server_port": 80, "client_isn": 7, "outcome": outcome, "cause": None, "syn_count": 1,
        "time_wait_owner": None, "first_time_us": 0, "last_time_us": 10, "queued_us": None, "in_queue_us": None,
        "answered_us": None, "in_window": True, "syns_lost": 0, "client_retransmissions": 0,
        "server_retransmissions": 0, "handshake_us": None, "first_byte_us": None, "closed_by": None,
    } | values  # fmt: skip
    return tuple(row.values())


def test_peers_with_the_most_failed_connections_come_first(rows: Rows) -> None:
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "ok"), of_ledger(2, "recovered"), of_ledger(3, "refused", client_address="d"),
        of_ledger(4, "ok", direction="out", to_instance="a>s:80"),
    )  # fmt: skip
    assert rows.made("peers", instance="a", most=2) == [("a:80", "d", 1, 1, 0), ("a:80", "c", 2, 0, 1)]


def test_time_wait_most_are_those_that_the_instance_closed_first_within_a_minute(rows: Rows) -> None:
    ours = {"direction": "out", "to_instance": "a>s:80", "time_wait_owner": "client"}
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "ok", **ours), of_ledger(2, "ok", **ours, last_time_us=59_000_000),
        of_ledger(3, "ok", **ours, last_time_us=61_000_000),
        of_ledger(4, "ok", **(ours | {"time_wait_owner": "server"})),
    )  # fmt: skip
    assert rows.made("time_wait_most", instance="a") == [("a>s:80", 2)]


def test_crossing_counts_what_left_the_peer_and_did_not_come(rows: Rows) -> None:
    rows.given("own", "observer VARCHAR, address VARCHAR", ("target", "s"))
    rows.given(
        "flows", f"observer VARCHAR, id BIGINT, {ENDS}, syn_count BIGINT, truncated_start BOOLEAN",
        ("peer", 1, "c", 1, "s", 80, 7, 3, False), ("target", 9, "c", 1, "s", 80, 7, 1, False),
        ("peer", 2, "c", 2, "s", 80, 7, 2, False), ("peer", 3, "c", 3, "other", 80, 7, 2, False),
    )  # fmt: skip
    assert rows.made("crossing", peer="peer", target="target") == [(1, 1, 4)]


def test_failed_at_counts_by_outcome_and_cause(rows: Rows) -> None:
    full = {"cause": "accept-queue-drop"}
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "never-answered", **full, syn_count=5), of_ledger(2, "never-answered", **full, syn_count=3),
        of_ledger(3, "never-answered", syn_count=1), of_ledger(4, "reset", cause="accept-queue-reset"),
        of_ledger(5, "never-accepted"), of_ledger(6, "given-up"), of_ledger(7, "recovered"),
        of_ledger(8, "never-answered", **full, to_instance="b:80"),
    )  # fmt: skip
    assert rows.made("failed_at", server="a:80") == [(3, 2, 1, 1, 1, 1, 5)]


def test_places_are_the_most_that_waited_or_stood_in_the_queue_at_once(rows: Rows) -> None:
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "ok", queued_us=2, in_queue_us=3), of_ledger(2, "never-answered", first_time_us=4),
        of_ledger(3, "never-accepted", first_time_us=5), of_ledger(4, "refused"), of_ledger(5, "earlier"),
    )  # fmt: skip
    assert rows.made("places", server="a:80") == [(3,)]


def test_servers_account_for_an_instance_s_connections_by_the_server_s_end(rows: Rows) -> None:
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "reset", cause="b", syns_lost=1, handshake_us=10, closed_by="server", time_wait_owner="client"),
        of_ledger(2, "recovered", cause="a", syns_lost=2, client_retransmissions=3, handshake_us=20, in_queue_us=7),
        of_ledger(3, "reset", cause="b", server_retransmissions=4, first_byte_us=5, closed_by="server"),
        of_ledger(4, "ok", direction="out", to_instance="a>s:80"),
        of_ledger(5, "ok", observer="b", to_instance="b:80"),
    )  # fmt: skip
    nothing = {"count": 0, "p50": None, "p99": None, "max": None}
    first, second = rows.made("servers", instance="a")
    assert first == (
        "a:80", "in", 3, 3, 3, 4, {"recovered": 1, "reset": 2}, {"a": 1, "b": 2},
        {"count": 2, "p50": 15.0, "p99": pytest.approx(19.9), "max": 20},
        {"count": 1, "p50": 5.0, "p99": 5.0, "max": 5}, {"count": 1, "p50": 7.0, "p99": 7.0, "max": 7},
        {"nobody": 1, "server": 2}, {"client": 1, "unknown": 2},
    )  # fmt: skip
    assert second == (
        "a>s:80", "out", 1, 0, 0, 0, {"ok": 1}, {}, nothing, nothing, nothing, {"nobody": 1}, {"unknown": 1},
    )  # fmt: skip
    # The file connections.json has them in this order.
    maps = [each for each in first[:12] if isinstance(each, dict) and "p50" not in each]
    assert [list(each) for each in maps] == [["recovered", "reset"], ["a", "b"], ["nobody", "server"]]


def test_came_and_taken_are_those_that_began_in_the_window(rows: Rows) -> None:
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "ok", in_queue_us=5), of_ledger(2, "ok"), of_ledger(3, "earlier"),
        of_ledger(4, "ok", in_queue_us=5, in_window=False), of_ledger(5, "ok", in_queue_us=5, to_instance="b:80"),
    )  # fmt: skip
    assert rows.made("came_and_taken", server="a:80") == [(2, 1)]


TIMELINE = "instance VARCHAR, time_us BIGINT, ticks BIGINT, listen_depth BIGINT, listen_limit BIGINT, time_wait BIGINT"


def test_levels_are_the_greatest_of_each_step_that_has_a_tick(rows: Rows) -> None:
    rows.given(
        "timeline", TIMELINE,
        ("a", 100, 1, 3, 2, 7), ("a", 105, 1, 2, 9, 4), ("b", 105, 1, 4, 2, None), ("a", 110, 1, 0, 9, 1),
        ("a", 107, 0, 99, 99, 99), ("else", 100, 1, 99, 99, 99),
    )  # fmt: skip
    asked: dict[str, Any] = {"start": 100, "width": 10, "queues": 2, "instances": ["a", "b"]}
    assert sorted(rows.made("levels", **asked)) == [
        ("a", 0, 3, 9, 11, 0, 7), ("a", 1, 0, 9, 11, 0, 1), ("b", 0, 4, 2, 4, 1, None),
    ]  # fmt: skip


def test_grown_is_the_sum_over_instances_of_one_counter_where_it_is_known(rows: Rows) -> None:
    rows.given(
        "timeline", 'instance VARCHAR, time_us BIGINT, "Tcp.RetransSegs" BIGINT, "Tcp.RetransSegsToo" BIGINT',
        ("a", 100, 1, 50), ("b", 109, 2, 50), ("a", 110, 4, 50), ("a", 120, None, 50), ("else", 100, 99, 50),
    )  # fmt: skip
    asked: dict[str, Any] = {"start": 100, "width": 10, "instances": ["a", "b"]}
    assert rows.made("grown", counter="Tcp.RetransSegs", **asked) == [(0, 3), (1, 4)]


READINGS = "instance VARCHAR, time_us BIGINT, name VARCHAR, value DOUBLE"


def test_read_by_second_is_the_greatest_of_each_name_in_each_second(rows: Rows) -> None:
    rows.given(
        "readings", READINGS,
        ("b", 10, "sockets.server.listen", 1), ("a", 2_000_010, "sockets.server.listen", 2),
        ("a", 1_500_000, "sockets.server.listen", 3), ("a", 1_900_000, "sockets.server.listen", 4),
        ("a", 1_900_000, "host.cpu_percent", 99),
    )  # fmt: skip
    name = "sockets.server.listen"
    assert rows.made("read_by_second", start=10, pattern="sockets.%") == [
        ("a", name, 1, 4), ("a", name, 2, 2), ("b", name, 0, 1),
    ]  # fmt: skip


def test_machine_busy_is_what_one_sampler_read_of_all_processors(rows: Rows) -> None:
    name = "host.cpu_percent"
    rows.given(
        "readings", READINGS,
        ("a", 20, name, 5), ("a", 10, name, 7), ("a", 10, name, 6), ("b", 10, name, 99), ("a", 10, "else", 99),
    )  # fmt: skip
    assert rows.made("machine_busy", instance="a") == [(10, 7), (20, 5)]


DRAWN = """instance VARCHAR, id BIGINT, outcome VARCHAR, cause VARCHAR, time_us BIGINT, end_us BIGINT, total_us BIGINT,
    reused BOOLEAN, dial BIGINT, dial_time_us BIGINT, dial_duration_us BIGINT"""


def of_requests(number: int, begin_us: int, end_us: int, outcome: str = "ok", **values: object) -> tuple[Any, ...]:
    row = {
        "instance": "k6-1", "id": number, "outcome": outcome, "cause": None, "time_us": begin_us, "end_us": end_us,
        "total_us": end_us - begin_us, "reused": False, "dial": number, "dial_time_us": begin_us,
        "dial_duration_us": 1,
    } | values  # fmt: skip
    return tuple(row.values())


def test_ended_counts_what_became_of_the_requests_of_each_step(rows: Rows) -> None:
    rows.given(
        "requests", DRAWN,
        of_requests(1, 90, 99), of_requests(2, 90, 100), of_requests(3, 100, 109), of_requests(4, 100, 110),
        of_requests(5, 100, 105, "failed", cause="refused"), of_requests(6, 100, 105, "failed", cause="reset"),
    )  # fmt: skip
    found = rows.made("ended", start=100, width=10)
    assert [step for _, _, step, _ in found] == [0, 0, 0, 1]
    assert sorted(found, key=str) == [
        ("failed", "refused", 0, 1), ("failed", "reset", 0, 1), ("ok", None, 0, 2), ("ok", None, 1, 1),
    ]  # fmt: skip


def test_took_tells_connecting_of_those_alone_that_had_to(rows: Rows) -> None:
    rows.given(
        "requests", DRAWN,
        of_requests(1, 110, 120), of_requests(2, 100, 101), of_requests(3, 101, 104, dial_duration_us=2),
        of_requests(4, 102, 202, reused=True, dial_duration_us=50),
    )  # fmt: skip
    assert rows.made("took", start=100, width=10) == [(0, 3.0, pytest.approx(90.3), 100, 2), (1, 10.0, 10.0, 10, 1)]


def test_in_order_is_by_begin_and_gives_the_dial_to_whoever_waited_for_it(rows: Rows) -> None:
    rows.given(
        "requests", DRAWN,
        of_requests(3, 10, 20), of_requests(2, 10, 30, "slow", reused=True), of_requests(9, 5, 6, "failed"),
    )  # fmt: skip
    assert rows.made("in_order") == [
        ("failed", 5, 6, 1, 1, 5, 1), ("slow", 10, 30, 20, 2, None, None), ("ok", 10, 20, 10, 3, 10, 1),
    ]  # fmt: skip


def test_dialled_has_each_dial_once_that_a_request_waited_long_for(rows: Rows) -> None:
    rows.given(
        "requests", DRAWN,
        of_requests(1, 30, 99, dial_duration_us=7), of_requests(2, 30, 99, dial=1, dial_duration_us=7),
        of_requests(3, 10, 99, dial_duration_us=5), of_requests(4, 10, 99, dial_duration_us=4),
        of_requests(5, 10, 99, dial_duration_us=9, reused=True),
    )  # fmt: skip
    assert rows.made("dialled", least_us=5) == [(10, 5), (30, 7)]


def test_share_at_last_hop_is_of_one_cause(rows: Rows) -> None:
    rows.given("requests", "cause VARCHAR, status BIGINT", ("reset", 0), ("reset", 502), ("refused", 502))
    found = rows.made("share_at_last_hop", parts={"at_last_hop": "status > 0"}, cause="reset")
    assert found == [(0.5,)]


def test_macros_of_records_ask_addresses_ends_and_tries(rows: Rows) -> None:
    parts = {"succeeded": "error_code = 0 AND status BETWEEN 200 AND 399", "kinds": "'timeout', 'other'"}
    rows.made("macros_of_records", parts=parts)
    asked = "SELECT failure_of(NULL, NULL), failure_of('x', 'timeout'), failure_of('x', 'odd'), failure_of('x', NULL)"
    assert rows.database.execute(asked).fetchall() == [(None, "timeout", "other", "other")]
    asked = """SELECT succeeded(0, 399), succeeded(0, 400), succeeded(1, 200), host_of('[::1]:80'), port_of('[::1]:80'),
        host_of('10.0.0.2:81'), port_of('10.0.0.2'), seconds_of('0.5, -, -1, 2')"""
    assert rows.database.execute(asked).fetchall() == [
        (True, False, False, "::1", 80, "10.0.0.2", None, [0.5, None, None, 2.0])
    ]


def test_macros_of_evidence_tell_moments_durations_and_a_server_s_close(rows: Rows) -> None:
    rows.made("macros_of_evidence", parts={"start_us": "1000000"})
    asked = """SELECT moment(3500000), took(1500), took(1500000), server_close_us(9, 'server', 5),
        server_close_us(9, 'client', 5), server_close_us(NULL, 'client', 5)"""
    assert rows.database.execute(asked).fetchall() == [("2.500 s", "1.5 ms", "1.500 s", 5, 9, None)]


def of_lines(tmp_path: Path, *lines: dict[str, Any] | str) -> str:
    """A file of JSON Lines, with lines that are none as they stand."""
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_captured_of_instance_adds_one_capture_s_connections(rows: Rows, tmp_path: Path) -> None:
    path = str(tmp_path / "flows.parquet")
    rows.database.execute(f"COPY (SELECT unnest([2, 1])::BIGINT AS id, 7 AS isn, 'x' AS other) TO '{path}'")
    rows.given("captured", "observer VARCHAR, handshakes_only BOOLEAN, id BIGINT, isn BIGINT")
    found = rows.made(
        "captured_of_instance", parts={"columns": "id, isn"}, path=path, observer="nginx", handshakes_only=True
    )
    assert found == [("nginx", True, 1, 7), ("nginx", True, 2, 7)]


def test_lines_of_requests_tell_records_header_end_and_what_is_corrupt(rows: Rows, tmp_path: Path) -> None:
    path = of_lines(
        tmp_path, {"kind": "header", "schema": "connlab.requests/1", "instance": "k6-1"},
        {"kind": "header", "schema": "connlab.requests/1", "instance": "k6-2"}, {"kind": "header", "schema": "else"},
        {"id": 3}, "{broken\n", {"kind": "end", "requests": 1},
    )  # fmt: skip
    fields = {**dict.fromkeys(("kind", "schema", "instance"), "VARCHAR"), "id": "BIGINT", "requests": "BIGINT"}
    whole = {"whole": "kind IS NULL AND id IS NOT NULL"}
    found = rows.made("lines_of_requests", parts=whole, path=path, instance="k6-1", writers=["k6-1"], fields=fields)
    assert found == [
        (None, "k6-1", None, 1), (None, "k6-1", None, 3), (None, "k6-1", None, 3), (3, "k6-1", None, 0),
        (None, "k6-1", None, 4), (None, "k6-1", 1, 2),
    ]  # fmt: skip


def test_lines_of_dials_tell_closes_too(rows: Rows, tmp_path: Path) -> None:
    path = of_lines(
        tmp_path, {"kind": "header", "schema": "connlab.dials/1", "instance": "gateway"}, {"kind": "dial", "id": 1},
        {"kind": "close", "id": 1}, {"kind": "close"}, {"kind": "end", "dials": 1}, {"id": 1},
    )  # fmt: skip
    fields = {**dict.fromkeys(("kind", "schema", "instance"), "VARCHAR"), "id": "BIGINT", "dials": "BIGINT"}
    parts = {"whole": "kind = 'dial'", "closed": "kind = 'close' AND id IS NOT NULL"}
    found = rows.made(
        "lines_of_dials", parts=parts, path=path, instance="gateway-1", writers=["gateway-1", "gateway"], fields=fields
    )
    assert [(id_, announced, kind) for id_, _, announced, kind in found] == [
        (None, None, 1), (1, None, 0), (1, None, 5), (None, None, 3), (None, 1, 2), (1, None, 4),
    ]  # fmt: skip


def test_closes_are_those_of_an_instance_each_once(rows: Rows) -> None:
    closed = "instance VARCHAR, id BIGINT, time_us BIGINT, bytes_sent BIGINT, bytes_received BIGINT, error VARCHAR"
    rows.given("closes", closed)
    rows.given(
        "dials", f"{closed}, line_kind TINYINT",
        ("a", 2, 20, 1, 1, None, 5), ("a", 1, 10, 1, 1, "reset", 5), ("a", 2, 30, 1, 1, None, 5),
        ("a", 3, 30, None, None, None, 0), ("b", 4, 10, 1, 1, None, 5),
    )  # fmt: skip
    assert rows.made("closes", "id, time_us, error", instance="a") == [(1, 10, "reset"), (2, 20, None)]


def test_dialled_has_dials_with_both_ends_as_a_capture_names_them(rows: Rows, tmp_path: Path) -> None:
    ends = {"kind": "dial", "local": "[::1]:1000", "remote": "10.0.0.2:80"}
    path = of_lines(
        tmp_path, ends | {"id": 2, "time_us": 20}, ends | {"id": 1, "time_us": 10},
        ends | {"id": 3, "local": "c:1001", "error_kind": "address-not-available"}, {"kind": "dial", "id": 4},
        ends | {"kind": "close", "id": 1},
    )  # fmt: skip
    columns = "id, client, server, place, places"
    found = rows.made("dialled_both_ends", columns, {"whole": "kind = 'dial'"}, path=path, one_of=1)
    assert found == [(1, "::1 1000", "10.0.0.2 80", 1, 2), (2, "::1 1000", "10.0.0.2 80", 2, 2)]


def test_answered_bounds_the_requests_of_a_plain_connection(rows: Rows, tmp_path: Path) -> None:
    request = {"url": "http://s/", "status": 200, "tls_us": 0, "blocked_us": 1}
    path = of_lines(
        tmp_path,
        request | {"dial": 1, "time_us": 10, "end_us": 15}, request | {"dial": 1, "time_us": 20, "end_us": 25},
        request | {"dial": 2, "time_us": 10, "end_us": 15}, request | {"dial": 2, "status": 0},
        request | {"dial": 3, "url": "https://s/", "time_us": 10}, request | {"time_us": 10},
        request | {"dial": 1, "id": 9},
    )  # fmt: skip
    found = rows.made("answered", parts={"whole": "id IS NULL"}, path=path)
    assert found == [(1, 11, 21, 15)]


def test_lines_of_an_access_log_have_numbers_and_the_format_s_columns(rows: Rows, tmp_path: Path) -> None:
    found = rows.made(
        "lines_of_logs",
        parts={"columns": "took / 1000 AS seconds", "within": "if(took BETWEEN -9000 AND 9000, took, NULL) AS took"},
        path=of_lines(tmp_path, {"took": 500}, "\n", {"took": 10_000}, {"took": 2000}),
        fields={"took": "BIGINT"},
    )
    assert found == [(0.5, 1), (None, 2), (2.0, 3)]


@pytest.mark.parametrize(("speaks", "sentence"), [(True, 3), (False, 4)])
def test_lines_of_access_leave_room_for_sentences(rows: Rows, speaks: bool, sentence: int) -> None:  # noqa: FBT001
    rows.given("lines", "time_ms BIGINT, status BIGINT", (900, 200), (None, None), (None, 200))
    parts = {"whole": "time_ms IS NOT NULL AND status IS NOT NULL"}
    found = rows.made("lines_of_access", parts=parts, instance="nginx", speaks=speaks)
    assert found == [(900, 200, "nginx", 0), (None, None, "nginx", sentence), (None, 200, "nginx", 4)]


def test_flows_of_what_was_watched_name_its_listener_or_the_server_elsewhere(rows: Rows) -> None:
    rows.given("own", "observer VARCHAR, address VARCHAR", ("web", "10.0.0.1"))
    rows.given("ticks", "instance VARCHAR", ("web:80",))
    ends = "observer VARCHAR, id BIGINT, client_address VARCHAR, server_address VARCHAR, server_port BIGINT"
    rows.given(
        "captured", ends,
        ("web", 1, "10.0.0.9", "10.0.0.1", 80), ("web", 2, "10.0.0.1", "10.0.0.3", 5432),
        ("web", 3, "10.0.0.1", "10.0.0.1", 80), ("web", 4, "10.0.0.9", "10.0.0.7", 80),
    )  # fmt: skip
    assert rows.made("flows", "id, direction, to_instance") == [
        (1, "in", "web:80"), (2, "out", "web>10.0.0.3:5432"), (3, "in", "web:80"), (4, "in", "web:80"),
    ]  # fmt: skip


CONNECTION = {"observer": "web", "id": 1, "first_time_us": 10, "last_time_us": 90, "syn_times_us": [10], "syns_lost": 0,
              "answered": True, "established": True, "entered": True, "refused": False, "truncated_start": False,
              "client_inferred": False, "handshakes_only": False, "closed_by": "client"}  # fmt: skip
UNANSWERED = {"answered": False, "syn_times_us": [10, 1_000_010], "syns_lost": 2}


@pytest.mark.parametrize(
    ("values", "until_us", "overflowed", "found"),
    [
        ({"server_first_data_time_us": 50}, 99, 0, ("answered", None)),
        ({"server_first_data_time_us": 50, "syns_lost": 1}, 99, 1, ("recovered", "waited-for-syn-retry")),
        ({"server_first_data_time_us": 50, "syns_lost": 1}, 99, 0, ("recovered", None)),
        ({"client_fin_time_us": 40, "server_first_data_time_us": 50}, 99, 0, ("given-up", None)),
        ({"refused": True}, 99, 0, ("refused", "connection-refused")),
        (UNANSWERED, 9_000_000, 2, ("never-answered", "accept-queue-drop")),
        (UNANSWERED, 9_000_000, 1, ("never-answered", "unexplained")),
        (UNANSWERED, 3_000_000, 2, ("undecided", "waited-for-syn-retry")),
        ({"last_time_us": 9}, 99, 0, None),
    ],
)
def test_ledger_of_what_was_watched_has_outcome_and_proven_cause(
    rows: Rows, values: Row, until_us: int, overflowed: int, found: tuple[str, str | None] | None
) -> None:
    more = dict.fromkeys(("direction", "to_instance", "observer"), "VARCHAR") | dict.fromkeys(
        ("handshakes_only", "entered", "refused", "aborted"), "BOOLEAN"
    )
    counts = dict.fromkeys(("syns_lost", "answered_us", "queued_us", "ack_dropped_min"), "BIGINT")
    create(rows.database, "connections", {**FLOWS, **more, **counts})
    connection = CONNECTION | values
    places = ", ".join("?" * len(connection))
    insert = f"INSERT INTO connections ({', '.join(connection)}) VALUES ({places})"  # noqa: S608
    rows.database.execute(insert, list(connection.values()))
    rows.given("spans", "observer VARCHAR, end_us BIGINT", ("web", until_us))
    rows.given("accepted", "observer VARCHAR, id BIGINT, accepted_after_us BIGINT, accepted_before_us BIGINT")
    proof = ("syns_overflowed", "syns_syn_queue_full", "syns_not_dropped", "syns_unsampled", "depth_max", "queue_limit")
    columns = "observer VARCHAR, id BIGINT, " + ", ".join(f"{name} BIGINT" for name in proof)
    rows.given("queue_proof", columns, ("web", 1, overflowed, 0, 0, 0, 1, 1))
    made = rows.made("ledger", "outcome, cause", start_us=10, end_us=99)
    assert made == ([] if found is None else [found])


def test_ledger_both_ends_gives_the_client_s_end_what_the_server_s_proves(rows: Rows) -> None:
    rows.given(
        "ledger", f"id BIGINT, direction VARCHAR, cause VARCHAR, {ENDS}",
        (1, "in", "accept-queue-drop", "c", 1000, "s", 80, 7), (2, "out", "unexplained", "c", 1000, "s", 80, 7),
        (3, "out", "unexplained", "c", 1000, "s", 80, 8), (4, "out", None, "c", 1000, "s", 80, 7),
    )  # fmt: skip
    assert rows.made("ledger_both_ends", "id, cause") == [
        (1, "accept-queue-drop"), (2, "accept-queue-drop"), (3, "unexplained"), (4, None),
    ]  # fmt: skip
