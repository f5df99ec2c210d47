"""What each file of SQL makes of a few rows. A run of the tests gives the columns; no test here derives one."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import pytest

from analysis.database import create, in_memory
from analysis.derivation import judge
from analysis.diagnosis.joins import Joined
from tests.analysis.test_sql import OF_A_RUN, table
from tests.analysis.whole import make_run

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]

PATHS = {path.stem: path for path in OF_A_RUN}
_SOURCES = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")

# The connection between the ends that most rows here have.
ENDS: Row = {"client_address": "c", "client_port": 1000, "server_address": "s", "server_port": 80}
MADE: Row = {"from_instance": "k6-1", "to_instance": "nginx", **ENDS, "observer": "nginx"}


class Tables:
    """A database with rows of a test: `given` puts them there, `made` runs a file and gives what it makes of them."""

    def __init__(self, columns: dict[str, dict[str, str]], macros: list[str]) -> None:
        self._columns = columns
        self.database = in_memory()
        for macro in macros:
            self.database.execute(macro)
        self._there: set[str] = set()

    def given(self, name: str, *rows: Row) -> Tables:
        """Put rows into a table; what a row does not name is null."""
        self._make(name)
        for row in rows:
            places = ", ".join("?" * len(row))
            names = ", ".join(f'"{column}"' for column in row)
            self.database.execute(f"INSERT INTO {name} ({names}) VALUES ({places})", list(row.values()))  # noqa: S608
        return self

    def made(
        self, file: str, columns: str, parts: dict[str, str] | None = None, /, **parameters: object
    ) -> list[tuple[Any, ...]]:
        """Run a file and give these columns of all rows of its table; of a query, its rows. `parts` are SQL in it."""
        text = Template(PATHS[file].read_text()).safe_substitute(parts or {})
        name = table(PATHS[file])
        for source in {*_SOURCES.findall(text), name} & self._columns.keys():
            if f"CREATE TABLE {source} " not in text and f"CREATE VIEW {source} " not in text:
                self._make(source)
        found = self.database.execute(text, parameters)
        if name is None:
            return found.fetchall()
        return self.database.execute(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall()  # noqa: S608

    def named(self, file: str, **parameters: object) -> Row:
        """Run a query that gives one row, and give its columns by name."""
        (row,) = self.made(file, "", **parameters)
        names = [column[0] for column in self.database.execute(PATHS[file].read_text(), parameters).description]
        return dict(zip(names, row, strict=True))

    def _make(self, name: str) -> None:
        if name not in self._there:
            create(self.database, name, self._columns[name])
            self._there.add(name)


@pytest.fixture(scope="session")
def known_tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The columns of every table, and the macros, as a run makes them."""
    joined = judge(make_run(tmp_path_factory.mktemp("columns")).write()).run.joined
    assert isinstance(joined, Joined)
    joined.need("attributed")
    columns = {
        name: {row["column_name"]: row["column_type"] for row in joined.rows(f"DESCRIBE {name}")}
        for name in (row["name"] for row in joined.rows("SHOW TABLES"))
    }
    macros = joined.rows("SELECT DISTINCT * FROM duckdb_functions() WHERE function_type = 'macro' AND NOT internal")
    return columns, [
        f"CREATE OR REPLACE MACRO {row['function_name']}({', '.join(row['parameters'])}) AS {row['macro_definition']}"
        for row in macros
    ]


@pytest.fixture
def tables(known_tables: tuple[dict[str, dict[str, str]], list[str]]) -> Tables:
    return Tables(*known_tables)


def test_every_file_is_put_to_rows_here() -> None:
    tested = set(re.findall(r'\.(?:made|named)\(\s*"(\w+)"', Path(__file__).read_text()))
    assert PATHS.keys() - tested == set()


def test_flows_name_the_instances_at_both_ends(tables: Tables) -> None:
    tables.given("addresses", {"instance": "k6-1", "address": "c"})
    tables.given("captured", {"observer": "nginx", "id": 1, **ENDS})
    assert tables.made("flows", "id, from_instance, to_instance") == [(1, "k6-1", None)]


def test_addressed_dials_have_both_ends_in_parts(tables: Tables) -> None:
    tables.given("dials", {"id": 1, "local": "[::1]:1000", "remote": "10.0.0.2:80"}, {"id": 2})
    ends = "id, local_address, local_port, remote_address, remote_port"
    assert tables.made("addressed_dials", ends) == [(1, "::1", 1000, "10.0.0.2", 80), (2, None, None, None, None)]


def test_dials_of_unknown_port_sent_a_syn(tables: Tables) -> None:
    kinds = ["timeout", "address-not-available", "unreachable"]
    tables.given("addressed_dials", *({"id": n, "remote": "s:80", "error_kind": kind} for n, kind in enumerate(kinds)))
    tables.given("addressed_dials", {"id": 9, "remote": "s:80", "error_kind": "timeout", "local": "c:1000"})
    assert tables.made("dials_of_unknown_port", "id") == [(0,)]


def test_a_dial_finds_its_connection_by_addresses_and_time(tables: Tables) -> None:
    ends = {"local_address": "c", "local_port": 1000, "remote_address": "s", "remote_port": 80}
    for number, time_us in enumerate((100, 500), start=1):
        tables.given(
            "addressed_dials", {"instance": "k6-1", "id": number, **ends, "time_us": time_us, "duration_us": 9}
        )
    tables.given("connections", {**MADE, "id": 7, "first_time_us": 101}, {**MADE, "id": 8, "first_time_us": 300})
    assert tables.made("dial_links_by_address", "dial, flow, how", slack_us=5) == [(1, 7, "address")]


@pytest.mark.parametrize(("others", "found"), [((), [(1, 7, "time")]), ((105,), [])])
def test_a_dial_without_a_port_finds_a_connection_that_began_alone(
    tables: Tables, others: tuple[int, ...], found: list[Any]
) -> None:
    dial = {"instance": "k6-1", "id": 1, "remote_address": "s", "remote_port": 80, "time_us": 100, "duration_us": 9}
    tables.given("dials_of_unknown_port", dial)
    for number, time_us in enumerate((101, *others), start=7):
        tables.given("connections", {**MADE, "id": number, "first_time_us": time_us})
    assert tables.made("dial_links_by_time", "dial, flow, how", slack_us=5) == found


@pytest.mark.parametrize(
    ("dials", "connections", "found"),
    [
        # Two at once, and one long after them that time alone tells apart: the files before have linked it.
        ([100, 104], [(101, True), (106, True)], [(1, 7, "group"), (2, 8, "group")]),
        ([100, 104, 500], [(101, True), (106, True)], [(1, 7, "group"), (2, 8, "group")]),
        # One more dial than connections, one connection more, and one that was not refused.
        ([100, 104, 106], [(101, True), (106, True)], []),
        ([100, 104], [(101, True), (103, True), (106, True)], []),
        ([100, 104], [(101, True), (106, False)], []),
    ],
)
def test_dials_that_were_refused_at_once_share_as_many_connections_that_were(
    tables: Tables, dials: list[int], connections: list[tuple[int, bool]], found: list[Any]
) -> None:
    dial = {"instance": "k6-1", "remote": "s:80", "remote_address": "s", "remote_port": 80, "duration_us": 3}
    for number, time_us in enumerate(dials, start=1):
        tables.given("dials_of_unknown_port", {**dial, "id": number, "time_us": time_us, "error_kind": "refused"})
    for number, (time_us, refused) in enumerate(connections, start=7):
        tables.given("connections", {**MADE, "id": number, "first_time_us": time_us, "refused": refused})
    assert tables.made("dial_links_by_group", "dial, flow, how", slack_us=5) == found


def test_a_session_has_the_last_dial_of_its_port_before_its_first_line(tables: Tables) -> None:
    line = {"instance": "nginx", "connection": 3, "remote_addr": "c", "remote_port": 1000, "server_addr": "s"}
    tables.given("access", {**line, "line": 1, "connection_requests": 1, "time_ms": 1})
    tables.given("addresses", {"instance": "nginx", "address": "s"})
    ends = {"local_address": "c", "local_port": 1000, "remote_address": "s"}
    for number, time_us in enumerate((100, 900, 2000), start=1):
        tables.given("addressed_dials", {"instance": "k6-1", "id": number, **ends, "time_us": time_us})
        tables.given("connections", {**MADE, "id": 10 + number, "first_time_us": time_us})
    assert tables.made("sessions", "connection, dial, flow", slack_us=5) == [(3, 2, 12)]


def test_the_nth_request_of_a_connection_is_its_nth_line_if_the_times_agree(tables: Tables) -> None:
    for number, end_us in enumerate((1000, 2000, 2500), start=1):
        request = {"instance": "k6-1", "id": number, "dial": 5, "remote": "s:80", "status": 200}
        tables.given("requests", {**request, "time_us": end_us - 100, "end_us": end_us})
    tables.given("sessions", {"instance": "nginx", "connection": 3, "dial_instance": "k6-1", "dial": 5})
    for number, time_ms in enumerate((1, 2, 9), start=1):
        line = {"instance": "nginx", "line": 10 + number, "connection": 3, "connection_requests": number}
        tables.given("access", {**line, "time_ms": time_ms})
    found = tables.made("request_links", "id, place, line", slack_us=5, late_us=5)
    assert found == [(1, 1, 11), (2, 2, 12), (3, 3, None)]


def test_a_line_has_a_try_for_each_server(tables: Tables) -> None:
    row = {
        "instance": "nginx",
        "line": 1,
        "time_ms": 1000,
        "upstream_addr": "a:80, b:81",
        "upstream_status": "502, 200",
    }
    times = {
        "upstream_connect_time": "-, 0.001",
        "upstream_header_time": "-, 0.010",
        "upstream_response_time": "0.2, 0.3",
    }
    tables.given("access", {**row, **times}, {"instance": "nginx", "line": 2, "upstream_addr": ""})
    columns = "try, tries, server_address, server_port, status, connect_us, start_us, names_dial"
    assert tables.made("tries", columns) == [
        (1, 2, "a", 80, 502, None, 500_000, False),
        (2, 2, "b", 81, 200, 1000, 700_000, False),
    ]


TRY: Row = {
    "instance": "k6-1",
    "try": 1,
    "server": "s:80",
    "server_address": "s",
    "server_port": 80,
    "names_dial": False,
}


def test_a_try_that_names_its_dial_has_that_dial_s_connection(tables: Tables) -> None:
    tables.given("tries", {"instance": "gateway", "line": 1, "try": 1, "dial": 5})
    tables.given("dial_links", {"instance": "gateway", "dial": 5, "observer": "backend-1", "flow": 7})
    assert tables.made("try_links_by_dial", "line, flow, how") == [(1, 7, "dial")]


@pytest.mark.parametrize(
    ("spans_us", "found"),
    [
        # The clock of the log is late by more than tries by time allow for.
        ([(80, 90)], [(1, 7)]),
        # Kept from before, and used again.
        ([(20, 250)], [(1, 7)]),
        # The last one of the port; a later one is another request's.
        ([(20, 40), (105, 250), (900, 950)], [(1, 8)]),
        # The capture lacks it.
        ([(20, 40)], []),
        ([(900, 950)], []),
    ],
)
def test_a_try_that_names_its_port_has_the_connection_from_there(
    tables: Tables, spans_us: list[tuple[int, int]], found: list[Any]
) -> None:
    tables.given("tries", {**TRY, "line": 1, "start_us": 100, "response_us": 200, "local_port": 40_000})
    for number, (first_us, last_us) in enumerate(spans_us, start=7):
        times = {"first_time_us": first_us, "last_time_us": last_us}
        tables.given("connections", {**MADE, "id": number, "client_port": 40_000, **times})
    assert tables.made("try_links_by_port", "line, flow", slack_us=5, turn_us=30) == found


@pytest.mark.parametrize(("begins_us", "found"), [((101, 201), [(1, 7), (2, 8)]), ((101, 900), []), ((101,), [])])
def test_tries_and_connections_pair_in_order_if_all_agree(
    tables: Tables, begins_us: tuple[int, ...], found: list[Any]
) -> None:
    tables.given("tries", *({**TRY, "line": n, "start_us": 100 * n} for n in (1, 2)))
    for number, time_us in enumerate(begins_us, start=7):
        tables.given("connections", {**MADE, "id": number, "established": False, "first_time_us": time_us})
    assert tables.made("try_links_by_order", "line, flow", slack_us=5, turn_us=10) == found


@pytest.mark.parametrize(("begins_us", "found"), [((101,), [(1, 7)]), ((101, 103), []), ((900,), [])])
def test_a_try_that_began_alone_has_the_connection_that_did(
    tables: Tables, begins_us: tuple[int, ...], found: list[Any]
) -> None:
    tables.given("tries", {**TRY, "line": 1, "start_us": 100})
    for number, time_us in enumerate(begins_us, start=7):
        tables.given("connections", {**MADE, "id": number, "established": False, "first_time_us": time_us})
    assert tables.made("try_links_by_time", "line, flow", slack_us=5, alone_us=10) == found


@pytest.mark.parametrize(("closed_us", "found"), [(300, [(1, 7)]), (900, [])])
def test_a_try_that_broke_off_has_the_connection_that_ended_then(
    tables: Tables, closed_us: int, found: list[Any]
) -> None:
    tables.given("tries", {**TRY, "line": 1, "start_us": 100, "response_us": 200, "connect_us": 0, "status": 502})
    times = {"client_last_data_time_us": 250, "server_fin_time_us": closed_us}
    tables.given("connections", {**MADE, "id": 7, "established": True, **times})
    assert tables.made("try_links_by_breach", "line, flow", slack_us=5, late_us=10) == found


def test_candidates_show_a_sign_of_a_full_queue_that_the_kernel_counted(tables: Tables) -> None:
    for instance, overflows in (("nginx", (0, 3)), ("backend-1", (5, 5))):
        tables.given("ticks", *({"instance": instance, "overflows": count} for count in overflows))
    tables.given("hops", {"observer": "nginx"})
    flow = {**MADE, "established": True, "answered": True, "handshakes_only": False, "synack_count": 1}
    rows: list[Row] = [
        {"client_retransmissions": 1},
        {"client_retransmissions": 0},
        {"client_retransmissions": 1, "to_instance": "backend-1"},
    ]
    tables.given("flows", *({**flow, "id": number, **row} for number, row in enumerate(rows)))
    assert tables.made("candidates", "id") == [(0,)]


def test_all_syns_before_the_answered_one_were_lost(tables: Tables) -> None:
    tables.given("hops", {"hop": 0, "client": "k6", "server": "nginx", "observer": "nginx"})
    tables.given("instances", {"instance": "k6-1", "role": "k6"}, {"instance": "nginx", "role": "nginx"})
    flow = {**MADE, "handshakes_only": False, "first_time_us": 10, "syn_times_us": [10, 20, 30], "syn_count": 3}
    stood = {"answered": True, "established": True, "synack_times_us": [31], "handshake_ack_time_us": 32}
    tables.given("flows", {**flow, "id": 1, **stood})
    tables.given("flows", {**flow, "id": 2, "answered": False, "established": False})
    columns = "id, syns_lost, syns_lost_us, queued_us, in_window, refused"
    assert tables.made("connections", columns, start_us=0, end_us=50) == [
        (1, 2, [10, 20], 32, True, False),
        (2, 3, [10, 20, 30], None, True, False),
    ]


@pytest.mark.parametrize(("overflows", "found"), [(1, [(7, 1), (8, 0)]), (0, [(7, 0), (8, 0)])])
def test_an_ack_may_have_met_the_queue_that_another_filled(tables: Tables, overflows: int, found: list[Any]) -> None:
    tables.given(
        "ticks", *({"instance": "nginx", "time_us": us, "overflows": n} for us, n in ((0, 0), (200, overflows)))
    )
    row = {**MADE, "entered": True, "ack_dropped_max": 0, "handshakes_only": False}
    tables.given("connections", {**row, "id": 7, "answered_us": 100, "queued_us": 120})
    tables.given("connections", {**row, "id": 8, "answered_us": 105, "queued_us": 110})
    assert tables.made("connections_raced", "id, ack_dropped_max") == found


def test_the_queue_is_first_in_first_out(tables: Tables) -> None:
    for number, queued_us in enumerate((10, 20, 30), start=1):
        tables.given("connections", {**MADE, "id": number, "queued_us": queued_us, "perhaps_unknown": False})
    for number, (time_us, depth) in enumerate(((5, 0), (35, 2), (45, 1))):
        tables.given("ticks", {"instance": "nginx", "n": number, "time_us": time_us, "depth": depth, "listeners": 1})
    columns = "id, accepted_after_us, accepted_before_us"
    assert tables.made("accepted", columns) == [(1, 10, 35), (2, 35, 45), (3, 45, None)]


def test_a_lost_syn_has_what_the_kernel_counted_around_it(tables: Tables) -> None:
    tables.given("connections", {**MADE, "id": 7, "syns_lost": 2, "syns_lost_us": [50, 300]})
    row = {"instance": "nginx", "listen_drops": 0, "syn_queue_drops": 0, "queue_limit": 4}
    for time_us, overflows, depth in ((0, 0, 3), (100, 1, 5)):
        tables.given("ticks", {**row, "time_us": time_us, "overflows": overflows, "depth": depth})
    columns = "time_us, overflows, depth, enough, syn_queue_full"
    assert tables.made("lost_syns", columns, slack_us=5) == [(50, 1, 5, True, False), (300, None, 5, None, None)]


def test_a_syn_that_both_counters_could_account_for_proves_neither(tables: Tables) -> None:
    row = {"observer": "nginx", "id": 7, "drops": 1, "depth": 3, "queue_limit": 4}
    for enough, full in ((True, False), (True, True), (False, True)):
        tables.given("lost_syns", {**row, "enough": enough, "syn_queue_full": full})
    tables.given("lost_syns", {"observer": "nginx", "id": 7})
    columns = "syns, syns_overflowed, syns_syn_queue_full, syns_not_dropped, syns_unsampled, depth_max"
    assert tables.made("queue_proof", columns) == [(4, 1, 1, 0, 1, 3)]


def test_what_stands_at_the_proxy_has_the_first_try_and_the_last(tables: Tables) -> None:
    tables.given("request_links", {"instance": "k6-1", "id": 1, "access_instance": "nginx", "line": 9})
    tables.given("access", {"instance": "nginx", "line": 9, "status": 200})
    for number, server in ((1, "a:80"), (2, "b:80")):
        tables.given("tries", {"instance": "nginx", "line": 9, "try": number, "tries": 2, "server": server})
    tables.given("try_links", {"instance": "nginx", "line": 9, "try": 2, "observer": "backend-1", "flow": 7})
    tables.given("connections", {**MADE, "observer": "backend-1", "id": 7, "syns_lost": 1})
    columns = "id, line_status, first_server, try_server, up_id, up_syns_lost"
    assert tables.made("proxied", columns) == [(1, 200, "a:80", "b:80", 7, 1)]


def test_a_request_is_ok_slow_or_failed_and_has_its_connection(tables: Tables) -> None:
    for number, (status, took_us) in enumerate(((200, 10), (200, 99), (0, 10)), start=1):
        row = {"instance": "k6-1", "id": number, "dial": number, "status": status, "error_code": 0 if status else 1212}
        tables.given("requests", {**row, "time_us": 0, "end_us": took_us})
    tables.given("dial_links", {"instance": "k6-1", "dial": 1, "observer": "nginx", "flow": 7, "how": "address"})
    tables.given("connections", {**MADE, "id": 7})
    columns = "id, outcome, total_us, flow_id"
    found = tables.made("cases", columns, slow_us=50)
    assert found == [(1, "ok", 10, 7), (2, "slow", 99, None), (3, "failed", 10, None)]


def test_a_port_is_held_in_time_wait(tables: Tables) -> None:
    tables.given("port_ranges", {"instance": "k6-1", "ports": 2})
    over = {"time_wait_owner": "client", "truncated_end": False}
    for number, last_us in ((1, 10), (2, 20)):
        row = {**MADE, "id": number, "client_port": number, "first_time_us": 0, "last_time_us": last_us}
        tables.given("connections", {**row, **over})
    dial = {
        "instance": "k6-1",
        "id": 5,
        "remote_address": "s",
        "remote_port": 80,
        "duration_us": 1,
        "error_kind": "none",
    }
    tables.given("addressed_dials", {**dial, "time_us": 15}, {**dial, "id": 6, "time_us": 500})
    # The proxy's line 9 gave up a try at that server at 15 us.
    tables.given("port_ranges", {"instance": "haproxy", "ports": 3})
    tables.given("access", {"instance": "haproxy", "line": 9, "time_ms": 0, "gave_up": "no-port"})
    tables.given("tries", {**TRY, "instance": "haproxy", "line": 9, "tries": 1, "start_us": 15})
    columns = "dial, line, held, waiting, ports"
    found = tables.made("port_shortages", columns, time_wait_us=100, error_kind="none", gave_up="no-port")
    assert found == [(5, None, 2, 1, 2), (6, None, 0, 0, 2), (None, 9, None, None, 3)]


def test_a_running_count_of_the_ticks_with_a_queue(tables: Tables) -> None:
    for number, depth in enumerate((0, 2, 0, 1)):
        tables.given("ticks", {"instance": "nginx", "n": number, "time_us": number, "depth": depth})
    assert tables.made("queued_ticks", "time_us, ticks") == [(0, 0), (1, 1), (2, 1), (3, 2)]


def test_running_counts_of_the_readings(tables: Tables) -> None:
    for time_us, busy in ((0, 1), (10, 2), (50, 2)):
        tables.given("scrapes", {"instance": "backend-1", "time_us": time_us, "busy": busy, "threads_max": 2})
    columns = "time_us, scrapes, saturated, holes"
    assert tables.made("scraped", columns, gap_us=20) == [(0, 1, 0, 0), (10, 2, 1, 0), (50, 3, 2, 1)]


def test_how_idle_the_processors_were_between_two_readings(tables: Tables) -> None:
    tables.given("processors", *({"time_us": n, "total_ms": 10 * n, "idle_ms": 4 * n} for n in (0, 1)))
    assert tables.made("idle_spans", "start_us, end_us, idle_percent") == [(0, 1, 40.0), (1, None, None)]


SLOW: Row = {"instance": "k6-1", "id": 1, "outcome": "slow", "status": 200, "time_us": 100, "end_us": 200}


def test_the_server_has_a_request_from_its_sending_to_its_answer(tables: Tables) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "backend-1"}
    tables.given("cases", {**SLOW, **sent, "flow_accepted_after_us": 120, "flow_server_last_data_time_us": 180})
    tables.given("cases", {**SLOW, "id": 2, "blocked_us": 5, "sending_us": 5})
    columns = "id, server, from_us, to_us, left_us, acceptance_known"
    assert tables.made("served_directly", columns, apart_us=0) == [
        (1, "backend-1", 120, 180, 180, True),
        (2, None, None, None, None, False),
    ]


def test_over_a_proxy_its_log_times_the_server_s_part(tables: Tables) -> None:
    tables.given("addresses", {"instance": "backend-1", "address": "10.0.0.2"})
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": 40, "line_time_ms": 1}
    tables.given("cases", {**SLOW, "try_server": "10.0.0.2:80", **times})
    columns = "id, server, from_us, to_us, left_us, acceptance_known"
    assert tables.made("served_over_a_proxy", columns) == [(1, "backend-1", 115, 150, 1000, False)]


@pytest.mark.parametrize(
    ("accepted_us", "last_data_us", "answer_us", "taken_us"),
    [(130, 115, 180, 130), (105, 140, 180, 140), (105, None, 180, 110), (None, 115, 180, None), (130, 115, None, None)],
)
def test_a_server_surely_has_a_request_once_it_took_the_connection_and_all_of_it_had_come(
    tables: Tables, accepted_us: int | None, last_data_us: int | None, answer_us: int | None, taken_us: int | None
) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "shop-1"}
    seen = {"flow_accepted_before_us": accepted_us, "flow_client_last_data_time_us": last_data_us}
    tables.given("cases", {**SLOW, **sent, **seen, "flow_server_last_data_time_us": answer_us})
    assert tables.made("served_directly", "taken_us", apart_us=0) == [(taken_us,)]


@pytest.mark.parametrize(
    ("accepted_us", "header_us", "taken_us"), [(130, 40, 130), (105, 40, 115), (None, 40, None), (130, None, None)]
)
def test_behind_a_proxy_the_try_says_when_the_server_surely_had_it(
    tables: Tables, accepted_us: int | None, header_us: int | None, taken_us: int | None
) -> None:
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": header_us, "line_time_ms": 1}
    tables.given("cases", {**SLOW, "try_server": "s:80", **times, "up_accepted_before_us": accepted_us})
    assert tables.made("served_over_a_proxy", "taken_us") == [(taken_us,)]


@pytest.mark.parametrize(("silent", "server_us"), [(["shop-1"], 60), (["other"], 0)])
def test_the_time_in_a_server_counts_where_it_tells_nothing_of_itself(
    tables: Tables, silent: list[str], server_us: int
) -> None:
    tables.given("cases", SLOW)
    tables.given("served", {"instance": "k6-1", "id": 1, "server": "shop-1", "taken_us": 120, "to_us": 180})
    assert tables.made("waits", "server_us", silent=silent) == [(server_us,)]


def test_a_pause_overlaps_a_request_that_went_to_its_server(tables: Tables) -> None:
    tables.given("actions", {"instance": "nginx", "deed": "pause", "start_us": 150, "end_us": None})
    tables.given("cases", {**SLOW, "flow_to_instance": "nginx"}, {**SLOW, "id": 2, "flow_to_instance": "backend-1"})
    assert tables.made("acted", "id, overlap_us, paused") == [(1, 50, "nginx")]


def test_the_last_error_of_a_connection_within_the_request_s_time_stands_beside_it(tables: Tables) -> None:
    second = 1_000_000
    times = {"time_us": 5 * second, "end_us": 6 * second, "line_instance": "nginx", "line_connection": 3}
    tables.given("cases", {**SLOW, **times, "dial": 5})
    for line, time_us in ((1, 5 * second), (2, 6 * second), (3, 7 * second)):
        tables.given(
            "errors", {"instance": "nginx", "line": line, "connection": 3, "time_us": time_us, "text": f"{line}"}
        )
    tables.given("port_shortages", {"instance": "k6-1", "dial": 5, "held": 2, "ports": 2})
    found = tables.made("beside", "id, error_line, error_text, shortage_held", turn_us=10, apart_us=0)
    assert found == [(1, 2, "2", 2)]


def test_waits_are_the_parts_of_the_time_that_the_evidence_proves(tables: Tables) -> None:
    flow = {"flow_syns_lost": 1, "flow_first_time_us": 110, "flow_answered_us": 150, "reused": False}
    tables.given("cases", {**SLOW, **flow})
    tables.given("cases", {**SLOW, "id": 2, "reused": True, "blocked_us": 60})
    tables.given("served", {"instance": "k6-1", "id": 1, "left_us": 190}, {"instance": "k6-1", "id": 2})
    assert tables.made("waits", "id, syn_us, pool_us, lag_us, queue_us", silent=[]) == [
        (1, 40, 0, 10, 0),
        (2, 0, 60, 0, 0),
    ]


def test_known_has_the_greatest_part_and_their_sum_for_what_failed_or_was_slow(tables: Tables) -> None:
    tables.given("cases", SLOW, {**SLOW, "id": 2, "outcome": "ok"})
    parts = (
        "pool",
        "up_pool",
        "syn",
        "up_syn",
        "ack",
        "up_ack",
        "queue",
        "up_queue",
        "thread",
        "server",
        "handler",
        "lag",
        "retry",
    )
    zero = {f"{part}_us": 0 for part in (*parts, "pause")}
    tables.given("waits", {"instance": "k6-1", "id": 1, **zero, "syn_us": 40, "lag_us": 10})
    constants = {
        "bound_us": 50,
        "idle_percent_min": 5,
        "captured": True,
        "proxied": False,
        "keep_alive_us": None,
        "apart_us": 0,
    }
    found = tables.made("known", "id, part_max_us, parts_us, bound_us, torn", **constants, whole_until_us=150)
    assert found == [(1, 40, 50, 50, True)]


def test_a_socket_waits_until_its_time_is_over_or_another_takes_its_place(tables: Tables) -> None:
    ended = {**MADE, "time_wait_owner": "client", "client_rst_count": 0, "server_rst_count": 0}
    for number, last_us in enumerate((10, 900, 950, 995), start=1):
        times = {"last_time_us": last_us, "client_fin_time_us": last_us - 1, "server_fin_time_us": last_us}
        tables.given("connections", {**ended, "id": number, **times})
    tables.given("connections", {**MADE, "id": 9, "reused_port_of": 3, "first_time_us": 960})
    bounds = {"tick_us": 1000, "slack_us": 10, "short_us": 500, "long_us": 520, "overflow_us": None}
    # Sure is the second; the fourth ended too near to the tick. The first was over, the third has been replaced.
    assert tables.made("time_wait", "", **bounds, instance="k6-1") == [(1, 2, 0)]


def written(database: duckdb.DuckDBPyConnection, folder: Path, columns: str, rows: list[tuple[Any, ...]]) -> str:
    """Connections as `flows` writes them."""
    path = str(folder / "flows.parquet")
    database.execute(f"CREATE TABLE written ({columns})")
    database.executemany(f"INSERT INTO written VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608  our own
    database.execute(f"COPY written TO '{path}'")
    return path


def test_connections_that_a_client_gave_up_while_others_asked(tables: Tables, tmp_path: Path) -> None:
    columns = """client_address VARCHAR, first_time_us BIGINT, syn_times_us BIGINT[], established BOOLEAN,
        closed_by VARCHAR, close_kind VARCHAR, client_fin_time_us BIGINT, client_last_data_time_us BIGINT,
        server_last_data_time_us BIGINT"""
    asks = ("c", 10, [10, 90], False, None, None, None, None, None)
    kept = [("c", 20, [20], True, "client", "fin", closed_us, 30, answered_us) for closed_us, answered_us in
            ((50, 40), (95, 40), (50, 25))]  # fmt: skip
    path = written(tables.database, tmp_path, columns, [asks, *kept])
    assert tables.made("given_up", "", path=path, start_us=0, clients=["c"]) == [(1,)]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_of_several_pairs_that_came_together_the_same_is_named(
    tables: Tables, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Three queues become full at one moment, each with users beside its last place."""

    def connection(port: int, server_port: int, begin_us: int, end_us: int | None) -> tuple[Any, ...]:
        return ("c", port, "s", server_port, begin_us, end_us, [begin_us], int(end_us is not None))

    columns = """client_address VARCHAR, client_port BIGINT, server_address VARCHAR, server_port BIGINT,
        first_time_us BIGINT, handshake_ack_time_us BIGINT, syn_times_us BIGINT[], synack_count BIGINT"""
    rows = []
    for number in order:
        rows += [connection(10 * number + nth, number, 10, 20) for nth in order]
        rows += [connection(100 + number, number, 15, 25), connection(200, number, 30, None)]
    path = written(tables.database, tmp_path, columns, rows)
    found = tables.made("taken_together", "", path=path, start_us=0, addresses=["s"])
    assert found == [("c", 101, "c", 11)]


def test_acks_refused_finds_a_handshake_that_the_server_answered_again(tables: Tables, tmp_path: Path) -> None:
    columns = "client_address VARCHAR, client_port INT, server_address VARCHAR, first_time_us BIGINT,"
    columns += " handshake_ack_time_us BIGINT, synack_count INT, syn_times_us BIGINT[]"
    rows: list[tuple[object, ...]] = [
        ("c", 1, "s", 0, 20, 1, [0]),
        ("c", 2, "s", 0, 30, 2, [0]),
        ("c", 3, "s", 0, 25, 2, [0, 10]),
        ("c", 4, "s", 0, None, 3, [0]),
        ("c", 5, "other", 0, 10, 2, [0]),
        ("c", 6, "s", -5, 10, 2, [-5]),
        ("c", 7, "s", 0, 40, 3, [0, 50]),
    ]
    path = written(tables.database, tmp_path, columns, rows)
    assert tables.made("acks_refused", "", path=path, start_us=0, addresses=["s"]) == [("c", 2, 2)]


def test_refused_early_finds_the_first_syn_that_met_a_full_queue_of_a_server_with_places(
    tables: Tables, tmp_path: Path
) -> None:
    columns = "client_address VARCHAR, client_port INT, server_address VARCHAR, first_time_us BIGINT,"
    columns += " handshake_ack_time_us BIGINT, synack_count INT, syn_times_us BIGINT[], server_fin_time_us BIGINT,"
    columns += " first_rst_time_us BIGINT"
    rows: list[tuple[object, ...]] = [
        ("c", 1, "s", 0, 5, 1, [0], None, None),
        ("c", 2, "s", 10, 15, 1, [10], 18, None),
        ("c", 3, "s", 12, 16, 1, [12], None, 19),
        ("c", 4, "s", 20, 35, 1, [20, 30], None, None),
        ("c", 5, "s", 25, None, 0, [25], None, None),
        ("c", 6, "s", 2, None, 0, [2], None, 3),
        ("c", 7, "other", 1, None, 0, [1], None, None),
        ("c", 8, "s", -5, None, 0, [-5], None, None),
        ("c", 9, "s", -5, -4, 1, [-5], None, None),
    ]
    path = written(tables.database, tmp_path, columns, rows)
    for capacity, soon_us, found in ((3, 9, [("c", 4, 2)]), (3, 15, [("c", 4, 2)]), (2, 9, [])):
        asked = {"path": path, "start_us": 0, "addresses": ["s"], "capacity": capacity, "soon_us": soon_us}
        assert tables.made("refused_early", "", **asked) == found


def test_held_too_many_finds_the_first_connection_that_a_server_has_no_place_for(
    tables: Tables, tmp_path: Path
) -> None:
    columns = "client_address VARCHAR, client_port INT, server_address VARCHAR, server_port INT,"
    columns += " handshake_ack_time_us BIGINT, synack_count INT, syn_times_us BIGINT[], server_fin_time_us BIGINT,"
    columns += " first_rst_time_us BIGINT"
    rows: list[tuple[object, ...]] = [
        ("c", 1, "s", 80, -5, 1, [-6], 20, None),
        ("c", 2, "s", 80, 10, 1, [9], None, None),
        # As the first closes; and beside one whose ACK the queue had no room for.
        ("c", 3, "s", 80, 20, 1, [19], None, 40),
        ("c", 4, "s", 80, 25, 2, [24], None, None),
        ("c", 5, "s", 80, 30, 1, [29], 35, None),
        ("c", 6, "s", 80, 45, 1, [44], None, None),
        ("c", 7, "s", 80, None, 0, [46], None, None),
        ("c", 8, "s", 81, 31, 1, [29], None, None),
        ("c", 9, "other", 80, 32, 1, [29], None, None),
    ]
    path = written(tables.database, tmp_path, columns, rows)
    asked = {"path": path, "addresses": ["s"]}
    assert tables.made("held_too_many", "", **asked, start_us=0, capacity=2) == [("c", 5, 3)]
    assert tables.made("held_too_many", "", **asked, start_us=31, capacity=2) == []
    assert tables.made("held_too_many", "", **asked, start_us=0, capacity=3) == []


def test_gave_up_late_finds_a_syn_after_the_time_out_that_nobody_had_answered(tables: Tables, tmp_path: Path) -> None:
    columns = "client_address VARCHAR, client_port INT, server_address VARCHAR, first_time_us BIGINT,"
    columns += " synack_count INT, syn_times_us BIGINT[]"
    rows: list[tuple[object, ...]] = [
        ("c", 1, "s", 0, 0, [0, 900_000]),
        ("c", 2, "s", 10, 1, [10, 2_000_000]),
        ("c", 3, "s", 20, 0, [20, 500_000, 1_000_020]),
        ("c", 4, "s", 30, 0, [30, 1_500_030]),
        ("c", 5, "other", 0, 0, [0, 1_000_001]),
        ("c", 6, "s", -5, 0, [-5, 1_000_001]),
    ]
    path = written(tables.database, tmp_path, columns, rows)
    asked = {"path": path, "start_us": 0, "addresses": ["s"]}
    assert tables.made("gave_up_late", "", **asked, connect_timeout_us=1_000_000) == [("c", 3, 1000.0)]
    assert tables.made("gave_up_late", "", **asked, connect_timeout_us=2_000_000) == []


def test_requests_file_has_each_request_with_its_cause_and_its_waits(tables: Tables) -> None:
    tables.given("cases", {"instance": "k6-1", "id": 2, "outcome": "ok"}, {"instance": "k6-1", "id": 1})
    tables.given("attributed", {"instance": "k6-1", "id": 1, "cause": "slow-handler"})
    tables.given("waits", {"instance": "k6-1", "id": 2, "handler_us": 7})
    rows = tables.made("requests_file", "")
    asked = [(row[1], row[23], row[24], row[-4]) for row in rows]
    assert asked == [(1, None, "slow-handler", None), (2, "ok", None, 7)]


def test_ledger_names_counts_what_became_of_the_requests_of_each_name_and_group(tables: Tables) -> None:
    pay = {"instance": "k6-1", "name": "pay", "group": "::buy"}
    tables.given(
        "cases",
        {**pay, "id": 1, "outcome": "failed", "total_us": 9000},
        {**pay, "id": 2, "outcome": "slow", "total_us": 3000},
        {**pay, "id": 3, "outcome": "ok", "total_us": 1000},
        {**pay, "id": 4, "outcome": "ok", "total_us": 1000, "group": None},
        {"instance": "k6-1", "id": 5, "name": "home", "outcome": "ok", "total_us": 5000},
        {"instance": "k6-1", "id": 6, "name": "home", "outcome": "ok", "total_us": 5000},
    )
    tables.given(
        "attributed",
        {"instance": "k6-1", "id": 1, "cause": "refused"},
        {"instance": "k6-1", "id": 2, "cause": "slow-handler"},
    )
    assert tables.made("ledger_names", "", most=2) == [
        ("pay", "::buy", 3, 1, 1, 2.0, 2.9, {"refused": 1, "slow-handler": 1}),
        ("home", "", 2, 0, 0, 5.0, 5.0, None),
    ]


def test_flows_file_has_each_connection_with_what_the_joins_know(tables: Tables) -> None:
    tables.given("flows", {"observer": "nginx", "id": 2}, {"observer": "nginx", "id": 1})
    tables.given("connections", {"observer": "nginx", "id": 1, "hop": 1, "syns_lost": 4})
    tables.given("accepted", {"observer": "nginx", "id": 2, "accepted_after_us": 5})
    names = [column[0] for column in tables.database.execute("DESCRIBE flows").fetchall()]
    first, second = tables.made("flows_file", "")
    assert [row[names.index("id")] for row in (first, second)] == [1, 2]
    assert (first[len(names)], first[len(names) + 4]) == (1, 4)
    assert second[-2] == 5


def test_outcomes_count_the_requests(tables: Tables) -> None:
    tables.given("cases", SLOW, {**SLOW, "id": 2, "outcome": "failed"}, {**SLOW, "id": 3, "outcome": "failed"})
    assert tables.made("outcomes", "") == [(2, 1, 0)]


def test_causes_count_those_that_failed_apart_from_those_that_were_slow(tables: Tables) -> None:
    assert tables.made("causes", "") == [({}, {}, {})]
    causes = {1: ("slow", "b"), 2: ("slow", "b"), 3: ("failed", "b"), 4: ("failed", "a")}
    for number, (outcome, cause) in causes.items():
        tables.given("cases", {**SLOW, "id": number, "outcome": outcome})
        tables.given("attributed", {"instance": "k6-1", "id": number, "cause": cause})
    # An id is one instance's.
    tables.given("cases", {**SLOW, "instance": "k6-2", "outcome": "failed"})
    (found,) = tables.made("causes", "")
    assert found == ({"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 3})
    assert list(found[2]) == ["a", "b"]


def test_unexplained_requests_are_the_first_of_their_cause(tables: Tables) -> None:
    for number, cause in ((3, "unexplained"), (1, "refused"), (2, "unexplained"), (9, "unexplained")):
        tables.given("cases", {**SLOW, "id": number})
        tables.given("attributed", {"instance": "k6-1", "id": number, "cause": cause, "evidence": f"why {number}"})
    assert tables.made("unexplained_requests", "", cause="unexplained", most=2) == [
        ("slow", "why 2", "k6-1/2"),
        ("slow", "why 3", "k6-1/3"),
    ]


def test_the_tries_of_a_line_have_the_connections_that_are_known(tables: Tables) -> None:
    key = {"instance": "nginx", "line": 9}
    tables.given("tries", {**key, "try": 2}, {**key, "try": 1}, {"instance": "nginx", "line": 8, "try": 1})
    tables.given("tries", {"instance": "haproxy", "line": 9, "try": 1})
    tables.given("try_links", {**key, "try": 2, "observer": "backend-1", "flow": 7, "how": "dial"})
    found = tables.made("tries_of_line", "", **key)
    assert [row[-3:] for row in found] == [(None, None, None), ("backend-1", 7, "dial")]


def test_the_errors_of_a_request_are_its_connection_s_in_its_time_by_whole_seconds(tables: Tables) -> None:
    error = {"instance": "nginx", "connection": 3}
    rows: list[Row] = [
        {"line": 1, "time_us": 3_999_999},
        {"line": 4, "time_us": 6_000_000},
        {"line": 3, "time_us": 4_000_000},
        {"line": 5, "time_us": 6_000_001},
        {"line": 6, "time_us": 5_000_000, "connection": 4},
        {"line": 7, "time_us": 5_000_000, "instance": "haproxy"},
    ]
    tables.given("errors", *({**error, **row} for row in rows))
    found = tables.made("errors_of_request", "", **error, start_us=5_000_000, end_us=6_000_000)
    assert [row[1] for row in found] == [3, 4]


def test_a_connection_is_found_in_every_capture_its_own_first(tables: Tables) -> None:
    own = {**ENDS, "client_isn": 7}
    rows: list[Row] = [
        {"observer": "nginx", "id": 1},
        {"observer": "backend-1", "id": 2},
        # The same addresses and ports again, and each of them another.
        {"observer": "backend-1", "id": 3, "client_isn": 8},
        *({"observer": "nginx", "id": 4 + n, end: 2} for n, end in enumerate(("client_port", "server_port"))),
        *({"observer": "nginx", "id": 6 + n, end: "x"} for n, end in enumerate(("client_address", "server_address"))),
    ]
    tables.given("flows", *({**own, **row} for row in rows))
    found = tables.made("captures_of_flow", "", observer="nginx", id=1)
    names = [column[0] for column in tables.database.execute("DESCRIBE flows").fetchall()]
    assert [dict(zip(names, row, strict=True))["id"] for row in found] == [1, 2]


def test_a_connection_whose_begin_no_capture_has_is_the_same_without_its_isn(tables: Tables) -> None:
    tables.given("flows", {"observer": "nginx", "id": 1, **ENDS}, {"observer": "backend-1", "id": 2, **ENDS})
    assert len(tables.made("captures_of_flow", "", observer="nginx", id=1)) == 2


def test_unsampled_are_connections_of_the_window(tables: Tables) -> None:
    for number, (unsampled, in_window) in enumerate(((2, True), (0, True), (1, False), (1, True))):
        tables.given("connections", {"observer": "nginx", "id": number, "in_window": in_window})
        tables.given("queue_proof", {"observer": "nginx", "id": number, "syns_unsampled": unsampled})
    assert tables.made("unsampled", "") == [(2,)]


def test_without_port_counts_a_role_s_dials_and_those_while_the_range_was_in_use(tables: Tables) -> None:
    tables.given("instances", {"instance": "k6-1", "role": "k6"}, {"instance": "gateway", "role": "gateway"})
    for instance, held in (("k6-1", 3), ("k6-1", 2), ("k6-1", 1), ("gateway", 9)):
        tables.given("port_shortages", {"instance": instance, "held": held, "ports": 2})
    assert tables.made("without_port", "", role="k6") == [(3, 2)]


def test_derived_causes_are_of_requests_that_have_one(tables: Tables, tmp_path: Path) -> None:
    columns = "id BIGINT, instance VARCHAR, evidence VARCHAR, cause VARCHAR"
    path = written(tables.database, tmp_path, columns, [(1, "k6-1", "why", "refused"), (2, "k6-1", None, None)])
    assert tables.made("derived_causes", "", path=path) == [("k6-1", 1, "refused", "why")]


def test_the_next_request_over_a_connection_begins_after_this_one(tables: Tables) -> None:
    request = {"instance": "k6-1", "dial": 5}
    rows: list[Row] = [
        {"id": 2, "time_us": 100},
        {"id": 1, "time_us": 100},
        {"id": 9, "time_us": 300},
        {"id": 3, "time_us": 200},
        {"id": 4, "time_us": 150, "dial": 6},
        {"id": 5, "time_us": 150, "instance": "k6-2"},
    ]
    tables.given("requests", *({**request, **row} for row in rows))
    assert tables.made("next_request", "", **request, time_us=100, id=2) == [(200,)]
    assert tables.made("next_request", "", **request, time_us=100, id=1) == [(100,)]
    assert tables.made("next_request", "", **request, time_us=300, id=9) == [(None,)]


def test_ids_of_each_instance_and_the_lower_of_two_that_are_as_near(tables: Tables) -> None:
    for instance, number in (("k6-2", 7), ("k6-1", 8), ("k6-1", 2), ("k6-1", 4)):
        tables.given("requests", {"instance": instance, "id": number})
    assert tables.made("ids", "", number=3) == [("k6-1", 2, 8, 2), ("k6-2", 7, 7, 7)]


TOOK = (("ok", 9), ("slow", 7), ("failed", 1), ("failed", 5), ("ok", 9))


def test_the_worst_failed_and_then_took_longest(tables: Tables) -> None:
    for number, (outcome, total_us) in enumerate(TOOK):
        tables.given("cases", {"instance": "k6-1", "id": number, "outcome": outcome, "total_us": total_us})
    assert [number for _, number in tables.made("worst", "", number=4)] == [3, 2, 0, 4]


def test_the_slowest_is_the_first_of_those_that_took_longest_and_succeeded(tables: Tables) -> None:
    for number, (outcome, total_us) in enumerate((("failed", 99), *TOOK)):
        tables.given("cases", {"instance": "k6-1", "id": number, "outcome": outcome, "total_us": total_us})
    assert tables.made("slowest", "") == [("k6-1", 1, None)]
    tables.given("attributed", {"instance": "k6-1", "id": 1, "cause": "slow-handler"})
    assert tables.made("slowest", "") == [("k6-1", 1, "slow-handler")]


def test_the_typical_request_of_a_cause_took_as_long_as_half_of_those_whose_packets_are_known(tables: Tables) -> None:
    failed = {"instance": "k6-1", "outcome": "failed"}
    for number, (total_us, flow) in enumerate(((1, None), (5, 7), (4, 8), (3, 9), (2, 6)), start=1):
        tables.given("cases", {**failed, "id": number, "total_us": total_us, "flow_id": flow})
        tables.given("attributed", {"instance": "k6-1", "id": number, "cause": "refused"})
    tables.given("cases", {**failed, "id": 8, "total_us": 0, "flow_id": 1}, {**SLOW, "id": 9, "flow_id": 1})
    for number, cause in ((8, "reset"), (9, "refused")):
        tables.given("attributed", {"instance": "k6-1", "id": number, "cause": cause})
    assert tables.made("typical", "", outcome="failed", cause="refused") == [("k6-1", 4, 5)]


def test_the_typical_good_request_had_to_connect_with_packets_or_without(tables: Tables) -> None:
    good = {"instance": "k6-1", "outcome": "ok"}
    for number, reused in enumerate((True, False, False, False), start=1):
        tables.given("cases", {**good, "id": number, "total_us": number, "reused": reused})
    assert tables.made("typical", "", outcome="ok", cause=None) == [("k6-1", 3, 3)]


def test_the_connections_to_a_server_are_counted_by_what_became_of_them(tables: Tables) -> None:
    plain = {
        **MADE, "in_window": True, "answered": True, "established": True, "refused": False, "entered": True,
        "syn_count": 1, "syns_lost": 0, "syn_retransmissions": 0, "answered_us": 1, "synack_count": 1,
        "perhaps_unknown": False, "ack_dropped_min": 0, "ack_dropped_max": 0,
        "client_retransmissions": 0, "server_retransmissions": 0, "handshake_us": 5,
    }  # fmt: skip
    never = {"answered": False, "established": False, "entered": False, "answered_us": None, "handshake_us": None}
    rows: list[Row] = [
        {"closed_by": "client", "first_rst_by": "client", "ack_dropped_min": 1, "ack_dropped_max": 2},
        {"syns_lost": 2, "syn_count": 3, "syn_retransmissions": 2, "closed_by": "server", "first_rst_by": "server"},
        {**never, "refused": True, "synack_count": 0, "first_rst_by": "server"},
        {**never, "syns_lost": 4, "syn_count": 4, "synack_count": 0},
        {"established": False, "synack_count": 3, "reused_port_of": 1, "perhaps_unknown": True},
        {"client_retransmissions": 5, "server_retransmissions": 6, "closed_by": "client"},
        {"handshake_ack_time_us": 10, "client_first_data_time_us": 59},
        {"handshake_ack_time_us": 10, "client_first_data_time_us": 60},
        {"in_window": False},
        {"to_instance": "backend-1"},
    ]
    tables.given("connections", *({**plain, "id": number, **row} for number, row in enumerate(rows)))
    assert tables.named("connections_to", instance="nginx") == {
        "total": 8, "established": 5, "refused": 1, "unanswered": 1, "half_open": 1, "recovered": 1, "syns": 13,
        "syn_unanswered": 6, "syn_recovered": 2, "syn_failed": 4, "syn_retransmissions": 2, "synack_retransmissions": 2,
        "entered": 6, "made_at_once": 1, "perhaps_unknown": 1, "ack_dropped_min": 1, "ack_dropped_max": 2,
        "closed_by_client": 2, "closed_by_server": 1, "reset_by_client": 1, "reset_by_server": 2,
        "retransmissions": 11, "port_reuses": 1,
    }  # fmt: skip
    found = tables.made("of_each_connection", "", instance="nginx")
    assert found == [(5, None), (5, None), (None, None), (None, 4), (5, None), (5, None), (5, None), (5, None)]


def test_a_connection_that_no_try_used_is_a_check(tables: Tables) -> None:
    rows: list[Row] = [{"id": 1}, {"id": 2}, {"id": 3, "in_window": False}, {"id": 4, "established": False}]
    tables.given("connections", *({**MADE, "in_window": True, "established": True, **row} for row in rows))
    tables.given("try_links", {"observer": MADE["observer"], "flow": 2}, {"observer": "another", "flow": 1})
    assert tables.made("checks_to", "", instance="nginx") == [(1,)]


def test_no_connection_to_a_server_counts_as_none(tables: Tables) -> None:
    assert set(tables.named("connections_to", instance="nginx").values()) == {0}


def test_what_the_gateway_did_in_the_window_is_that_of_its_instances_alone(tables: Tables) -> None:
    tables.given("instances", {"instance": "gateway", "role": "gateway"}, {"instance": "k6-1", "role": "k6"})
    rows: list[Row] = [{}, {"error_kind": "refused"}, {"error_kind": "timeout"}, {"error_kind": "timeout"}]
    outside: list[Row] = [{"instance": "k6-1"}, {"time_us": 5_000_499}, {"time_us": 9_000_001}]
    here = {"instance": "gateway", "time_us": 5_000_500}
    tables.given("dials", *({**here, **row} for row in (*rows, *outside)))
    tables.given("closes", *({**here, **row} for row in ({}, {"error": "EOF"}, {"error": "EOF"}, *outside)))
    # What the access log has at 5.000 s may have been at 5.0005 s, too.
    uses: list[tuple[str, int, bool]] = [
        ("gateway", 5_000_000, True), ("gateway", 9_000_000, True), ("gateway", 6_000_000, False),
        ("gateway", 4_999_000, True), ("gateway", 9_001_000, True), ("k6-1", 6_000_000, True),
    ]  # fmt: skip
    tables.given("tries", *({"instance": name, "start_us": us, "reused": reused} for name, us, reused in uses))
    assert tables.named("at_gateway", role="gateway", start_us=5_000_500, end_us=9_000_000) == {
        "dials_total": 4, "dials_failed": 3, "connections_opened": 1, "kinds": {"refused": 1, "timeout": 2},
        "connections_closed": 3, "connections_closed_by_peer": 2, "connections_reused": 2,
    }  # fmt: skip
    assert tables.named("at_gateway", role="gateway", start_us=0, end_us=1)["kinds"] == {}


def test_what_the_proxies_logs_say_of_the_window(tables: Tables) -> None:
    here = {"server_port": 80, "start_us": 5_000_000, "tries": 1, "try": 1}
    rows: list[Row] = [
        {"connect_us": 3, "status": 200},
        {"status": 504},
        {"status": 504, "connect_us": 0},
        {"status": 502, "try": 1, "tries": 2},
        {"status": 502, "connect_us": 4},
        {},
    ]
    outside: list[Row] = [{"server_port": None}, {"start_us": 4_999_000}, {"start_us": 9_001_000}]
    tables.given("tries", *({**here, **row} for row in (*rows, *outside)))
    headers = [("close", 5_000), ("keep-alive", 9_000), ("keep-alive", 5_001), (None, 6_000)]
    late = [("close", 4_999), ("keep-alive", 9_001)]
    tables.given("access", *({"sent_http_connection": said, "time_ms": ms} for said, ms in (*headers, *late)))
    assert tables.named("at_proxies", start_us=5_000_500, end_us=9_000_000) == {
        "tries_total": 6, "tries_connected": 3, "tries_connect_timeout": 1, "tries_connect_failed": 1,
        "tries_aborted": 1, "tries_retried": 1, "connection_close": 1, "connection_keep_alive": 2,
    }  # fmt: skip


def test_errors_with_a_number_are_those_of_the_window_by_whole_seconds(tables: Tables) -> None:
    refused, other = "connect() failed (111: Connection refused)", "connect() failed (1111: other)"
    rows = [(5, refused), (9, refused), (6, other), (4, refused), (10, refused)]
    tables.given("errors", *({"time_us": 1_000_000 * second, "text": text} for second, text in rows))
    assert tables.made("errors_with", "", start_us=5_500_000, end_us=9_000_000, code="111") == [(2,)]


def test_error_numbers_are_those_in_brackets_each_once(tables: Tables) -> None:
    texts = ("(111: refused)", "a (110: timed out) and (104: reset)", "(111: refused)", "no number", "(x: y)", "7: z")
    tables.given("errors", *({"text": text} for text in texts))
    assert tables.made("error_numbers", "") == [(110,), (111,)]


def test_requests_of_clients_are_counted_by_what_became_of_them(tables: Tables) -> None:
    for vu, status, code, begin_us, end_us in ((1, 200, 0, 10, 20), (1, 500, 0, 5, 7), (2, 200, 0, 12, 15)):
        times = {"time_us": begin_us, "end_us": end_us}
        tables.given("requests", {"instance": "k6-1", "vu": vu, "status": status, "error_code": code, **times})
    tables.given("requests", {"instance": "k6-2", "vu": 1, "status": 200, "error_code": 0, "time_us": 9, "end_us": 9})
    tables.given("requests", {"instance": "k6-2", "vu": 0, "status": 0, "error_code": 1050, "time_us": 8, "end_us": 40})
    assert tables.named("requests_of_clients") == {
        "total": 5, "ok": 3, "users": 3, "users_failed": 1, "lasted_us": 35, "codes": {0: 4, 1050: 1},
        "statuses": {200: 3, 500: 1},
    }  # fmt: skip


def test_dials_of_clients_are_counted_by_how_they_failed(tables: Tables) -> None:
    for kind in (None, "timeout", "half-open", "odd"):
        tables.given("dials", {"instance": "k6-1", "error": kind, "error_kind": kind, "duration_us": 3000})
    tables.given("dials", {"instance": "gateway-1"})
    kinds = {"timeout": 1, "half-open": 1, "other": 1}
    found = tables.named("dials_of_clients", instances=["k6-1"])
    assert found == {"total": 4, "ok": 1, "failed": 2, "kinds": kinds}
    # A dial that lasts for 3 ms has sent what is due before.
    asked = {"instances": ["k6-1"], "due_us": [0, 1000, 3000]}
    assert tables.made("syns_of_dials", "", **asked, kinds=["timeout", "half-open"]) == [(4,)]
    assert tables.made("syns_of_dials", "", **asked, kinds=["refused"]) == [(0,)]


def test_access_lines_are_counted_by_status_and_time(tables: Tables) -> None:
    times_ms = ((5, 200), (5, 404), (10, 404), (11, 404), (4, 404))
    tables.given("access", *({"time_ms": time_ms, "status": status} for time_ms, status in times_ms))
    assert tables.made("access_lines", "", start_us=5500, end_us=9500, low=400, high=499) == [(2,)]


def test_lines_begun_are_those_of_an_instance_whose_request_began_in_a_time(tables: Tables) -> None:
    lines = (("nginx", 10, 0.002), ("nginx", 12, None), ("nginx", 20, 0.001), ("haproxy", 10, 0.002))
    for instance, time_ms, request_time in lines:
        tables.given("access", {"instance": instance, "time_ms": time_ms, "request_time": request_time})
    assert tables.made("begun", "", instance="nginx", first_us=8000, last_us=12_000) == [(2,)]


def test_named_requests_are_counted_and_timed_by_name_or_by_group(tables: Tables) -> None:
    times = {"connecting_us": 1, "tls_us": 2, "error_code": 0}
    asked = (("pay", "::buy", 200, 10), ("pay", None, 500, 20), ("home", "", 200, 30), (None, "::buy", 200, 40))
    for name, group, status, us in asked:
        tables.given("requests", {**times, "name": name, "group": group, "status": status, "duration_us": us})
    assert tables.made("named", "", parameter="request") == [("home", 1, 0), ("pay", 2, 1)]
    assert tables.made("named", "", parameter="group") == [("", 1, 0), ("::buy", 2, 0)]
    assert tables.made("took_with_name", "", parameter="request", given="pay") == [(13,)]
    assert tables.made("took_with_name", "", parameter="group", given="::buy") == [(13,), (43,)]


def test_decided_has_the_cause_or_why_clocks_leave_it_open(tables: Tables) -> None:
    tables.given("known", *({"instance": "k6-1", "id": number, "apart_us": 10 * number} for number in (1, 2, 3)))
    parts = {"cause": "if(id < 3, 'reset', NULL)", "doubted": "if(apart_us > 10, cause, NULL)"}
    found = tables.made("decided", "id, cause, doubted", parts, unexplained="unexplained")
    assert found == [(1, "reset", None), (2, "unexplained", "reset"), (3, None, None)]


def test_attributed_tells_the_evidence_and_what_the_lab_did(tables: Tables) -> None:
    tables.given(
        "known", {"instance": "k6-1", "id": 1}, {"instance": "k6-1", "id": 2, "acted_says": "; the lab had begun"}
    )
    tables.given("decided", *({"instance": "k6-1", "id": number, "cause": "reset"} for number in (1, 2)))
    found = tables.made("attributed", "id, cause, evidence", {"evidence": "CASE cause WHEN 'reset' THEN 'RST' END"})
    assert found == [(1, "reset", "RST"), (2, "reset", "RST; the lab had begun")]
