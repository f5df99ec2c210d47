"""What each file of SQL makes of a few rows. A run of the tests gives the columns; no test here derives one."""

import json
import re
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import duckdb
import pytest

from analysis.database import create, in_memory
from analysis.derivation import judge
from analysis.diagnosis.joins import Joined
from analysis.diagnosis.joins.load_tables import FLOWS
from analysis.evidence import jsonl
from tests.analysis.whole import make_run

Row = dict[str, Any]

FILES = sorted((Path(__file__).resolve().parents[2] / "analysis").rglob("*.sql"))
MACROS = [path for path in FILES if path.stem.startswith("macros_")]
# The tables that these are about are not those of a run's account: they read a run's files, or what reports draw. A
# system that was only watched has another account, with a database of its own.
_READING = (
    "captured_of_instance", "macros_of_evidence", "macros_of_records", "records", "tls_handshakes_of_instance",
)  # fmt: skip
_OBSERVED = (
    "answers", "came_and_taken", "crossing", "ended_as_logged", "failed_at", "is_on_the_way", "listeners", "logged",
    "one_sided", "open_questions", "peers", "places", "queues", "scans", "servers", "time_wait_most", "told",
)  # fmt: skip
_ROOMS = ("evidence", "observed", "reports")
APART = {path.stem: path for path in FILES if path.parent.parent.name in _ROOMS or path.stem in (*_OBSERVED, *_READING)}
OF_A_RUN = {path.stem: path for path in FILES if path not in APART.values()}

_SOURCES = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_MAKES = re.compile(r"^(?:CREATE (?:OR REPLACE )?TABLE|CREATE VIEW|INSERT INTO|UPDATE) (\w+)", re.MULTILINE)
_TYPES = {int: "BIGINT", bool: "BOOLEAN", float: "DOUBLE"}

# The connection between the ends that most rows here have.
ENDS: Row = {"client_address": "c", "client_port": 1000, "server_address": "s", "server_port": 80}
MADE: Row = {"from_instance": "k6-1", "to_instance": "nginx", **ENDS, "observer": "nginx"}
SLOW: Row = {"instance": "k6-1", "id": 1, "outcome": "slow", "status": 200, "time_us": 100, "end_us": 200}
WAITS: Row = {"loops": [], "settling_us": 5, "silent": [], "unseen_syns": [], "syn_timeout_us": 40}
TRY: Row = {"try": 1, "server": "s:80", "server_address": "s", "server_port": 80, "names_dial": False}


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def table(path: Path) -> str | None:
    """The table, or the view, that a file makes or goes on making; None if it is a query."""
    found = _MAKES.search(path.read_text())
    return found and found[1]


def sql_type(values: list[Any]) -> str:
    """The type of a column with these values; text if all are null."""
    known = next((value for value in values if value is not None), None)
    return sql_type(known) + "[]" if isinstance(known, list) else _TYPES.get(type(known), "VARCHAR")


class Account(NamedTuple):
    """The columns of every table that a run's account has, and its macros."""

    columns: dict[str, dict[str, str]]
    macros: list[str]


class Tables:
    """A database with rows of a test: `given` puts them there, `made` runs a file and gives what it makes of them."""

    def __init__(self, paths: dict[str, Path], account: Account) -> None:
        self._paths = paths
        self._columns = account.columns
        self.database = in_memory()
        for macro in account.macros:
            self.database.execute(macro)
        self._there: set[str] = set()

    def given(self, name: str, columns: str = "", /, *rows: tuple[Any, ...], **always: Any) -> None:  # noqa: ANN401
        """Put rows into a table, with what all of them have; what they do not name is null.

        A table that no run has is made of these columns, with the type of their values or the one after a colon.
        """
        names, _, types = zip(*(column.partition(":") for column in [*columns.split(), *always]), strict=True)
        values = [(*row, *always.values()) for row in (rows if columns else [()])]
        known = [type_ or sql_type([row[n] for row in values]) for n, type_ in enumerate(types)]
        self._make(name, dict(zip(names, known, strict=True)))
        into = f"INSERT INTO {name} ({', '.join(map(json.dumps, names))}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
        for row in values:
            self.database.execute(into, row)

    def made(
        self, file: str, columns: str = "*", parts: dict[str, str] | None = None, /, **parameters: object
    ) -> list[tuple[Any, ...]]:
        """Run a file and give these columns of all rows of its table; of a query, its rows. `parts` are SQL in it."""
        text = Template(self._paths[file].read_text()).safe_substitute(parts or {})
        name = table(self._paths[file])
        for source in {*_SOURCES.findall(text), name} & self._columns.keys():
            if f"CREATE TABLE {source} " not in text and f"CREATE VIEW {source} " not in text:
                self._make(source, {})
        found = self.database.execute(text, parameters)
        if name is None:
            return found.fetchall()
        self._there.add(name)
        return self.database.execute(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall()  # noqa: S608

    def named(self, file: str, **parameters: object) -> Row:
        """Run a query that gives one row, and give its columns by name."""
        (row,) = self.made(file, **parameters)
        names = [column[0] for column in self.database.execute(self._paths[file].read_text(), parameters).description]
        return dict(zip(names, row, strict=True))

    def _make(self, name: str, columns: dict[str, str]) -> None:
        if name not in self._there:
            create(self.database, name, self._columns.get(name, columns))
            self._there.add(name)


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Account:
    joined = judge(make_run(tmp_path_factory.mktemp("columns")).write()).run.joined
    assert isinstance(joined, Joined)
    joined.need("attributed", "exchanges")
    columns = {
        name: {row["column_name"]: row["column_type"] for row in joined.rows(f"DESCRIBE {name}")}
        for name in (row["name"] for row in joined.rows("SHOW TABLES"))
    }
    macros = joined.rows(
        "SELECT DISTINCT * FROM duckdb_functions() WHERE function_type = 'macro' AND NOT internal ORDER BY function_oid"
    )
    return Account(columns, [
        f"CREATE OR REPLACE MACRO {row['function_name']}({', '.join(row['parameters'])}) AS {row['macro_definition']}"
        for row in macros
    ])  # fmt: skip


@pytest.fixture
def tables(account: Account) -> Tables:
    return Tables(OF_A_RUN, account)


@pytest.fixture
def apart() -> Tables:
    return Tables(APART, Account({}, []))


def test_every_file_is_put_to_rows_here() -> None:
    text = Path(__file__).read_text()
    assert len(APART) + len(OF_A_RUN) == len(FILES)
    for fixture, paths in (("tables", OF_A_RUN), ("apart", APART)):
        assert paths.keys() - set(re.findall(rf'{fixture}\.(?:made|named)\(\s*"(\w+)"', text)) == set()


def test_each_table_of_a_run_s_account_has_its_file(account: Account) -> None:
    assert {table(path) for path in OF_A_RUN.values()} - {None} - account.columns.keys() == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_one_statement_that_makes_what_it_is_named_after(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("-- ")
    assert path.parent.name == "sql"
    statements = duckdb.extract_statements(text)
    if path in MACROS:
        assert len(statements) == len(re.findall("^CREATE MACRO ", text, re.MULTILINE))
        return
    (statement,) = statements
    made = table(path)
    assert (made is None) == (statement.type == duckdb.StatementType.SELECT)
    assert made is None or re.fullmatch(rf"{made}(_\w+)?", path.stem)


def written(tables: Tables, folder: Path, columns: str, *rows: tuple[Any, ...], **always: object) -> str:
    """Write connections as `flows` does, and return the file's path."""
    path = str(folder / "flows.parquet")
    tables.given("written", columns, *rows, **always)
    tables.database.execute(f"COPY written TO '{path}'")
    return path


def test_flows_name_the_instances_at_both_ends(tables: Tables) -> None:
    tables.given("addresses", instance="k6-1", address="c")
    tables.given("captured", observer="nginx", id=1, **ENDS)
    assert tables.made("flows", "id, from_instance, to_instance") == [(1, "k6-1", None)]


def test_addressed_dials_have_both_ends_in_parts(tables: Tables) -> None:
    tables.given("dials", "id local remote", (1, "[::1]:1000", "10.0.0.2:80"), (2, None, None))
    ends = "id, local_address, local_port, remote_address, remote_port"
    assert tables.made("addressed_dials", ends) == [(1, "::1", 1000, "10.0.0.2", 80), (2, None, None, None, None)]


def test_dials_of_unknown_port_sent_a_syn(tables: Tables) -> None:
    rows = [(0, "timeout", None), (1, "address-not-available", None), (2, "unreachable", None), (9, "timeout", "c:1")]
    tables.given("addressed_dials", "id error_kind local", *rows, remote="s:80")
    assert tables.made("dials_of_unknown_port", "id") == [(0,)]


DIAL: Row = {"instance": "k6-1", "remote": "s:80", "remote_address": "s", "remote_port": 80}
DIAL_FROM: Row = {**DIAL, "local_address": "c", "local_port": 1000}


def test_a_dial_finds_its_connection_by_addresses_and_time(tables: Tables) -> None:
    tables.given("addressed_dials", "id time_us", (1, 100), (2, 500), **DIAL_FROM, duration_us=9)
    tables.given("connections", "id first_time_us", (7, 101), (8, 300), **MADE)
    assert tables.made("dial_links_by_address", "dial, flow, how", slack_us=5) == [(1, 7, "address")]


def test_results_say_of_some_requests_whether_their_connection_stood(tables: Tables) -> None:
    dials = [(1, "timeout", 9), (2, None, 5), (3, None, 0), (4, None, 0), (5, "unreachable", 9)]
    tables.given("addressed_dials", "id error_kind duration_us", *dials, **DIAL, time_us=100)
    rows = [(1, 0, 1000), (2, 0, 1000), (3, 0, 1000), (4, 502, 1502), (5, 0, 1000)]
    tables.given("requests", "dial status error_code", *rows, instance="k6-1", time_us=100, end_us=150, receiving_us=20,
                 remote="s:80")  # fmt: skip
    tables.given("requests", id=6, instance="k6-1", time_us=200, end_us=250, status=200, error_code=0, receiving_us=10,
                 remote="s:80")  # fmt: skip
    told = tables.made("attempts", instance="k6-1")
    server = ("s", 80)
    assert told == [
        (None, 100, 150, None, False, False, 1, *server),
        (None, 100, 150, None, True, False, 2, *server),
        (None, 100, 150, None, None, False, 3, *server),
        (None, 100, 150, 130, True, True, 4, *server),
        (6, 200, 250, 240, True, True, None, *server),
    ]


def test_packets_say_that_a_dial_of_results_failed(tables: Tables) -> None:
    dials = [(1, None), (2, None), (3, None), (4, "refused")]
    tables.given("dials", "id error_kind", *dials, instance="k6-1", duration_us=0)
    tables.given("requests", "dial", (1,), (2,), (3,), (4,), instance="k6-1", time_us=100, end_us=900, error_code=1000)
    tables.given("dial_links", "dial flow", (1, 7), (2, 8), (3, 9), instance="k6-1", observer="s")
    tables.given(
        "connections", "id established refused", (7, False, False), (8, False, True), (9, True, False), observer="s"
    )
    found = tables.made("dials_without_connection", "id, error_kind, duration_us", instance="k6-1")
    assert found == [(1, "timeout", 800), (2, "refused", 800), (3, None, 0), (4, "refused", 0)]


def test_a_request_of_results_with_a_connection_found_it_new(tables: Tables) -> None:
    tables.given("dials", "id error_kind", (1, "timeout"), (2, None), (3, None), instance="k6-1")
    tables.given("requests", "dial", (1,), (2,), (3,), instance="k6-1", remote="s:80")
    tables.given("dial_links", "dial", (1,), (2,), instance="k6-1")
    found = tables.made("requests_on_connections", "dial, reused, remote", instance="k6-1")
    assert found == [(1, False, None), (2, False, "s:80"), (3, None, "s:80")]


def test_a_request_whose_connection_packets_tell_has_a_dial_of_its_number(tables: Tables) -> None:
    tables.given("requests", "id dial", (1, 1), (2, None), (3, None), instance="k6-1", time_us=9, remote="s:80")
    tables.given("dials", instance="k6-1", id=1)
    tables.given("dial_links", "dial", (1,), (2,), instance="k6-1")
    assert tables.made("dials_of_answers", "id, time_us, remote", instance="k6-1") == [(1, None, None), (2, 9, "s:80")]
    assert tables.made("requests_of_answers", "id, dial", instance="k6-1") == [(1, 1), (2, 2), (3, None)]


def test_packets_tell_the_port_of_a_dial_of_results(tables: Tables) -> None:
    tables.given("dials", "id local", (1, None), (2, None), (3, "c:9"), (4, None), instance="k6-1")
    tables.given("dial_links", "dial flow", (1, 7), (2, 8), (3, 7), instance="k6-1", observer="s")
    tables.given("connections", "id client_address", (7, "c"), (8, "fd00::1"), observer="s", client_port=1000)
    found = tables.made("dials_by_packets", "id, local", instance="k6-1")
    assert found == [(1, "c:1000"), (2, "[fd00::1]:1000"), (3, "c:9"), (4, None)]


@pytest.mark.parametrize(
    ("last_us", "kept"),
    [(500, (1, True)), (90, (None, None))],  # the connection carried nothing since the second request began
)
def test_a_request_that_opened_no_connection_went_over_its_user_s_last_one(
    tables: Tables, last_us: int, kept: tuple[int | None, bool | None]
) -> None:
    times = [(1, 1, 1, 0, 100), (2, 1, None, 200, 300), (3, 2, None, 200, 300)]
    tables.given("requests", "id vu dial time_us end_us", *times, instance="k6-1", remote="s:80")
    tables.given("dials", instance="k6-1", id=1)
    tables.given("dial_links", instance="k6-1", dial=1, observer="s", flow=7)
    tables.given("connections", observer="s", id=7, established=True, client_last_data_time_us=last_us)
    found = tables.made("requests_on_kept", "id, dial, reused", instance="k6-1", noted_us=5)
    assert found == [(1, 1, None), (2, *kept), (3, None, None)]


@pytest.mark.parametrize(("begins_us", "found"), [((101,), [(1, 7, "time")]), ((101, 105), [])])
def test_a_dial_without_a_port_finds_a_connection_that_began_alone(
    tables: Tables, begins_us: tuple[int, ...], found: list[Any]
) -> None:
    tables.given("dials_of_unknown_port", **DIAL, id=1, time_us=100, duration_us=9)
    tables.given("connections", "id first_time_us", *enumerate(begins_us, start=7), **MADE)
    assert tables.made("dial_links_by_time", "dial, flow, how", slack_us=5) == found


def test_a_dial_that_has_its_connection_is_given_no_second_one_by_time(tables: Tables) -> None:
    tables.given("dials_of_unknown_port", **DIAL, id=1, time_us=100, duration_us=9)
    tables.given("connections", "id first_time_us", (7, 98), (8, 101), **MADE)
    tables.given("dial_links", instance="k6-1", dial=1, observer=MADE["observer"], flow=8, how="begin")
    assert tables.made("dial_links_by_time", "dial, flow, how", slack_us=5) == [(1, 8, "begin")]


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
        # Nothing answered: an ICMP message refused both.
        ([100, 104], [(101, False), (106, False)], [(1, 7, "group"), (2, 8, "group")]),
    ],
)
def test_dials_that_were_refused_at_once_share_as_many_connections_that_were(
    tables: Tables, dials: list[int], connections: list[tuple[int, bool]], found: list[Any]
) -> None:
    dialled = enumerate(dials, start=1)
    tables.given("dials_of_unknown_port", "id time_us", *dialled, **DIAL, duration_us=3, error_kind="refused")
    begun = [(number, *each) for number, each in enumerate(connections, start=7)]
    tables.given("connections", "id first_time_us refused", *begun, **MADE, answered=False)
    assert tables.made("dial_links_by_group", "dial, flow, how", slack_us=5) == found


def test_a_session_has_the_last_dial_of_its_port_before_its_first_line(tables: Tables) -> None:
    line = {"instance": "nginx", "connection": 3, "remote_addr": "c", "remote_port": 1000, "server_addr": "s"}
    tables.given("access", **line, line=1, connection_requests=1, time_ms=1)
    tables.given("addresses", instance="nginx", address="s")
    tables.given("addressed_dials", "id time_us", (1, 100), (2, 900), (3, 2000), **DIAL_FROM)
    tables.given("connections", "id first_time_us", (11, 100), (12, 900), (13, 2000), **MADE)
    assert tables.made("sessions", "connection, dial, flow", slack_us=5) == [(3, 2, 12)]


def test_the_nth_request_of_a_connection_is_its_nth_line_if_the_times_agree(tables: Tables) -> None:
    asked = [(1, 900, 1000), (2, 1900, 2000), (3, 2400, 2500)]
    tables.given("requests", "id time_us end_us", *asked, instance="k6-1", dial=5, remote="s:80", status=200)
    tables.given("sessions", instance="nginx", connection=3, dial_instance="k6-1", dial=5)
    lines = [(11, 1, 1), (12, 2, 2), (13, 3, 9)]
    tables.given("access", "line connection_requests time_ms", *lines, instance="nginx", connection=3)
    found = tables.made("request_links", "id, place, line", slack_us=5, late_us=5)
    assert found == [(1, 1, 11), (2, 2, 12), (3, 3, None)]


def test_over_http_2_the_nth_answer_is_the_nth_line_of_those_alike(tables: Tables) -> None:
    asked = [(1, 100, 9000, 200), (2, 110, 5000, 200), (3, 120, 6000, 500)]
    always = {"instance": "k6-1", "dial": 5, "remote": "s:80", "protocol": "http2", "method": "GET"}
    tables.given("requests", "id time_us end_us status", *asked, **always)
    tables.given("sessions", instance="nginx", connection=3, dial_instance="k6-1", dial=5)
    # The proxy numbers them as they came, and leaves out a stream that it did not serve.
    lines = [(11, 4, 5, 200), (12, 3, 6, 500), (13, 1, 9, 200)]
    logged = {"instance": "nginx", "connection": 3, "request_method": "GET"}
    tables.given("access", "line connection_requests time_ms status", *lines, **logged)
    assert tables.made("request_links", "id, line", slack_us=5, late_us=5) == [(1, 13), (2, 11), (3, 12)]


@pytest.mark.parametrize("protocol", ["http2", "grpc"])
def test_why_a_request_was_sent_again_is_told_by_its_first_connection(tables: Tables, protocol: str) -> None:
    again = {"instance": "k6-1", "remote": "s:80", "protocol": protocol}
    # The GOAWAY of dial 1 sends two requests to dial 2. A refused stream goes again over its own connection, dial 3.
    carried = [(1, 1, 0, 100), (2, 1, 10, 900), (3, 3, 0, 100), (4, 3, 2000, 3000)]
    tables.given("requests", "id dial time_us end_us", *carried, **again, blocked_us=0)
    sent = [(5, 2, 20, 2500, 1), (6, 2, 20, 2600, 1), (7, 3, 20, 2700, 3)]
    tables.given(
        "requests", "id dial time_us end_us first_dial", *sent, **again, sent_again=1, blocked_us=800, again_us=700
    )
    # k6 ended before the connection of a third one was closed, and what was closed together ended with k6.
    tables.given("requests", id=8, dial=5, time_us=0, end_us=9, first_dial=4, **again, sent_again=1, blocked_us=5)
    tables.given("closes", "id time_us", (1, 905), (2, 9000), (3, 9000), instance="k6-1")
    found = tables.made("resent", "id, why, carried, ended_us, together", prompt_us=50, together_us=10)
    assert found == [
        (5, "goaway", 2, 905, 2), (6, "goaway", 2, 905, 2), (7, "refused", 3, None, None), (8, None, 0, None, None),
    ]  # fmt: skip


def test_requests_sent_again_are_counted_with_the_connections_that_a_goaway_ended(tables: Tables) -> None:
    again = [(1, 1, "goaway"), (2, 1, "goaway"), (3, 3, "refused"), (4, 4, None)]
    tables.given("resent", "id first_dial why", *again, instance="k6-1")
    assert tables.named("sent_again") == {"requests": 4, "goaways": 1}


def test_what_clients_asked_has_both_ends_and_no_host(tables: Tables) -> None:
    request = {"instance": "k6-1", "id": 1, "dial": 5, "status": 200, "method": "GET", "time_us": 1, "end_us": 2}
    tables.given("requests", "url remote", ("http://caddy:80/x?y=1", "s:80"), **request)
    # A file of results may not tell the connection.
    tables.given("requests", **(request | {"dial": None}), url="http://caddy/z", remote="s:80")
    tables.given("requests", **request, url="http://caddy/")
    tables.given("addressed_dials", id=5, **DIAL_FROM)
    tables.given("addresses", instance="caddy", address="s")
    assert tables.made("asked", "to_instance, address, port, path, by_proxy") == [
        ("caddy", "c", 1000, "/x", False),
        ("caddy", None, None, "/z", False),
    ]


@pytest.mark.parametrize(("status", "known", "asked"), [(200, None, 200), (502, None, 0), (502, 503, 503)])
def test_a_failure_that_a_log_leaves_open_is_none_of_the_server_s(
    tables: Tables, status: int, known: int | None, asked: int
) -> None:
    tables.given("request_links", instance="k6-1", id=1, access_instance="caddy", line=3)
    tables.given("access", instance="caddy", line=3, time_ms=9, status=status, request_uri="/x?y")
    tries = {**TRY, "instance": "caddy", "line": 3, "tries": 1, "start_us": 5, "response_us": 7, "server_address": "b"}
    tables.given("tries", **tries, status=known)
    tables.given("addresses", instance="shop", address="b")
    assert tables.made("asked_by_proxies", "to_instance, time_us, end_us, status, path, by_proxy") == [
        ("shop", 5, 12, asked, "/x", True)
    ]


ASKED: Row = {
    "instance": "k6-1", "to_instance": "caddy", "address": "c", "method": "GET", "path": "/", "by_proxy": False,
}  # fmt: skip
LINED: Row = {"instance": "caddy", "remote_addr": "c", "request_uri": "/", "request_method": "GET"}


@pytest.mark.parametrize(
    ("asked", "lines", "found"),
    [
        # Over one port, one after the other: in their order, though a second holds them all.
        ([(1, 7, 100, 200), (2, 7, 300, 400)], [(11, 7, 0), (12, 7, 0)], [(1, 11, "order"), (2, 12, "order")]),
        # A line is missing, and its time does not tell which.
        ([(1, 7, 100, 200), (2, 7, 300, 400)], [(11, 7, 0)], []),
        # Two ports tell two requests of one moment apart.
        ([(1, 7, 100, 200), (2, 8, 100, 200)], [(11, 8, 0), (12, 7, 0)], [(1, 12, "order"), (2, 11, "order")]),
        # Without a port, two requests at once cannot be told apart; two one after the other can.
        ([(1, 7, 100, 200), (2, 8, 100, 200)], [(11, None, 0), (12, None, 0)], []),
        ([(1, 7, 100, 200), (2, 8, 300, 400)], [(11, None, 0), (12, None, 0)], [(1, 11, "order"), (2, 12, "order")]),
        # Another one's port.
        ([(1, 7, 100, 200)], [(11, 9, 0)], []),
        # Long before.
        ([(1, 7, 5_000_000, 5_000_200)], [(11, 7, 0)], []),
    ],
)  # fmt: skip
def test_lines_without_a_connection_are_linked_where_nothing_else_can_be_meant(
    tables: Tables, asked: list[Any], lines: list[Any], found: list[Any]
) -> None:
    tables.given("asked", "id port time_us end_us", *asked, **ASKED, status=200)
    tables.given("access", "line remote_port time_ms", *lines, **LINED, status=200, resolution_us=1_000_000)
    parameters = {"slack_us": 5, "late_us": 50, "by_proxy": False}
    assert tables.made("line_links", "id, line, how", **parameters) == found


@pytest.mark.parametrize("other", [{"status": 404}, {"request_uri": "/y"}, {"request_method": "POST"}])
def test_a_line_that_contradicts_the_request_is_another_one_s(tables: Tables, other: Row) -> None:
    tables.given("asked", **ASKED, id=1, port=7, time_us=100, end_us=200, status=200)
    tables.given("access", **{**LINED, "status": 200, **other}, line=11, remote_port=7, time_ms=0)
    assert tables.made("line_links", "id", slack_us=5, late_us=50, by_proxy=False) == []


def test_one_id_in_two_logs_is_one_request(tables: Tables) -> None:
    asked = {**without(ASKED, "address"), "to_instance": "shop", "by_proxy": True, "status": 200}
    tables.given("asked", "id request_id", (1, "a"), (2, "b"), **asked, time_us=100, end_us=200)
    logged = {**LINED, "instance": "shop", "status": 200, "time_ms": 0}
    tables.given("served_lines", "line request_id", (11, "b"), (12, "a"), **logged)
    assert tables.made("line_links", "id, line, how", slack_us=5, late_us=50, by_proxy=True) == [
        (1, 12, "alone"), (2, 11, "alone"),
    ]  # fmt: skip


def test_a_proxy_s_line_without_a_number_becomes_its_request_s(tables: Tables) -> None:
    tables.given("request_links", instance="k6-1", id=1, place=1)
    tables.given("line_links", "access_instance line", ("caddy", 11), ("shop", 12), instance="k6-1", id=1)
    tables.given("access", instance="caddy", line=11)
    assert tables.made("request_links_by_line", "id, access_instance, line") == [(1, "caddy", 11)]


@pytest.mark.parametrize(("status", "connected"), [(200, True), (502, False)])
def test_a_try_that_the_log_leaves_open_was_connected_if_a_server_answered(
    tables: Tables,
    status: int,
    connected: bool,  # noqa: FBT001
) -> None:
    line = {"instance": "caddy", "line": 1, "time_ms": 1000, "upstream_addr": "b:80", "upstream_response_time": "0.2"}
    tables.given("access", **line, status=status, guessed=True)
    assert tables.made("tries", "status, connected, start_us", turn_us=0, headers_bytes=0) == [
        (None, connected, 800_000)
    ]


def test_a_line_has_a_try_for_each_server(tables: Tables) -> None:
    columns = "line time_ms upstream_addr upstream_status upstream_connect_time upstream_header_time"
    row = (1, 1000, "a:80, b:81", "502, 200", "-, 0.001", "-, 0.010", "0.2, 0.3")
    tables.given("access", f"{columns} upstream_response_time", row, instance="nginx")
    tables.given("access", instance="nginx", line=2, upstream_addr="")
    columns = "try, tries, server_address, server_port, status, connect_us, start_us, names_dial"
    assert tables.made("tries", columns, turn_us=0, headers_bytes=0) == [
        (1, 2, "a", 80, 502, None, 500_000, False),
        (2, 2, "b", 81, 200, 1000, 700_000, False),
    ]


@pytest.mark.parametrize(
    ("text", "second", "securing"),
    [
        ('upstream timed out (110: …) while SSL handshaking to upstream, upstream: "https://b:81/x"', 1, (False, True)),
        ('upstream timed out (110: …) while SSL handshaking to upstream, upstream: "b:81"', 1, (False, True)),
        ('upstream timed out (110: …) while SSL handshaking to upstream, upstream: "https://b:8/x"', 1, (False, False)),
        ('upstream timed out (110: …) while connecting to upstream, upstream: "https://b:81/x"', 1, (False, False)),
        (
            'upstream timed out (110: …) while SSL handshaking to upstream, upstream: "https://b:81/x"',
            3,
            (False, False),
        ),
    ],
)
def test_a_try_was_connected_if_its_tls_handshake_had_begun_by_the_error_log(
    tables: Tables, text: str, second: int, securing: tuple[bool, bool]
) -> None:
    line = {"instance": "nginx", "line": 1, "connection": 3, "time_ms": 1900, "request_time": 0.8, "status": 504}
    tried = {"upstream_addr": "a:80, b:81", "upstream_status": "504, 504", "upstream_response_time": "0.4, 0.4"}
    tables.given("access", **line, **tried, upstream_connect_time="-, -")
    tables.given("errors", instance="nginx", line=9, connection=3, time_us=second * 1_000_000, text=text)
    assert tables.made("tries", "try, securing, connected", turn_us=0, headers_bytes=0) == [
        (number, is_securing, is_securing) for number, is_securing in enumerate(securing, start=1)
    ]


@pytest.mark.parametrize(
    ("doing", "had"), [("reading response header from", True), ("sending request to", True), ("connecting to", False)]
)
def test_a_try_was_connected_if_the_error_log_says_what_it_did_then(tables: Tables, doing: str, *, had: bool) -> None:
    line = {"instance": "nginx", "line": 1, "connection": 3, "time_ms": 1900, "request_time": 0.1, "status": 502}
    tried = {"upstream_addr": "a:80", "upstream_status": "502", "upstream_response_time": "0.1"}
    tables.given("access", **line, **tried, upstream_connect_time="-")
    text = f'upstream prematurely closed connection while {doing} upstream, upstream: "http://a:80/x"'
    tables.given("errors", instance="nginx", line=9, connection=3, time_us=1_000_000, text=text)
    assert tables.made("tries", "had, connected, securing", turn_us=0, headers_bytes=0) == [(had, had, False)]


@pytest.mark.parametrize(
    ("syns_us", "proof", "found"),
    [
        ([], {}, (0, 0)),
        ([100, 190], {"syns_not_dropped": 2}, (1, 1)),
        ([100, 190], {"syns_not_dropped": 1, "syns_overflowed": 1}, (1, 0)),
        # One that had its last SYN before the try began, or its first one after the try was over.
        ([50, 90], {"syns_not_dropped": 2}, (0, 0)),
        ([310], {"syns_not_dropped": 1}, (0, 0)),
    ],
)
def test_a_try_without_a_connection_may_have_had_any_that_never_stood(
    tables: Tables, syns_us: list[int], proof: dict[str, int], found: tuple[int, int]
) -> None:
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, response_us=200, connected=False, guessed=False)
    if syns_us:
        times = {"first_time_us": syns_us[0], "syn_times_us": syns_us, "syns_lost": len(syns_us), "refused": False}
        tables.given("connections", **MADE, id=7, established=False, **times)
        tables.given("syn_drop_proof", observer=MADE["observer"], id=7, **proof)
    assert tables.made("dials_in_doubt", "possible, silent", slack_us=5) == [found]


def test_a_try_that_names_its_dial_has_that_dial_s_connection(tables: Tables) -> None:
    tables.given("tries", "try", (1,), instance="gateway", line=1, dial=5)
    tables.given("dial_links", instance="gateway", dial=5, observer="backend-1", flow=7)
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
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, response_us=200, local_port=40_000)
    spans = [(number, *span) for number, span in enumerate(spans_us, start=7)]
    tables.given("connections", "id first_time_us last_time_us", *spans, **(MADE | {"client_port": 40_000}))
    assert tables.made("try_links_by_port", "line, flow", slack_us=5, turn_us=30) == found


ORDER = {"slack_us": 5, "turn_us": 10, "retry_us": 1000, "guessed": False}


@pytest.mark.parametrize(
    ("file", "tries", "begins_us", "found"),
    [
        ("order", 2, (101, 201), [(1, 7), (2, 8)]),
        ("order", 2, (101, 900), [(1, 7)]),
        ("order", 2, (101, 102), []),
        ("time", 1, (101,), [(1, 7)]),
        ("time", 1, (101, 103), []),
        ("time", 1, (900,), []),
    ],
)
def test_tries_and_connections_pair_in_order_if_all_agree_or_if_each_began_alone(
    tables: Tables, file: str, tries: int, begins_us: tuple[int, ...], found: list[Any]
) -> None:
    tables.given(
        "tries", "line start_us", *((n, 100 * n) for n in range(1, tries + 1)), **TRY, instance="k6-1", connected=False
    )
    tables.given("connections", "id first_time_us", *enumerate(begins_us, start=7), **MADE, established=False)
    if file == "order":
        assert tables.made("try_links_by_order", "line, flow", **ORDER) == found
    else:
        assert tables.made("try_links_by_time", "line, flow", slack_us=5, retry_us=10, alone_us=10) == found


@pytest.mark.parametrize(("answered_us", "found"), [(190, [(1, 7)]), (150, []), (210, [])])
def test_a_try_by_time_was_connected_late_if_its_connection_was(
    tables: Tables, answered_us: int, found: list[Any]
) -> None:
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, connected=True, connect_us=100)
    tables.given("connections", **MADE, id=7, first_time_us=101, answered_us=answered_us, established=True)
    assert tables.made("try_links_by_time", "line, flow", slack_us=5, retry_us=20, alone_us=10) == found


@pytest.mark.parametrize(
    ("times_us", "possible"),
    [
        ([(1200, 1201)], [(1, 7)]),
        ([(101, 1201)], [(1, 7)]),
        ([(1200, 1201), (1190, 1195)], [(1, 7), (1, 8)]),
        # Its SYN came neither when the try began nor after a timeout; it was answered before, or after.
        ([(900, 1201)], []),
        ([(1150, 1151)], []),
        ([(1200, 1210)], []),
    ],
)
def test_a_try_that_was_connected_late_has_a_connection_that_was_answered_then(
    tables: Tables, times_us: list[Any], possible: list[Any]
) -> None:
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, connect_us=1100)
    times = [(number, *both) for number, both in enumerate(times_us, start=7)]
    tables.given("connections", "id first_time_us answered_us", *times, **MADE, established=True)
    bounds = {"slack_us": 5, "turn_us": 30, "timeout_us": 1000}
    assert tables.made("connects_in_doubt", "line, flow", **bounds) == possible


@pytest.mark.parametrize(
    ("pairs", "found"),
    [([(1, 7)], [(1, 7)]), ([(1, 7), (1, 8)], []), ([(1, 7), (2, 7)], []), ([(1, 7), (2, 8)], [(1, 7), (2, 8)])],
)
def test_a_try_that_was_connected_late_has_the_connection_that_only_it_may_have(
    tables: Tables, pairs: list[Any], found: list[Any]
) -> None:
    tables.given("connects_in_doubt", "try line flow", *((1, *pair) for pair in pairs), instance="nginx", observer="s")
    assert tables.made("try_links_by_connect", "line, flow") == found


def test_a_line_that_was_stamped_late_pairs_in_order_if_its_log_is_of_a_declared_format(tables: Tables) -> None:
    for line, guessed in ((1, True), (2, False)):
        row = {"instance": "k6-1", "line": line, "start_us": 100, "connected": False, "guessed": guessed}
        tables.given("tries", **(TRY | row | {"server_port": 8080 + line}))
        row = {"id": line, "first_time_us": 70, "established": False}
        tables.given("connections", **(MADE | row | {"server_port": 8080 + line}))
    order = ORDER | {"turn_us": 50}
    assert tables.made("try_links_by_order", "line", **order) == []
    assert tables.made("try_links_by_order", "line, flow", **(order | {"slack_us": 50, "guessed": True})) == [(1, 1)]


@pytest.mark.parametrize(
    ("tries", "flows", "found"),
    [
        # Of two that began together, one took a kept connection: it was answered when no new connection was.
        ([(1, 100, 900), (2, 101, 300)], [(7, 102, 999)], [(1, 7)]),
        ([(1, 100, 900), (2, 101, 300)], [(7, 102, 999), (8, 103, 401)], [(1, 7), (2, 8)]),
        # Either may be meant.
        ([(1, 100, 900), (2, 101, 900)], [(7, 102, 999)], []),
        ([(1, 100, 900)], [(7, 102, 999), (8, 103, 998)], []),
        # The answer came before the connection's, or long after; the connection began before the try.
        ([(1, 100, 800)], [(7, 102, 999)], []),
        ([(1, 100, 900)], [(7, 102, 500)], []),
        ([(1, 100, 900)], [(7, 50, 999)], []),
    ],
)
def test_a_try_has_the_connection_whose_answer_it_had(
    tables: Tables, tries: list[Any], flows: list[Any], found: list[Any]
) -> None:
    tables.given("tries", "line start_us header_us", *tries, **TRY, instance="k6-1", connected=True)
    tables.given("connections", "id first_time_us server_first_data_time_us", *flows, **MADE, established=True)
    assert tables.made("try_links_by_answer", "line, flow", slack_us=5, turn_us=30) == found


EXCHANGE = "flow turn time_us first_us end_us"


def whole(flow: int, time_us: int, first_us: int) -> tuple[int, ...]:
    return flow, time_us, time_us, first_us, first_us


KEPT: Row = {"first_time_us": 0, "last_time_us": 9000, "established": True}


@pytest.mark.parametrize(
    ("changes", "linked", "found"),
    [
        ({}, False, [(7,), (8,)]),
        ({"response_us": 150}, False, []),
        ({"header_us": None}, False, []),
        ({"names_dial": True}, False, []),
        ({"start_us": 9100}, False, []),
        ({}, True, []),
    ],
)
def test_a_proxy_s_connections_are_read_for_slow_tries_that_have_none(
    tables: Tables, changes: Row, *, linked: bool, found: list[Any]
) -> None:
    tables.given("tries", **{**TRY, "instance": "k6-1", "line": 1, "connected": True, "start_us": 1000}
                 | {"header_us": 400, "response_us": 500} | changes)  # fmt: skip
    tables.given("connections", "id", (7,), (8,), (9,), **MADE, **KEPT)
    tables.given("tls_handshakes", observer=MADE["observer"], id=9)
    if linked:
        tables.given("try_links", "try", (1,), instance="k6-1", line=1)
    assert [row[1:2] for row in tables.made("carrying_tries", slow_us=200)] == found


@pytest.mark.parametrize(
    ("tries", "exchanges", "found"),
    [
        # Both ends agree, or one: the request came late, or the answer was sent early.
        ([(1, 1000, 500)], [(7, 1002, 1499)], [(1, 7)]),
        ([(1, 1000, 500)], [(7, 1450, 1499)], [(1, 7)]),
        ([(1, 1000, 500)], [(7, 1002, 1050)], [(1, 7)]),
        ([(1, 1000, 500)], [(7, 1450, 1480)], []),
        # It began before, or its answer came when the proxy had it already.
        ([(1, 1000, 500)], [(7, 950, 1499)], []),
        ([(1, 1000, 500)], [(7, 1002, 1550)], []),
        # Either may be meant.
        ([(1, 1000, 500)], [(7, 1450, 1499), (8, 1460, 1499)], []),
        ([(1, 1000, 500), (2, 1001, 500)], [(7, 1002, 1499)], []),
        # The other is a quick one's, which it agrees with at both ends.
        ([(1, 1000, 500), (2, 1470, 30)], [(7, 1450, 1499), (8, 1471, 1499)], [(1, 7)]),
        # The other's connection had another exchange meanwhile: before the request came, or after the answer left.
        ([(1, 1000, 500)], [(7, 1450, 1499), (8, 1200, 1220), (8, 1460, 1499)], [(1, 7)]),
        ([(1, 1000, 500)], [(7, 1002, 1020), (8, 1003, 1030), (8, 1200, 1220)], [(1, 7)]),
        # It agrees with the quick one's, too: that may have another, and the slow one no other; or neither has one.
        ([(1, 1000, 500), (2, 1470, 30)], [(7, 1471, 1499), (8, 1471, 1499), (8, 1300, 1320)], [(1, 7)]),
        ([(1, 1000, 500), (2, 1470, 30)], [(7, 1471, 1499)], []),
        # Two agree with the quick one, and only one of them with no other try.
        ([(1, 1000, 500), (2, 1001, 30), (3, 1006, 30)], [(7, 998, 1027), (8, 1004, 1034), (9, 1011, 1039)], [(1, 8)]),
    ],
)
def test_a_slow_try_over_a_kept_connection_has_that_of_its_exchange(
    tables: Tables, tries: list[Any], exchanges: list[Any], found: list[Any]
) -> None:
    times = [(*one, one[-1]) for one in tries]
    tables.given("tries", "line start_us header_us response_us", *times, **TRY, instance="k6-1", connected=True)
    tables.given("connections", "id", (7,), (8,), (9,), **MADE)
    tables.given("exchanges_of_tries", EXCHANGE, *(whole(*one) for one in exchanges), observer=MADE["observer"])
    assert tables.made("try_links_by_exchange", "line, flow", slow_us=200, at_once_us=5) == found


def test_a_try_whose_connection_is_known_has_no_other_s_exchange(tables: Tables) -> None:
    times = [(1, 1000, 500, 500), (2, 1002, 498, 498)]
    tables.given("tries", "line start_us header_us response_us", *times, **TRY, instance="k6-1", connected=True)
    tables.given("connections", "id", (7,), (8,), **MADE)
    tables.given("try_links", "try flow", (1, 8), instance="k6-1", line=2, observer=MADE["observer"])
    exchanges = [whole(7, 1001, 1499), whole(8, 1002, 1499)]
    tables.given("exchanges_of_tries", EXCHANGE, *exchanges, observer=MADE["observer"])
    assert tables.made("try_links_by_exchange", "line, flow", slow_us=200, at_once_us=5) == [(1, 7), (2, 8)]


@pytest.mark.parametrize(("closed_us", "found"), [(300, [(1, 7)]), (900, [])])
def test_a_try_that_broke_off_has_the_connection_that_ended_then(
    tables: Tables, closed_us: int, found: list[Any]
) -> None:
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, response_us=200, connect_us=0, status=502)
    times = {"client_last_data_time_us": 250, "server_fin_time_us": closed_us}
    tables.given("connections", **MADE, id=7, established=True, **times)
    assert tables.made("try_links_by_breach", "line, flow", slack_us=5, late_us=10, at_once_us=20, turn_us=30) == found


@pytest.mark.parametrize(
    ("took_us", "found"),
    [
        (100, [(2, 7)]),
        # Its own try was over within a turn before the last data, or nobody knows when: that may be its data.
        (130, []),
        (None, []),
    ],
)
def test_a_try_that_broke_off_may_have_had_a_connection_that_another_opened(
    tables: Tables, took_us: int | None, found: list[Any]
) -> None:
    columns, always = "line start_us response_us status", {"instance": "k6-1", "connect_us": 0, "connected": True}
    tables.given("tries", columns, (1, 0, took_us, 200), (2, 150, 50, 502), **TRY, **always)
    times = {"server_last_data_time_us": 90, "client_last_data_time_us": 155, "server_fin_time_us": 198}
    tables.given("connections", **MADE, **times, id=7, established=True)
    tables.given("try_links", "try flow", (1, 7), instance="k6-1", line=1, observer=MADE["observer"])
    tables.made("last_known_tries")
    assert tables.made("breaches_in_doubt", "line, flow", slack_us=30, at_once_us=20) == found
    made = tables.made("try_links_by_breach", "line, flow", slack_us=5, late_us=10, at_once_us=20, turn_us=30)
    assert [row for row in made if row[0] == 2] == found


def test_a_connection_that_was_closed_right_behind_its_first_data_was_not_kept_before(tables: Tables) -> None:
    tables.given("tries", **TRY, instance="k6-1", line=1, start_us=100, response_us=200, connect_us=0, status=502)
    times = {"client_last_data_time_us": 310, "server_first_data_time_us": 280, "server_last_data_time_us": 280}
    tables.given("connections", **MADE, **times, id=7, established=True, server_fin_time_us=300)
    assert tables.made("try_links_by_breach", "line", slack_us=5, late_us=10, at_once_us=20, turn_us=30) == []
    assert tables.made("breaches_in_doubt", "line", slack_us=5, at_once_us=20) == []


@pytest.mark.parametrize(
    ("first_us", "last_us", "closed_us", "found"),
    [
        # The server's data came after the try began.
        (20, 120, 300, [(1, True), (2, True)]),
        # It came before, by times of which the log's are less exact; it was all that came, and the end right behind it.
        (90, 90, 105, [(1, True), (2, True)]),
        # What it sent before was for another request.
        (20, 90, 300, [(1, False), (2, False)]),
        (None, None, 300, [(1, False), (2, False)]),
        # It ended when the try was over.
        (20, 120, 306, []),
    ],
)
def test_a_try_that_broke_off_may_have_had_any_connection_that_the_server_ended_then(
    tables: Tables, first_us: int | None, last_us: int | None, closed_us: int, found: list[Any]
) -> None:
    columns = "line status header_us unsent_bytes connected"
    tries = [
        (1, 502, None, None, True),
        (2, 413, 150, 90_000, True),
        (3, 413, 150, None, True),
        (4, 502, None, None, False),
    ]
    tables.given("tries", columns, *tries, **TRY, instance="k6-1", start_us=100, response_us=200)
    times = {
        "server_first_data_time_us": first_us,
        "server_last_data_time_us": last_us,
        "server_fin_time_us": closed_us,
    }
    tables.given("connections", **MADE, **times, id=7, established=True)
    assert tables.made("breaches_in_doubt", "line, answered", slack_us=5, at_once_us=20) == found


@pytest.mark.parametrize(("over_tls", "answered"), [(False, True), (True, False)])
def test_data_over_tls_may_be_its_end_and_no_answer(tables: Tables, *, over_tls: bool, answered: bool) -> None:
    columns, always = "line start_us response_us status", {"instance": "k6-1", "connect_us": 0, "connected": True}
    tables.given("tries", columns, (1, 0, 40, 200), (2, 150, 50, 502), **TRY, **always)
    times = {"server_last_data_time_us": 190, "client_last_data_time_us": 155, "server_fin_time_us": 198}
    tables.given("connections", **MADE, **times, id=7, established=True)
    tables.given("try_links", "try flow", (1, 7), instance="k6-1", line=1, observer=MADE["observer"])
    if over_tls:
        tables.given("tls_handshakes", observer=MADE["observer"], id=7)
    tables.made("last_known_tries")
    assert tables.made("breaches_in_doubt", "line, answered", slack_us=5, at_once_us=20) == [(2, answered)]


def test_a_kept_connection_on_which_nothing_came_during_a_try_was_not_its_own(tables: Tables) -> None:
    columns, always = "line start_us response_us status", {"instance": "k6-1", "connect_us": 0, "connected": True}
    tables.given("tries", columns, (1, 0, 40, 200), (2, 150, 50, 502), **TRY, **always)
    # Its last data, of a try that nobody knows, came long before: the server closed it because it was idle.
    times = {"server_last_data_time_us": 95, "client_last_data_time_us": 90, "server_fin_time_us": 170}
    tables.given("connections", **MADE, **times, id=7, established=True)
    tables.given("try_links", "try flow", (1, 7), instance="k6-1", line=1, observer=MADE["observer"])
    tables.made("last_known_tries")
    assert tables.made("breaches_in_doubt", "line", slack_us=5, at_once_us=20) == []


def test_a_try_that_sent_less_than_it_got_did_not_send_all_of_the_body(tables: Tables) -> None:
    tried = {"upstream_addr": "a:80, a:80", "upstream_status": "502, 413", "upstream_response_time": "0.1, 0.1"}
    tables.given(
        "access",
        instance="nginx",
        line=1,
        time_ms=5,
        request_length=100_000,
        upstream_bytes_sent="99990, 60000",
        **tried,
    )
    assert tables.made("tries", "try, unsent_bytes", turn_us=0, headers_bytes=100) == [(1, None), (2, 40_000)]


def test_a_kernel_counted_what_grew_between_its_ticks(tables: Tables) -> None:
    rows = [("nginx", 0, 3, 7), ("nginx", 3, 3, 8), ("backend-1", 5, None, 4), ("backend-1", 5, None, 4)]
    tables.given("ticks", "instance overflows cookies deferred", *rows)
    found = tables.made("counted", "instance, overflowed, sent_cookies, deferred")
    assert found == [("backend-1", False, None, False), ("nginx", True, False, True)]


def test_candidates_show_a_sign_of_a_full_queue_that_the_kernel_counted(tables: Tables) -> None:
    tables.given("counted", "instance overflowed", ("nginx", True), ("backend-1", False))
    tables.given("hops", observer="nginx")
    flow = MADE | {"established": True, "answered": True, "handshakes_only": False, "synack_count": 1}
    del flow["to_instance"]
    rows = [(0, 1, "nginx"), (1, 0, "nginx"), (2, 1, "backend-1")]
    tables.given("flows", "id client_retransmissions to_instance", *rows, **flow)
    assert tables.made("candidates", "id") == [(0,)]


def test_all_syns_before_the_answered_one_were_lost(tables: Tables) -> None:
    tables.given("hops", hop=0, client="k6", server="nginx", observer="nginx")
    tables.given("instances", "instance role", ("k6-1", "k6"), ("nginx", "nginx"))
    columns = "id answered established synack_times_us handshake_ack_time_us"
    flow = {**MADE, "handshakes_only": False, "first_time_us": 10, "syn_times_us": [10, 20, 30], "syn_count": 3}
    tables.given("flows", columns, (1, True, True, [31], 32), (2, False, False, None, None), **flow)
    columns = "id, syns_lost, syns_lost_us, queued_us, in_window, refused"
    assert tables.made("arriving_flows", columns, start_us=0, end_us=50) == [
        (1, 2, [10, 20], 32, True, False),
        (2, 3, [10, 20, 30], None, True, False),
    ]


def test_clients_that_are_not_on_the_path_come_to_the_same_port_too(tables: Tables) -> None:
    tables.given("hops", hop=0, client="k6", server="nginx", observer="nginx")
    tables.given("instances", "instance role", ("k6-1", "k6"), ("nginx", "nginx"), ("db", "db"))
    columns = "id from_instance client_address server_port"
    rows = [(1, "k6-1", "c", 80), (2, None, "d", 80), (3, None, "d", 9000), (4, None, "s", 80), (5, "db", "e", 80)]
    tables.given("flows", columns, *rows, **without(MADE, "from_instance", "client_address", "server_port"))
    assert tables.made("arriving_flows", "id", start_us=0, end_us=50) == [(1,), (2,)]


def test_the_connections_of_a_hop_are_those_of_its_client(tables: Tables) -> None:
    tables.given("arriving_flows", "id from_instance", (1, "k6-1"), (2, None))
    assert tables.made("connections", "id") == [(1,)]


@pytest.mark.parametrize(
    ("deferred", "synacks", "came_us", "found"),
    [
        (True, 1, (45, 49), (45, True)),
        (True, 1, (None, 49), (49, True)),
        (True, 1, (None, None), (None, False)),
        # It has sent its SYN-ACK again: it waits no longer.
        (True, 2, (45, 49), (12, True)),
        # The server closed before anything came, at 48.
        (True, 1, (None, 49, 48), (12, True)),
        (True, 1, (None, None, 48), (12, True)),
        (True, 1, (45, 49, 48), (45, True)),
        (False, 1, (45, 49), (12, True)),
        (False, 1, (None, None), (12, True)),
    ],
)
def test_a_socket_that_waits_for_data_queues_a_connection_with_that(
    tables: Tables,
    *,
    deferred: bool,
    synacks: int,
    came_us: tuple[int | None, ...],
    found: tuple[int | None, bool],
) -> None:
    tables.given("hops", hop=0, client="k6", server="nginx", observer="nginx")
    tables.given("instances", "instance role", ("k6-1", "k6"), ("nginx", "nginx"))
    tables.given("counted", instance="nginx", deferred=deferred)
    flow = {**MADE, "first_time_us": 10, "syn_times_us": [10], "syn_count": 1, "answered": True, "established": True}
    times = {"synack_count": synacks, "synack_times_us": [11], "handshake_ack_time_us": 12}
    names = ("client_first_data_time_us", "client_fin_time_us", "server_fin_time_us")
    ends = dict(zip(names, came_us, strict=False))
    tables.given("flows", **flow, **times, **ends, id=1, handshakes_only=False)
    assert tables.made("arriving_flows", "queued_us, entered", start_us=0, end_us=50) == [found]


def test_a_rst_in_place_of_the_handshake_s_last_ack_leaves_nothing_in_the_queue(tables: Tables) -> None:
    """A health check that only connects ends so: the server's kernel forgets the connection, and counts none."""
    tables.given("hops", hop=0, client="k6", server="nginx", observer="nginx")
    tables.given("instances", "instance role", ("k6-1", "k6"), ("nginx", "nginx"))
    flow = {**MADE, "first_time_us": 10, "syn_times_us": [10], "syn_count": 1, "answered": True, "established": True,
            "synack_times_us": [11], "first_rst_by": "client"}  # fmt: skip
    tables.given(
        "flows", "id handshakes_only handshake_ack_time_us", (1, False, None), (2, False, 12), (3, True, None), **flow
    )
    found = tables.made("arriving_flows", "id, entered, queued_us", start_us=0, end_us=50)
    assert found == [(1, False, None), (2, True, 12), (3, True, 11)]


@pytest.mark.parametrize(
    ("overflows", "order_us", "found"),
    [(1, 9, [(7, 1), (8, 0)]), (1, 10, [(7, 1), (8, 1)]), (0, 10, [(7, 0), (8, 0)])],
)
def test_an_ack_may_have_met_the_queue_that_another_filled(
    tables: Tables, overflows: int, order_us: int, found: list[Any]
) -> None:
    tables.given("ticks", "time_us overflows", (0, 0), (200, overflows), instance="nginx")
    row = {**MADE, "entered": True, "ack_dropped_max": 0, "handshakes_only": False}
    tables.given("arriving_flows", "id answered_us queued_us", (7, 100, 120), (8, 105, 110), **row)
    assert tables.made("arriving_flows_raced", "id, ack_dropped_max", order_us=order_us) == found


def test_the_queue_is_first_in_first_out(tables: Tables) -> None:
    tables.given("arriving_flows", "id queued_us", (1, 10), (2, 20), (3, 30), **MADE, perhaps_unknown=False)
    tables.given("ticks", "n time_us depth", (0, 5, 0), (1, 35, 2), (2, 45, 1), instance="nginx", listeners=1)
    columns = "id, accepted_after_us, accepted_before_us"
    assert tables.made("accepted", columns) == [(1, 10, 35), (2, 35, 45), (3, 45, None)]


@pytest.mark.parametrize(
    ("listeners", "first_rst_us", "found"),
    [
        # Named at 60 and no more at 90; never named, and gone by 90; it came after the last reading.
        (2, None, [(1, 60, 95), (2, None, 95)]),
        # A connection that was reset is named no more, though it waits.
        (2, 85, [(1, 60, None), (2, None, 95)]),
        (1, None, []),
    ],
)
def test_of_several_queues_the_readings_name_who_was_not_accepted(
    tables: Tables, listeners: int, first_rst_us: int | None, found: list[Any]
) -> None:
    own = MADE | {"client_address": "c", "server_port": 80, "perhaps_unknown": False}
    rows = [(1, 1001, 10, 11, first_rst_us), (2, 1002, 64, 65, None), (3, 1003, 95, 96, None)]
    tables.given(
        "arriving_flows",
        "id client_port first_time_us queued_us first_rst_time_us",
        *rows,
        **without(own, "client_port"),
    )
    tables.given("ticks", instance="nginx", listeners=listeners)
    # An earlier connection from the same port, and one at another port of the server.
    names = [(5, 1001, 80), (30, 1001, 80), (60, 1001, 80), (60, 1002, 81)]
    tables.given("unaccepted", "time_us peer_port port", *names, instance="nginx", peer="c")
    tables.given("unaccepted_readings", "time_us more", (30, 0), (60, 0), (75, 3), (90, 0), instance="nginx")
    columns = "id, accepted_after_us, accepted_before_us"
    assert tables.made("accepted_as_listed", columns, slack_us=5) == found


def test_who_stood_ahead_in_the_queue_and_had_left_before_their_turn(tables: Tables) -> None:
    # The first was accepted before the third came; the second's client left while it waited, the third's just after.
    tables.given(
        "arriving_flows", "id queued_us gave_up_us", (1, 10, 11), (2, 20, 40), (3, 30, 66), (4, 40, None), **MADE
    )
    accepts = [(1, 12, 25), (2, 45, 55), (3, 65, 70), (4, 70, 80)]
    tables.given("accepted", "id accepted_after_us accepted_before_us", *accepts, observer="nginx")
    # Who stands in which of two queues is not known.
    tables.given("arriving_flows", **(MADE | {"to_instance": "backend-1"}), id=5, queued_us=10)
    tables.given("accepted", id=5, observer="nginx", accepted_after_us=10, accepted_before_us=20)
    tables.given("ticks", instance="backend-1", listeners=2)
    assert tables.made("ahead", "id, ahead, ahead_in_vain") == [(1, 0, 0), (2, 1, 1), (3, 1, 1), (4, 2, 1)]


@pytest.mark.parametrize(
    ("ends", "left_us"),
    [
        ({"client_fin_time_us": 50}, 50),
        ({"first_rst_by": "client", "first_rst_time_us": 40, "client_fin_time_us": 50}, 40),
        # The answer came too late, and the client's kernel reset the connection.
        ({"client_fin_time_us": 50, "server_first_data_time_us": 60, "first_rst_by": "client"}, 50),
        # A client that only ended its own side reads it.
        ({"client_fin_time_us": 50, "server_first_data_time_us": 60}, None),
        ({"client_fin_time_us": 50, "server_first_data_time_us": 30, "first_rst_by": "client"}, None),
        ({"client_fin_time_us": 50, "server_fin_time_us": 45}, None),
        ({"client_fin_time_us": 50, "first_rst_by": "server", "first_rst_time_us": 45}, None),
        # It closed without a request.
        ({"client_fin_time_us": 50, "client_first_data_time_us": None}, None),
    ],
)
def test_a_client_that_asked_and_ended_the_connection_before_any_answer_has_left(
    tables: Tables, ends: Row, left_us: int | None
) -> None:
    tables.given("hops", hop=0, client="k6", server="nginx", observer="nginx")
    tables.given("instances", "instance role", ("k6-1", "k6"), ("nginx", "nginx"))
    flow = {**MADE, "id": 1, "handshakes_only": False, "first_time_us": 10, "syn_times_us": [10], "syn_count": 1,
            "answered": True, "established": True, "synack_times_us": [11]}  # fmt: skip
    tables.given("flows", **(flow | {"client_first_data_time_us": 20} | ends))
    assert tables.made("arriving_flows", "gave_up_us", start_us=0, end_us=50) == [(left_us,)]


def test_told_accepts_are_of_the_connection_and_the_instance_that_they_name(tables: Tables) -> None:
    tables.given("connections", "id first_time_us queued_us", (1, 10, 12), (2, 9_000, 9_005), **MADE)
    ends = {"local": "s", "local_port": 80, "peer": "c", "peer_port": 1000, "kind": "accepted"}
    told = [("nginx", 50, 40), ("nginx", 9_100, None), ("another", 20, 1), ("nginx", 9_200, 7)]
    tables.given("kernel_events", "instance time_us wait_us", *told, **ends)
    tables.given("accepted", id=1, observer="nginx", accepted_after_us=12, accepted_before_us=30)
    columns = "id, told_us, wait_us, sampled_after_us, sampled_before_us"
    assert tables.made("told_accepts", columns) == [(1, 50, 40, 12, 30), (2, 9_100, None, None, None)]


def test_accepted_as_told_keeps_what_only_the_samples_tell(tables: Tables) -> None:
    tables.given("told_accepts", "id told_us", (1, 50), (2, 9_100), observer="nginx")
    sampled = [(1, 12, 30), (3, 1, 2)]
    tables.given("accepted", "id accepted_after_us accepted_before_us", *sampled, observer="nginx")
    columns = "id, accepted_after_us, accepted_before_us"
    assert tables.made("accepted_as_told", columns) == [(1, 50, 50), (2, 9_100, 9_100), (3, 1, 2)]


@pytest.mark.parametrize(("told_us", "found"), [(9, 1), (10, 0), (40, 0), (41, 1)])
def test_told_by_kernels_counts_accepts_that_the_samples_rule_out(tables: Tables, told_us: int, found: int) -> None:
    sampled = {"sampled_after_us": 15, "sampled_before_us": 35}
    tables.given("connections", "id in_window", (1, True), (2, False), **MADE)
    tables.given("told_accepts", "id told_us", (1, told_us), (2, 999), observer="nginx", **sampled)
    assert tables.named("told_by_kernels", instance="nginx", slack_us=5)["accepts"] == found


def test_a_lost_syn_has_what_the_kernel_counted_around_it(tables: Tables) -> None:
    tables.given("connections", **MADE, id=7, syns_lost=2, syns_lost_us=[50, 300])
    row = {"instance": "nginx", "listen_drops": 0, "syn_queue_drops": 0, "queue_limit": 4}
    tables.given("ticks", "time_us overflows depth", (0, 0, 3), (100, 1, 5), **row)
    columns = "time_us, overflows, depth, overflows_cover_lost_syns, syn_queue_full"
    assert tables.made("lost_syns", columns, slack_us=5) == [(50, 1, 5, True, False), (300, None, 5, None, None)]


def test_a_syn_that_both_counters_could_account_for_proves_neither(tables: Tables) -> None:
    found = [(True, False), (True, True), (False, True)]
    tables.given(
        "lost_syns",
        "overflows_cover_lost_syns syn_queue_full",
        *found,
        observer="nginx",
        id=7,
        drops=1,
        depth=3,
        queue_limit=4,
    )
    tables.given("lost_syns", observer="nginx", id=7)
    columns = "syns, syns_overflowed, syns_syn_queue_full, syns_not_dropped, syns_unsampled, depth_max"
    assert tables.made("syn_drop_proof", columns) == [(4, 1, 1, 0, 1, 3)]


@pytest.mark.parametrize(
    ("drops", "found"),
    [
        # The second queue dropped both SYNs.
        ({(1, 0): 4, (1, 1): 4, (1, 2): 4, (2, 0): 6, (2, 1): 7, (2, 2): 8}, [(2, 2, 3, 3, 2)]),
        # Both may have.
        ({(1, 1): 5, (1, 2): 6, (2, 1): 7, (2, 2): 8}, [(2, None, 3, 5, 4)]),
        # None dropped both.
        ({(1, 1): 5, (1, 2): 5, (2, 1): 0, (2, 2): 8}, []),
    ],
)
def test_a_lost_syn_was_dropped_by_the_queue_whose_own_counter_grew(
    tables: Tables, drops: dict[tuple[int, int], int], found: list[Any]
) -> None:
    rows = [(1, 50, 0, 1), (1, 60, 1, 2)]
    tables.given("lost_syns", "id time_us last_n next_n", *rows, observer="nginx", to_instance="nginx")
    limits = {1: 4, 2: 2}
    ticks = [
        (n, queue, 70 + queue, limits[queue] + 1, limits[queue], drops.get((queue, n), 0))
        for queue in limits
        for n in range(3)
    ]
    tables.given("tick_queues", "n queue inode depth queue_limit drops", *ticks, instance="nginx", queues=2)
    assert tables.made("queue_drops", "queues, queue, depth_min, depth_max, queue_limit") == found


def test_what_stands_at_the_proxy_has_the_first_try_and_the_last(tables: Tables) -> None:
    tables.given("request_links", instance="k6-1", id=1, access_instance="nginx", line=9)
    tables.given("access", instance="nginx", line=9, status=200)
    tables.given("tries", "try server", (1, "a:80"), (2, "b:80"), instance="nginx", line=9, tries=2)
    tables.given("try_links", "try", (2,), instance="nginx", line=9, observer="backend-1", flow=7)
    tables.given("flows_with_proof", observer="backend-1", id=7, syns_lost=1)
    columns = "id, line_status, first_server, try_server, up_id, up_syns_lost"
    assert tables.made("proxied", columns, slack_us=5) == [(1, 200, "a:80", "b:80", 7, 1)]


def test_a_request_is_ok_slow_or_failed_and_has_its_connection(tables: Tables) -> None:
    rows = [(1, 1, 200, 0, 10), (2, 2, 200, 0, 99), (3, 3, 0, 1212, 10)]
    tables.given("requests", "id dial status error_code end_us", *rows, instance="k6-1", time_us=0)
    tables.given("dial_links", instance="k6-1", dial=1, observer="nginx", flow=7, how="address")
    tables.given("flows_with_proof", observer="nginx", id=7, syns_lost=2)
    found = tables.made("cases", "id, outcome, total_us, flow_id, flow_syns_lost", slow_us=50)
    assert found == [(1, "ok", 10, 7, 2), (2, "slow", 99, None, None), (3, "failed", 10, None, None)]


def test_what_passes_by_tls_tells_nothing_of_a_request_s_data(tables: Tables) -> None:
    tables.given("requests", "id dial tls_us", (1, 1, 0), (2, 2, 9), instance="k6-1", status=200, error_code=0)
    tables.given("dial_links", "dial flow", (1, 7), (2, 8), instance="k6-1", observer="nginx", how="address")
    data_us = dict.fromkeys(
        (f"{end}_{which}_data_time_us" for end in ("client", "server") for which in ("first", "last")), 5
    )
    tables.given("flows_with_proof", "id", (7,), (8,), observer="nginx", **data_us, first_time_us=1)
    columns = ", ".join(["opaque", "flow_first_time_us", *(f"flow_{name}" for name in data_us)])
    assert tables.made("cases", columns, slow_us=50) == [(False, 1, 5, 5, 5, 5), (True, 1, None, None, None, None)]


def test_a_connection_is_followed_through_all_tables_that_name_it(tables: Tables) -> None:
    tables.given("connections", **MADE, id=7, syns_lost=1)
    ends = {"observer": "nginx", "id": 7}
    tables.given("tls_handshakes", **ends, tls_end_time_us=40)
    tables.given("accepted", **ends, accepted_before_us=30)
    tables.given("ahead", **ends, ahead=3)
    tables.given("syn_drop_proof", **ends, syns_overflowed=1)
    tables.given("before_socket", **ends, synacks_again=2)
    columns = "id, syns_lost, tls_end_time_us, accepted_before_us, ahead, syns_overflowed, synacks_again"
    assert tables.made("flows_with_proof", columns) == [(7, 1, 40, 30, 3, 1, 2)]


def test_a_port_is_held_in_time_wait(tables: Tables) -> None:
    ended = {**MADE, "first_time_us": 0, "time_wait_owner": "client", "truncated_end": False}
    del ended["client_port"]
    tables.given("connections", "id client_port last_time_us", (1, 1, 10), (2, 2, 20), **ended)
    found = tables.made("port_levels", "time_us, until_us, held, waiting", time_wait_us=100)
    assert found == [(0, 10, 2, 0), (10, 20, 2, 1), (20, 110, 2, 2), (110, 120, 1, 1), (120, None, 0, 0)]


def test_a_shortage_is_the_most_ports_held_while_one_was_sought(tables: Tables) -> None:
    tables.given("port_ranges", "instance ports", ("k6-1", 2), ("haproxy", 3))
    levels = [(0, 10, 2, 0), (10, 20, 2, 1), (20, None, 0, 0)]
    ends = without(MADE, "to_instance", "client_address", "client_port", "observer")
    tables.given("port_levels", "time_us until_us held waiting", *levels, **ends)
    tables.given("addressed_dials", "id time_us", (5, 15), (6, 500), **DIAL, duration_us=1, error_kind="none")
    # The proxy's line 9 gave up a try at that server at 15 us.
    tables.given("access", instance="haproxy", line=9, time_ms=0, gave_up="no-port")
    tables.given("tries", **TRY, instance="haproxy", line=9, tries=1, start_us=15)
    columns = "dial, line, held, waiting, ports"
    found = tables.made("port_shortages", columns, error_kind="none", gave_up="no-port")
    assert found == [(5, None, 2, 1, 2), (6, None, 0, 0, 2), (None, 9, None, None, 3)]


def test_an_error_in_a_declared_log_may_be_a_try_that_found_no_port_unless_it_has_a_connection(tables: Tables) -> None:
    tables.given("port_ranges", instance="gw", ports=2)
    tables.given(
        "port_levels",
        **(without(MADE, "to_instance", "client_address", "client_port", "observer") | {"from_instance": "gw"}),
        time_us=0,
        until_us=None,
        held=2,
        waiting=2,
    )
    lines = [(1, 502, 1_000), (2, 200, 1_000), (3, 502, 1_000), (4, 502, None)]
    tables.given("access", "line status resolution_us", *lines, instance="gw", time_ms=0)
    tried = {**TRY, "instance": "gw", "try": 1, "tries": 1, "start_us": 15}
    tables.given("tries", "line", (1,), (2,), (3,), (4,), **tried)
    tables.given("try_links", **{"instance": "gw", "line": 3, "try": 1, "observer": "s", "flow": 7})
    found = tables.made("port_shortages", "line, held, ports", error_kind="none", gave_up="no-port")
    assert found == [(1, 2, 2)]


def test_behind_a_service_s_error_are_its_ports_and_the_connection_that_failed_last(tables: Tables) -> None:
    failed = {"instance": "k6-1", "outcome": "failed", "status": 500, "flow_to_instance": "gw", "blocked_us": 0}
    # The first two had the service at once, the third came when nothing was wrong any more.
    tables.given("cases", "id time_us end_us", (1, 0, 100), (2, 5, 90), (3, 300, 400), **failed)
    tables.given("cases", id=4, time_us=0, end_us=100, **(failed | {"status": 404}))
    tables.given("addresses", instance="back", address="s")
    tables.given("port_ranges", instance="gw", ports=2)
    tables.given(
        "port_levels", "time_us until_us held waiting", (0, 200, 2, 1), (200, None, 0, 0),
        from_instance="gw", server_address="s", server_port=80,
    )  # fmt: skip
    tables.given("waiting_sockets", "time_us count", (10, 1), (500, 9), instance="gw")
    refused = {**MADE, "from_instance": "gw", "to_instance": "back", "observer": "back", "established": False}
    times = [(7, 20, 25, 20), (8, 95, 96, 95), (9, 250, 251, 250)]
    tables.given("connections", "id first_time_us answered_us last_time_us", *times, **refused, refused=True)
    columns = "id, behind_held, behind_ports, behind_waiting_sampled, behind_id, behind_to_instance"
    found = tables.made("behind", columns, apart_us=0)
    assert found == [(1, 2, 2, 1, 8, "back"), (2, 2, 2, 1, 7, "back"), (3, 0, 2, 1, None, "back")]


@pytest.mark.parametrize(
    ("begun_us", "found"),
    [
        # As many as requests: the k-th is the k-th's, though two began after both had come.
        ([(7, 6, 40), (8, 7, 41)], [(1, 7), (2, 8)]),
        # The second request had two, of which the last one counts.
        ([(7, 1, 2), (8, 6, 41), (9, 50, 51)], [(1, 7), (2, 9)]),
    ],
)
def test_a_connection_without_any_answer_is_of_the_request_that_came_before_it(
    tables: Tables, begun_us: list[Any], found: list[Any]
) -> None:
    failed = {"instance": "k6-1", "outcome": "failed", "status": 503, "flow_to_instance": "gw", "blocked_us": 0}
    tables.given("cases", "id time_us end_us", (1, 0, 100), (2, 5, 105), **failed)
    silent = {**MADE, "from_instance": "gw", "to_instance": "back", "observer": "back", "established": False}
    tables.given("connections", "id first_time_us last_time_us", *begun_us, **silent)
    assert tables.made("behind", "id, behind_id", apart_us=0) == found


def test_behind_a_second_proxy_its_log_names_the_connection_that_failed(tables: Tables) -> None:
    failed = {"instance": "k6-1", "outcome": "failed", "status": 503, "flow_to_instance": "gw", "blocked_us": 0}
    times = [(1, 0, 100, 41), (2, 5, 110, 42), (3, 5, 110, 43)]
    tables.given("cases", "id time_us end_us own_try_port", *times, own_server="s:80", **failed)
    tables.given("addresses", instance="back", address="s")
    ends = {"from_instance": "gw", "to_instance": "back", "observer": "back", "established": False}
    lost = without(MADE, "client_port") | ends
    # The last one began and failed last, and is of neither.
    ports = [(7, 20, 900, 41), (8, 21, 99, 42), (9, 30, 99, 44)]
    tables.given("connections", "id first_time_us last_time_us client_port", *ports, **lost)
    found = tables.made("behind", "id, behind_id, behind_to_instance", apart_us=0)
    assert found == [(1, 7, "back"), (2, 8, "back"), (3, None, "back")]


def test_inside_a_server_a_full_queue_is_proven_by_ticks_on_both_sides_or_by_its_own_messages(tables: Tables) -> None:
    second = 1_000_000
    failed = {"instance": "k6-1", "outcome": "failed", "flow_to_instance": "app", "blocked_us": 0}
    times = [
        (1, 1_010_000, 502),  # between two ticks at which the queue was full
        (2, 1_110_000, 502),  # the next tick has it not full
        (3, 2_060_000, 502), (4, 2_070_000, 502),  # two messages, and two answers
        (5, 3_010_000, 502), (6, 3_020_000, 502),  # one message for two answers
        (7, 1_020_000, 500),  # an error that is no refusal
    ]  # fmt: skip
    rows = [(number, end_us - 5_000, end_us, status) for number, end_us, status in times]
    tables.given("cases", "id time_us end_us status", *rows, **failed)
    # It took longer than a refusal does, and the queue was full all the while.
    tables.given("cases", id=8, time_us=0, end_us=1_050_000, **(failed | {"status": 502}))
    tables.given("ticks", "time_us", *[(each,) for each in range(0, 4 * second, 100_000)], instance="app")
    full = [(1 * second, 4), (1 * second + 100_000, 4), (1 * second + 200_000, 3)]
    tables.given("inner_queues", "time_us depth", *full, instance="app", name="unix:/a", queue_limit=3)
    messages = [(5, 2 * second), (6, 2 * second), (7, 3 * second)]
    tables.given("inner_refusals", "line time_us", *messages, instance="app", name="unix:/a")
    columns = "id, inside_queue, inside_depth, inside_limit, inside_full, inside_refusals"
    found = tables.made("inside", columns, turn_us=50_000, at_once_us=100_000)
    assert found == [
        (1, "unix:/a", 4, 3, True, None),
        (2, "unix:/a", 4, 3, False, None),
        (3, "unix:/a", None, None, False, 2),
        (4, "unix:/a", None, None, False, 2),
        (8, "unix:/a", 4, 3, False, None),
    ]


def test_what_a_kernel_counted_before_a_socket_is_from_before_the_first_syn_to_after_an_answer_s_repeat(
    tables: Tables,
) -> None:
    lost = {**MADE, "observer": "back", "to_instance": "back", "answered": False, "syns_lost": 1}
    tables.given("connections", id=1, first_time_us=2_000_000, **lost)
    tables.given("connections", id=2, first_time_us=2_000_000, **(lost | {"observer": "elsewhere"}))
    columns = "time_us syns_again cookies_sent tracked untracked"
    ticks = [(1_900_000, 1, 0, 8, 0), (2_100_000, 1, 0, 9, 0), (3_400_000, 2, 0, 3, 4), (3_500_000, 9, 9, 9, 9)]
    tables.given("ticks", columns, *ticks, instance="back", tracked_max=9)
    found = tables.made(
        "before_socket",
        "id, synacks_again, cookies_sent, untracked, tracked, tracked_max",
        slack_us=0,
        again_us=1_300_000,
    )
    assert found == [(1, 1, 0, 4, 8, 9)]


def test_connections_of_the_window_are_counted_by_what_became_of_them_and_why(tables: Tables) -> None:
    rows = [("answered", None, True), ("refused", "connection-refused", True), ("refused", "x", False),
            ("recovered", "waited-for-syn-retry", True)]  # fmt: skip
    tables.given("ledger", "outcome cause in_window", *rows, to_instance="backend-1")
    tables.given("ledger", outcome="reset", in_window=True, to_instance="nginx")
    found = tables.made("connections_by_cause", servers=["backend-1"])
    late = {"waited-for-syn-retry": 1}
    assert found == [(3, 1, {"answered": 1, "recovered": 1, "refused": 1}, {"connection-refused": 1}, late)]


def test_a_running_count_of_the_ticks_with_a_queue(tables: Tables) -> None:
    tables.given("ticks", "n time_us depth", (0, 0, 0), (1, 1, 2), (2, 2, 0), (3, 3, 1), instance="nginx")
    assert tables.made("queued_ticks", "time_us, ticks") == [(0, 0), (1, 1), (2, 1), (3, 2)]


@pytest.mark.parametrize(("loops", "saturated"), [([], (0, 1, 2)), (["backend-1"], (1, 2, 3))])
def test_running_counts_of_the_readings(tables: Tables, loops: list[str], saturated: tuple[int, ...]) -> None:
    tables.given("scrapes", "time_us busy", (0, 1), (10, 2), (50, 2), instance="backend-1", threads_max=2)
    found = tables.made("scraped", "time_us, scrapes, saturated, holes", gap_us=20, loops=loops)
    assert found == list(zip((0, 10, 50), (1, 2, 3), saturated, (0, 0, 1), strict=True))


def test_how_idle_the_processors_were_between_two_readings(tables: Tables) -> None:
    tables.given("processors", "time_us total_ms idle_ms", (0, 0, 0), (1, 10, 4))
    assert tables.made("idle_spans", "start_us, end_us, idle_ms, total_ms") == [(0, 1, 4, 10), (1, None, None, None)]


def test_the_server_has_a_request_from_its_sending_to_its_answer(tables: Tables) -> None:
    sent = {"remote": "s:80", "flow_to_instance": "backend-1"}
    times = {"flow_accepted_after_us": 120, "flow_server_last_data_time_us": 180}
    tables.given("cases", **SLOW, **sent, **times, blocked_us=5, sending_us=5)
    tables.given("cases", **(SLOW | {"id": 2}), blocked_us=5, sending_us=5)
    columns = "id, server, from_us, to_us, left_us, acceptance_known"
    assert tables.made("served_directly", columns, apart_us=0, gone_us=50) == [
        (1, "backend-1", 120, 180, 180, True),
        (2, None, None, None, None, False),
    ]


def test_over_a_proxy_its_log_times_the_server_s_part(tables: Tables) -> None:
    tables.given("addresses", instance="backend-1", address="10.0.0.2")
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": 40, "line_time_ms": 1}
    tables.given("cases", **SLOW, try_server="10.0.0.2:80", **times)
    columns = "id, server, from_us, to_us, left_us, acceptance_known"
    assert tables.made("served_over_a_proxy", columns) == [(1, "backend-1", 115, 150, 1000, False)]


@pytest.mark.parametrize(("up_id", "from_us"), [(7, 115), (None, None)])
def test_a_server_behind_a_proxy_whose_data_got_lost_had_a_request_if_its_connection_is_known(
    tables: Tables, up_id: int | None, from_us: int | None
) -> None:
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": 40, "line_time_ms": 1}
    tables.given("cases", **SLOW, try_server="s:80", **times, line_instance="nginx", up_id=up_id)
    tables.given("unseen_data", instance="nginx")
    assert tables.made("served_over_a_proxy", "from_us") == [(from_us,)]


def test_data_that_no_capture_has_is_of_a_sender_whose_connections_are_captured(tables: Tables) -> None:
    tables.given(
        "connections", "id from_instance", (1, "nginx"), (2, "nginx"), (3, "k6-1"), **without(MADE, "from_instance")
    )
    assert tables.made("unseen_data", "instance", again=["nginx", "backend-1"]) == [("nginx",)]


def test_a_server_behind_a_proxy_can_begin_when_the_tls_handshake_has_ended(tables: Tables) -> None:
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": 40, "line_time_ms": 1}
    tables.given("cases", **SLOW, try_server="s:80", **times, up_accepted_before_us=117, up_tls_end_time_us=130)
    assert tables.made("served_over_a_proxy", "from_us, taken_us") == [(130, 130)]


@pytest.mark.parametrize(
    ("accepted_us", "last_data_us", "answer_us", "taken_us"),
    [(130, 115, 180, 130), (105, 140, 180, 140), (105, None, 180, 110), (None, 115, 180, None), (130, 115, None, None)],
)
def test_a_server_surely_has_a_request_once_it_took_the_connection_and_all_of_it_had_come(
    tables: Tables, accepted_us: int | None, last_data_us: int | None, answer_us: int | None, taken_us: int | None
) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "shop-1"}
    seen = {"flow_accepted_before_us": accepted_us, "flow_client_last_data_time_us": last_data_us}
    tables.given("cases", **SLOW, **sent, **seen, flow_server_last_data_time_us=answer_us)
    assert tables.made("served_directly", "taken_us", apart_us=0, gone_us=50) == [(taken_us,)]


@pytest.mark.parametrize(
    ("ends", "taken_us"),
    [
        ({"flow_client_fin_time_us": 205}, 130),
        ({"flow_first_rst_by": "client", "flow_first_rst_time_us": 205}, 130),
        # Packets do not tell by TLS; the client left later, or is still there; the server ended it first.
        ({"flow_client_fin_time_us": 205, "opaque": True}, None),
        ({"flow_client_fin_time_us": 260}, None),
        ({}, None),
        ({"flow_client_fin_time_us": 205, "flow_server_fin_time_us": 190}, None),
        ({"flow_client_fin_time_us": 205, "flow_first_rst_by": "server", "flow_first_rst_time_us": 190}, None),
        # An answer to the request before.
        ({"flow_client_fin_time_us": 205, "flow_server_last_data_time_us": 90}, 130),
    ],
)
def test_a_server_surely_had_a_request_whose_client_left_before_any_answer(
    tables: Tables, ends: Row, taken_us: int | None
) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "shop-1", "opaque": False}
    seen = {"flow_accepted_before_us": 130, "flow_client_last_data_time_us": 115}
    tables.given("cases", **(SLOW | sent | seen | {"outcome": "failed", "status": 0} | ends))
    assert tables.made("served_directly", "taken_us", apart_us=0, gone_us=50) == [(taken_us,)]


def test_a_request_in_the_middle_of_a_connection_has_the_answer_of_its_own_exchange(tables: Tables) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "shop-1", "opaque": False}
    seen = {"flow_accepted_before_us": 50, "flow_client_last_data_time_us": 900, "flow_server_last_data_time_us": 990}
    flow = {"flow_observer": "shop-1", "flow_id": 7}
    tables.given("cases", **(SLOW | sent | seen | flow))
    columns = "observer id to_instance client_packets server_packets"
    tables.given("connections", columns, ("shop-1", 7, "shop-1", 3, 3), ("shop-1", 8, "shop-1", 1, 1))
    for instances in ({"silent": ["shop-1"], "limited": []}, {"silent": [], "limited": ["k6-1"]}):
        assert [row[:2] for row in tables.made("carrying_slow", **instances)] == [("shop-1", 7)]
    assert tables.made("carrying_slow", silent=[], limited=[]) == []
    # A client that has a part of an answer, of which more came when it had left: of any server.
    failed = {"outcome": "failed", "status": 0, "receiving_us": 5, "flow_id": 8}
    tables.given("cases", **(SLOW | sent | seen | flow | failed | {"id": 2}))
    tables.given("cases", **(SLOW | sent | seen | flow | failed | {"id": 3, "receiving_us": 0, "flow_id": 7}))
    assert [row[:2] for row in tables.made("carrying_slow", silent=[], limited=[])] == [("shop-1", 8)]
    # The request before, this one, and the next.
    turns = [(1, 60, 90), (2, 113, 180), (3, 900, 990)]
    tables.given("exchanges", "turn asked_us end_us", *turns, observer="shop-1", flow=7)
    left = tables.made("served_directly", "id, left_us, taken_us", apart_us=0, gone_us=50)
    assert [row[1:] for row in left if row[0] == SLOW["id"]] == [(180, 113)]


def test_a_client_that_left_had_the_answer_as_far_as_it_heard_it(tables: Tables) -> None:
    sent = {"remote": "s:80", "blocked_us": 5, "sending_us": 5, "flow_to_instance": "shop-1", "opaque": False}
    seen = {"flow_accepted_before_us": 50, "flow_client_last_data_time_us": 113, "flow_server_last_data_time_us": 990}
    tables.given("cases", **(SLOW | sent | seen | {"flow_observer": "shop-1", "flow_id": 7}))
    tables.given("exchanges", "turn asked_us end_us heard_us", (1, 113, 990, 180), observer="shop-1", flow=7)
    assert tables.made("served_directly", "left_us, taken_us", apart_us=0, gone_us=50) == [(180, 113)]


@pytest.mark.parametrize(
    ("accepted_us", "header_us", "taken_us"), [(130, 40, 130), (105, 40, 115), (None, 40, None), (130, None, None)]
)
def test_behind_a_proxy_the_try_says_when_the_server_surely_had_it(
    tables: Tables, accepted_us: int | None, header_us: int | None, taken_us: int | None
) -> None:
    times = {"try_start_us": 110, "try_connect_us": 5, "try_header_us": header_us, "line_time_ms": 1}
    tables.given("cases", **SLOW, try_server="s:80", **times, up_accepted_before_us=accepted_us)
    assert tables.made("served_over_a_proxy", "taken_us") == [(taken_us,)]


@pytest.mark.parametrize(("silent", "server_us"), [(["shop-1"], 60), (["other"], 0)])
def test_the_time_in_a_server_counts_where_it_tells_nothing_of_itself(
    tables: Tables, silent: list[str], server_us: int
) -> None:
    tables.given("cases", **SLOW)
    tables.given("served", instance="k6-1", id=1, server="shop-1", taken_us=120, to_us=180)
    assert tables.made("waits", "server_us", **WAITS | {"silent": silent}) == [(server_us,)]


def test_a_pause_overlaps_a_request_that_went_to_its_server(tables: Tables) -> None:
    tables.given("actions", instance="nginx", deed="pause", start_us=150, until_us=None)
    tables.given("cases", "id flow_to_instance", (1, "nginx"), (2, "backend-1"), **without(SLOW, "id"))
    assert tables.made("acted", "id, overlap_us, paused") == [(1, 50, "nginx")]


def test_an_end_counts_the_requests_that_went_to_its_server(tables: Tables) -> None:
    columns = "number instance is_ending:BOOLEAN start_us until_us:BIGINT"
    tables.given(
        "actions", columns, (0, "b-1", True, 100, 200), (1, "b-1", False, 100, 200), (2, "b-2", True, 400, None)
    )
    tables.given("addresses", "instance address", ("b-1", "1"), ("b-2", "2"))
    cases = [
        (1, 50, 150, "ok", 11, "1:80", 1),
        (2, 150, 160, "failed", 12, "1:80", 1),
        # It went to the first in vain, and then to the second.
        (3, 170, 180, "ok", 13, "2:80", 2),
        (4, 50, 90, "failed", 14, "1:80", 1),
        (5, 210, 220, "failed", 15, "1:80", 1),
        (6, 500, 600, "failed", 16, "2:80", 1),
    ]
    tables.given(
        "cases", "id time_us end_us outcome line_line try_server try_tries", *cases, instance="k6-1", line_instance="n"
    )
    tries = [(11, "1"), (12, "1"), (13, "1"), (13, "2"), (14, "1"), (15, "1"), (16, "2")]
    tables.given("tries", "line server_address", *tries, instance="n")
    tables.given("attributed", "id cause", (2, "refused"), (6, "reset"), instance="k6-1")

    assert tables.made("endings") == [
        (0, False, False, False, None, 1),
        (0, True, False, True, None, 1),
        (0, True, True, False, "refused", 1),
        (2, True, True, False, "reset", 1),
    ]


def test_the_last_error_of_a_connection_within_the_request_s_time_stands_beside_it(tables: Tables) -> None:
    second = 1_000_000
    times = {"time_us": 5 * second, "end_us": 6 * second, "line_instance": "nginx", "line_connection": 3}
    tables.given("cases", **(SLOW | times), dial=5)
    errors = [(1, 5 * second, "1"), (2, 6 * second, "2"), (3, 7 * second, "3")]
    tables.given("errors", "line time_us text", *errors, instance="nginx", connection=3)
    tables.given("port_shortages", instance="k6-1", dial=5, held=2, ports=2)
    found = tables.made("beside", "id, error_line, error_text, shortage_held", turn_us=10, apart_us=0)
    assert found == [(1, 2, "2", 2)]


@pytest.mark.parametrize(("header_us", "tries", "line"), [(None, 1, 1), (9, 1, 2), (9, 2, 2), (None, 2, 1)])
def test_an_error_in_the_midst_of_an_answer_is_of_a_try_that_had_its_header(
    tables: Tables, header_us: int | None, tries: int, line: int
) -> None:
    times = {"time_us": 5_000_000, "end_us": 6_000_000, "line_instance": "nginx", "line_connection": 3}
    tables.given("cases", **(SLOW | times), try_header_us=header_us, try_tries=tries)
    texts = [(1, "broken while sending request to upstream"), (2, "broken while reading upstream")]
    tables.given("errors", "line text", *texts, instance="nginx", connection=3, time_us=5_000_000)
    assert tables.made("beside", "error_line", turn_us=10, apart_us=0) == [(line,)]


def test_waits_are_the_parts_of_the_time_that_the_evidence_proves(tables: Tables) -> None:
    flow = {"flow_syns_lost": 1, "flow_first_time_us": 110, "flow_answered_us": 150, "reused": False}
    overflowed = {"flow_syns_overflowed": 1, "flow_syns_syn_queue_full": 0, "flow_syns_not_dropped": 0}
    on_the_way = {"flow_syns_overflowed": 0, "flow_syns_syn_queue_full": 0, "flow_syns_not_dropped": 1}
    came_late = {"flow_first_time_us": 150, "flow_answered_us": 155, "dial_time_us": 105, "reused": False}
    tables.given("cases", **SLOW, **flow, **overflowed, tls_us=30)
    tables.given("cases", **(SLOW | {"id": 2}), reused=True, blocked_us=60)
    tables.given("cases", **(SLOW | {"id": 3}), **flow, **on_the_way)
    tables.given("cases", **(SLOW | {"id": 4}), **came_late)
    tables.given("served", "id left_us", (1, 190), (2, None), (3, None), (4, None), instance="k6-1")
    columns = "id, syn_us, lost_us, pool_us, lag_us, tls_wait_us"
    found = tables.made("waits", columns, **WAITS | {"unseen_syns": ["k6-1"]})
    assert found == [(1, 40, 0, 0, 10, 30), (2, 0, 0, 60, 0, 0), (3, 0, 40, 0, 0, 0), (4, 0, 50, 0, 0, 0)]


@pytest.mark.parametrize(
    ("changes", "lost_us"),
    [
        ({"up_first_time_us": 160}, 60),
        ({"connect_first_syn_us": 160}, 60),
        ({"up_first_time_us": 160, "line_instance": "haproxy"}, 0),
        ({"up_first_time_us": 160, "try_reused": True}, 0),
        ({"up_first_time_us": 110}, 0),
        # It waited in the proxy before that connected; or for a dial, which the proxy began late.
        ({"up_first_time_us": 160, "try_connect_us": 10}, 0),
        ({"up_first_time_us": 160, "up_answered_us": 165, "try_dial_time_us": 150}, 0),
        ({"up_first_time_us": 160, "up_answered_us": 165, "try_dial_time_us": 110}, 55),
        ({}, 0),
    ],
)
def test_a_proxy_s_syn_that_came_late_was_lost_if_its_kernel_sent_more_than_were_captured(
    tables: Tables, changes: Row, lost_us: int
) -> None:
    given = {"line_instance": "nginx", "try_start_us": 100, "try_connect_us": 60}
    tables.given("cases", **{**SLOW, **given, **changes})
    tables.given("served", "id", (1,), instance="k6-1")
    assert tables.made("waits", "up_lost_us", **WAITS | {"unseen_syns": ["nginx"]}) == [(lost_us,)]


@pytest.mark.parametrize(
    ("changes", "waited_us"),
    [
        ({}, 50),
        ({"up_queued_us": 120, "up_accepted_after_us": 150}, 20),
        ({"try_reused": True}, 0),
        ({"up_client_hello_time_us": 50, "up_tls_end_time_us": 90}, 0),  # made for a request before
        ({"up_tls_end_time_us": None}, 0),
    ],
)
def test_a_proxy_s_tls_handshake_is_a_wait_without_the_accept_queue(
    tables: Tables, changes: Row, waited_us: int
) -> None:
    tables.given("cases", **{**SLOW, "up_client_hello_time_us": 120, "up_tls_end_time_us": 170, **changes})
    tables.given("served", "id", (1,), instance="k6-1")
    assert tables.made("waits", "tls_wait_us, up_tls_wait_us", **WAITS) == [(0, waited_us)]


def test_a_request_of_http_2_waited_for_a_handshake_a_stream_or_another_connection(tables: Tables) -> None:
    shared = {"protocol": "http2", "blocked_us": 60, "dial_duration_us": 10}
    tables.given("cases", **SLOW, **shared, reused=True, dial_time_us=110)
    tables.given("cases", **(SLOW | {"id": 2}), **shared, reused=True, dial_time_us=10)
    tables.given("cases", **(SLOW | {"id": 3}), **shared, reused=False, tls_us=30, dial_time_us=110)
    tables.given("served", "id", (1,), (2,), (3,), instance="k6-1")
    tables.given("resent", instance="k6-1", id=3, why="goaway", again_us=50)
    columns = "id, tls_wait_us, stream_us, goaway_us, refused_us, pool_us"
    found = tables.made("waits", columns, **WAITS)
    assert found == [(1, 40, 0, 0, 0, 0), (2, 0, 60, 0, 0, 0), (3, 0, 0, 50, 0, 0)]


@pytest.mark.parametrize(
    ("idle_us", "found"),
    [
        ((100, 101, 102, 103, 104), [("s-1", 5, 100, 104, 100)]),
        # Right after an answer; too few; a worker's end closes at any time.
        ((1, 1, 1, 1, 100), []),
        ((100, 101, 102, 103), []),
        ((20, 40, 100, 101, 102), []),
    ],
)
def test_how_long_a_server_keeps_connections_is_measured_where_its_closes_agree(
    tables: Tables, idle_us: tuple[int, ...], found: list[tuple[object, ...]]
) -> None:
    rows = [(number, 1000 + each) for number, each in enumerate(idle_us)]
    answered = {"client_last_data_time_us": 900, "server_last_data_time_us": 1000}
    always = {"to_instance": "s-1", "established": True, "closed_by": "server", **answered}
    tables.given("connections", "id server_fin_time_us", *rows, **always)
    assert tables.made("idle_closes", idle_us=10, closes=5, slack_us=0) == found


@pytest.mark.parametrize(("gone_us", "found"), [(1200, []), (1090, [("s-1", 5, 100, 104, 100)])])
def test_what_ended_with_a_process_was_not_closed_for_being_idle(
    tables: Tables, gone_us: int, found: list[tuple[object, ...]]
) -> None:
    answered = {"client_last_data_time_us": 900, "server_last_data_time_us": 1000}
    always = {"to_instance": "s-1", "established": True, "closed_by": "server", **answered}
    tables.given("connections", "id server_fin_time_us", *((n, 1100 + n) for n in range(5)), **always)
    tables.given("ended_processes", instance="s-1", pid=7, seen_us=1000, gone_us=gone_us)
    assert tables.made("idle_closes", idle_us=10, closes=5, slack_us=0) == found


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize(("over_us", "found"), [(1080, []), (990, [("s-1", 5, 80, 80, 80)])])
def test_a_connection_with_a_request_under_way_was_not_idle_when_it_was_closed(
    tables: Tables, *, proxied: bool, over_us: int, found: list[tuple[object, ...]]
) -> None:
    """A proxy ends a stream by its own timer; that is no idle time of the server's, nor of the proxy's."""
    answered = {"client_last_data_time_us": 900, "server_last_data_time_us": 1000, "server_fin_time_us": 1080}
    always = {"to_instance": "s-1", "established": True, "closed_by": "server", "observer": "s-1", **answered}
    tables.given("connections", "id", *((number,) for number in range(5)), **always)
    ids = [(number, number) for number in range(5)]
    if proxied:
        tables.given("try_links", "line flow", *ids, **{"instance": "nginx", "observer": "s-1", "try": 1})
        times = {"start_us": 850, "response_us": over_us - 850}
        tables.given("tries", "line", *((number,) for number in range(5)), **{"instance": "nginx", "try": 1}, **times)
    else:
        tables.given("dial_links", "dial flow", *ids, instance="k6-1", observer="s-1")
        tables.given(
            "requests", "dial", *((number,) for number in range(5)), instance="k6-1", time_us=850, end_us=over_us
        )
    assert tables.made("idle_closes", idle_us=10, closes=5, slack_us=0) == found


def test_a_request_is_near_a_race_where_its_connection_had_been_idle_nearly_as_long_as_the_server_keeps_one(
    tables: Tables,
) -> None:
    tables.given("idle_closes", instance="s-1", low_us=1000, high_us=1100, kept_us=1000, closes=5)
    on_a = {"flow_to_instance": "s-1", "flow_observer": "s-1", "blocked_us": 0, "outcome": "ok"}
    # Idle for 900, 950 and 2,000; the last one failed.
    times = [(1, 0, 100), (2, 1000, 1100), (3, 2050, 2100)]
    tables.given("cases", "id time_us end_us", *times, **on_a, flow_id=7)
    tables.given("cases", id=4, time_us=4100, end_us=4200, **(on_a | {"outcome": "failed"}), flow_id=7)
    behind = {"up_to_instance": "s-1", "up_observer": "s-1", "up_id": 9, "outcome": "ok", "try_response_us": 10}
    tables.given("cases", "id try_start_us", (5, 0), (6, 3000), **behind)
    tables.given("cases", id=7, time_us=1050, end_us=1060, **on_a, flow_id=8)
    assert tables.made("kept_by", instance="s-1", near_us=50) == [(1000, 1100, 2)]
    assert tables.made("kept_by", instance="s-2", near_us=50) == []


def test_a_process_ended_between_the_reading_that_had_it_and_the_next(tables: Tables) -> None:
    readings = [(10, 7, "gunicorn"), (10, 8, "gunicorn"), (20, 7, "gunicorn"), (30, None, None)]
    tables.given("server_processes", "time_us pid comm", *readings, instance="s-1")
    # The server says so of one that no reading has, twice, and of one that was read.
    tables.given("told_endings", "line time_us pid", (1, 12, 9), (2, 15, 9), (3, 20, 8), instance="s-1")
    columns = "pid, line, seen_us, gone_us"
    assert tables.made("ended_processes", columns) == [(7, None, 20, 30), (8, None, 10, 20), (9, 1, 12, 1_000_012)]


def test_full_processes_are_told_from_the_reading_before_to_the_one_after(tables: Tables) -> None:
    rows = [(10, None, None, None), (10, 7, 8, 8), (20, None, None, None), (20, 7, 5, 8), (20, 9, 9, None),
            (30, None, None, None)]  # fmt: skip
    tables.given("server_processes", "time_us pid open_files open_files_limit", *rows, instance="s-1", comm="s")
    assert tables.made("full_processes", "from_us, to_us, pid, files") == [(10, 20, 7, 8)]


def test_turned_away_are_those_that_came_beside_as_many_as_a_server_ever_takes(tables: Tables) -> None:
    columns = (
        "id queued_us server_first_data_time_us server_fin_time_us client_fin_time_us first_rst_by first_rst_time_us"
    )
    rows = [
        (1, 10, 11, 60, None, None, None), (2, 20, 21, None, None, None, None),  # two places
        (3, 30, None, 31, 32, None, None), (4, 40, None, None, None, "server", 42),
        (5, 62, None, 64, 66, None, None),  # 1 was not closed yet, as the server sees it
        (6, 70, 71, None, None, None, None),
        (7, 80, None, 95, None, None, None),  # not at once
        (8, 81, None, 83, 82, None, None), (9, 84, None, None, None, "client", 85),  # the client left first
    ]  # fmt: skip
    tables.given("arriving_flows", columns, *rows, observer="s-1", to_instance="s-1", established=True)
    bounds = {"at_once_us": 10, "lag_us": 5}
    chosen = "id, held, taken, comm, files"
    assert tables.made("turned_away", chosen, refusals=3, **bounds) == [
        (3, 2, 2, None, None), (4, 2, 2, None, None), (5, 2, 2, None, None),
    ]  # fmt: skip
    # Too few to tell by packets; a process without a file to spare tells of one.
    tables.given("full_processes", "instance from_us to_us pid comm files", ("s-1", 35, 45, 7, "s", 8))
    tables.database.execute("DROP TABLE turned_away")
    assert tables.made("turned_away", chosen, refusals=4, **bounds) == [(4, 2, None, "s", 8)]


def test_servers_without_room_are_told_with_what_they_ran_out_of(tables: Tables) -> None:
    tables.given("turned_away", "id held taken comm files", (1, 3, None, "s", 8), (2, 2, 2, None, None), instance="s-1")
    tables.given("instances", "instance role", ("s-1", "s"))
    assert tables.named("servers_without_room") == {
        "role": "s", "instance": "s-1", "connections": 2, "held": 2, "taken": 2, "process": "s", "files": 8,
    }  # fmt: skip


def test_others_are_clients_that_are_not_on_the_path(tables: Tables) -> None:
    columns = "from_instance client_address server_address established:BOOLEAN"
    rows = [(None, "9", "1", True), ("k6-1", "2", "1", True), (None, "1", "1", True), (None, "9", "1", False)]
    tables.given("flows", columns, *rows, to_instance="shop-1")
    dropped = [(None, 2, 1), (None, 0, 0), ("k6-1", 5, 5)]
    tables.given("arriving_flows", "from_instance syns_lost ack_dropped_max", *dropped, to_instance="shop-1")
    assert tables.made("others_to", instance="shop-1") == [(1, 3)]


def test_known_has_the_greatest_part_and_their_sum_for_what_failed_or_was_slow(tables: Tables) -> None:
    tables.given("cases", "id outcome", (1, "slow"), (2, "ok"), **without(SLOW, "id", "outcome"))
    parts = (
        "pool",
        "syn",
        "lost",
        "ack",
        "queue",
        "up_pool",
        "up_syn",
        "up_lost",
        "up_ack",
        "up_queue",
        "thread",
        "server",
        "handler",
        "tls_wait",
        "up_tls_wait",
        "stream",
        "goaway",
        "refused",
        "unanswered",
    )
    zero = {f"{part}_us": 0 for part in (*parts, "lag", "retry", "pause", "throttled", "starved")}
    tables.given("waits", instance="k6-1", id=1, **(zero | {"syn_us": 40, "lag_us": 10}))
    given = {"bound_us": 50, "idle_percent_min": 5, "captured": True, "proxied": False, "keep_alive_us": None}
    given |= {"relayed": False}
    given |= {"ending_us": 0, "slack_us": 0, "captured_behind": True}
    columns = "id, part_max_us, parts_us, bound_us, torn"
    found = tables.made("known", columns, **given, apart_us=0, whole_until_us=150)
    assert found == [(1, 40, 50, 50, True)]


def test_a_socket_waits_until_its_time_is_over_or_another_takes_its_place(tables: Tables) -> None:
    ended = {**MADE, "time_wait_owner": "client", "client_rst_count": 0, "server_rst_count": 0}
    rows = [(n, us, us - 1, us) for n, us in enumerate((10, 900, 950, 995), start=1)]
    tables.given("connections", "id last_time_us client_fin_time_us server_fin_time_us", *rows, **ended)
    tables.given("connections", **MADE, id=9, reused_port_of=3, first_time_us=960)
    bounds = {"tick_us": 1000, "slack_us": 10, "short_us": 500, "long_us": 520, "overflow_us": None}
    # Sure is the second; the fourth ended too near to the tick. The first was over, the third has been replaced.
    assert tables.made("time_wait", **bounds, instance="k6-1") == [(1, 2, 0)]
    # Of those without an owner, this one sent its FIN and may hold it; the server's side of it sent none.
    tables.given("connections", **(ended | {"time_wait_owner": None}), id=10, last_time_us=950, client_fin_time_us=940)
    assert tables.made("time_wait", **bounds, instance="k6-1") == [(1, 3, 0)]
    # Both sent their FINs at once, and its RST came before or after the socket was in TIME_WAIT.
    at_once = {"time_wait_owner": "none", "simultaneous_close": True, "client_rst_count": 1, "first_rst_by": "client"}
    tables.given("connections", **(ended | at_once), id=11, last_time_us=950, client_fin_time_us=940)
    assert tables.made("time_wait", **bounds, instance="k6-1") == [(1, 4, 0)]
    # The server closed first, and the client's FIN came behind data; the other client had nothing left to send.
    second = {
        "time_wait_owner": "server",
        "first_fin_by": "server",
        "server_fin_time_us": 930,
        "client_fin_time_us": 940,
    }
    for number, sent_us in ((12, 935), (13, 920)):
        tables.given("connections", **(ended | second), id=number, last_time_us=950, client_last_data_time_us=sent_us)
    assert tables.made("time_wait", **bounds, instance="k6-1") == [(1, 5, 0)]


def test_connections_that_a_client_gave_up_while_others_asked(tables: Tables, tmp_path: Path) -> None:
    columns = "established closed_by close_kind syn_times_us first_time_us client_fin_time_us server_last_data_time_us"
    asks = (False, None, None, [10, 90], 10, None, None)
    kept = [(True, "client", "fin", [20], 20, *each) for each in ((50, 40), (95, 40), (50, 25))]
    path = written(tables, tmp_path, columns, asks, *kept, client_address="c", client_last_data_time_us=30)
    assert tables.made("given_up", path=path, start_us=0, clients=["c"]) == [(1,)]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_of_several_pairs_that_came_together_the_same_is_named(
    tables: Tables, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Three queues become full at one moment, each with users beside its last place."""
    rows: list[tuple[Any, ...]] = []
    for number in order:
        rows += [(10 * number + nth, number, 10, 20, [10], 1) for nth in order]
        rows += [(100 + number, number, 15, 25, [15], 1), (200, number, 30, None, [30], 0)]
    columns = "client_port server_port first_time_us handshake_ack_time_us syn_times_us synack_count"
    path = written(tables, tmp_path, columns, *rows, client_address="c", server_address="s")
    found = tables.made("taken_together", path=path, start_us=0, addresses=["s"], clients=["c"])
    assert found == [("c", 101, "c", 11)]


# What the files about arrivals read of each connection.
ARRIVED = """client_port server_address first_time_us handshake_ack_time_us synack_count syn_times_us
    server_fin_time_us:BIGINT first_rst_time_us:BIGINT"""


def test_acks_refused_finds_a_handshake_that_the_server_answered_again(tables: Tables, tmp_path: Path) -> None:
    rows = [
        (1, "s", 0, 20, 1, [0], None, None),
        (2, "s", 0, 30, 2, [0], None, None),
        (3, "s", 0, 25, 2, [0, 10], None, None),
        (4, "s", 0, None, 3, [0], None, None),
        (5, "other", 0, 10, 2, [0], None, None),
        (6, "s", -5, 10, 2, [-5], None, None),
        (7, "s", 0, 40, 3, [0, 50], None, None),
    ]
    path = written(tables, tmp_path, ARRIVED, *rows, client_address="c")
    assert tables.made("acks_refused", path=path, start_us=0, addresses=["s"], clients=["c"]) == [("c", 2, 2)]


@pytest.mark.parametrize(("capacity", "soon_us", "found"), [(3, 9, [("c", 4, 2)]), (3, 15, [("c", 4, 2)]), (2, 9, [])])
def test_refused_early_finds_the_first_syn_that_met_a_full_queue_of_a_server_with_places(
    tables: Tables, tmp_path: Path, capacity: int, soon_us: int, found: list[Any]
) -> None:
    rows = [
        (1, "s", 0, 5, 1, [0], None, None),
        (2, "s", 10, 15, 1, [10], 18, None),
        (3, "s", 12, 16, 1, [12], None, 19),
        (4, "s", 20, 35, 1, [20, 30], None, None),
        (5, "s", 25, None, 0, [25], None, None),
        (6, "s", 2, None, 0, [2], None, 3),
        (7, "other", 1, None, 0, [1], None, None),
        (8, "s", -5, None, 0, [-5], None, None),
        (9, "s", -5, -4, 1, [-5], None, None),
    ]
    asked = {
        "path": written(tables, tmp_path, ARRIVED, *rows, client_address="c"),
        "addresses": ["s"],
        "clients": ["c"],
    }
    assert tables.made("refused_early", **asked, start_us=0, capacity=capacity, soon_us=soon_us) == found


@pytest.mark.parametrize(("start_us", "capacity", "found"), [(0, 2, [("c", 5, 3)]), (31, 2, []), (0, 3, [])])
def test_held_too_many_finds_the_first_connection_that_a_server_has_no_place_for(
    tables: Tables, tmp_path: Path, start_us: int, capacity: int, found: list[Any]
) -> None:
    rows = [
        (1, "s", -6, -5, 1, [-6], 20, None, 80),
        (2, "s", 9, 10, 1, [9], None, None, 80),
        # As the first closes; and beside one whose ACK the queue had no room for.
        (3, "s", 19, 20, 1, [19], None, 40, 80),
        (4, "s", 24, 25, 2, [24], None, None, 80),
        (5, "s", 29, 30, 1, [29], 35, None, 80),
        (6, "s", 44, 45, 1, [44], None, None, 80),
        (7, "s", 46, None, 0, [46], None, None, 80),
        (8, "s", 29, 31, 1, [29], None, None, 81),
        (9, "other", 29, 32, 1, [29], None, None, 80),
    ]
    path = written(tables, tmp_path, f"{ARRIVED} server_port", *rows, client_address="c")
    asked = {"path": path, "addresses": ["s"], "clients": ["c"], "start_us": start_us, "capacity": capacity}
    assert tables.made("held_too_many", **asked) == found


@pytest.mark.parametrize(("timeout_us", "found"), [(1_000_000, [("c", 3, 1000.0)]), (2_000_000, [])])
def test_gave_up_late_finds_a_syn_after_the_time_out_that_nobody_had_answered(
    tables: Tables, tmp_path: Path, timeout_us: int, found: list[Any]
) -> None:
    rows = [
        (1, "s", 0, 0, [0, 900_000]),
        (2, "s", 10, 1, [10, 2_000_000]),
        (3, "s", 20, 0, [20, 500_000, 1_000_020]),
        (4, "s", 30, 0, [30, 1_500_030]),
        (5, "other", 0, 0, [0, 1_000_001]),
        (6, "s", -5, 0, [-5, 1_000_001]),
    ]
    columns = "client_port server_address first_time_us synack_count syn_times_us"
    asked = {
        "path": written(tables, tmp_path, columns, *rows, client_address="c"),
        "addresses": ["s"],
        "clients": ["c"],
    }
    assert tables.made("gave_up_late", **asked, start_us=0, connect_timeout_us=timeout_us) == found


def test_requests_file_has_each_request_with_its_cause_and_its_waits(tables: Tables) -> None:
    tables.given("cases", "id outcome", (2, "ok"), (1, None), instance="k6-1")
    tables.given("attributed", instance="k6-1", id=1, cause="slow-handler")
    tables.given("waits", instance="k6-1", id=2, handler_us=7)
    asked = [(row[1], row[23], row[24], row[-6]) for row in tables.made("requests_file")]
    assert asked == [(1, None, "slow-handler", None), (2, "ok", None, 7)]


def test_ledger_names_counts_what_became_of_the_requests_of_each_name_and_group(tables: Tables) -> None:
    pay = [(1, "failed", 9000, "::buy"), (2, "slow", 3000, "::buy"), (3, "ok", 1000, "::buy"), (4, "ok", 1000, None)]
    tables.given("cases", "id outcome total_us group", *pay, instance="k6-1", name="pay")
    tables.given("cases", "id name", (5, "home"), (6, "home"), instance="k6-1", outcome="ok", total_us=5000)
    tables.given("attributed", "id cause", (1, "refused"), (2, "slow-handler"), instance="k6-1")
    assert tables.made("ledger_names", most=2) == [
        ("pay", "::buy", 3, 1, 1, 2.0, 2.9, {"refused": 1, "slow-handler": 1}),
        ("home", "", 2, 0, 0, 5.0, 5.0, None),
    ]


def test_flows_file_has_each_connection_with_what_the_joins_know(tables: Tables) -> None:
    tables.given("flows", "id", (2,), (1,), observer="nginx")
    tables.given("connections", observer="nginx", id=1, hop=1, syns_lost=4)
    tables.given("accepted", observer="nginx", id=2, accepted_after_us=5)
    names = [column[0] for column in tables.database.execute("DESCRIBE flows").fetchall()]
    first, second = tables.made("flows_file")
    assert [row[names.index("id")] for row in (first, second)] == [1, 2]
    assert (first[len(names)], first[len(names) + 4]) == (1, 4)
    assert second[-2] == 5


def test_outcomes_count_the_requests(tables: Tables) -> None:
    tables.given("cases", "id outcome", (1, "slow"), (2, "failed"), (3, "failed"), instance="k6-1")
    assert tables.made("outcomes") == [(2, 1, 0)]


def test_causes_count_those_that_failed_apart_from_those_that_were_slow(tables: Tables) -> None:
    assert tables.made("causes") == [({}, {}, {})]
    # An id is one instance's.
    outcomes = [("k6-1", 1, "slow"), ("k6-1", 2, "slow"), ("k6-1", 3, "failed"), ("k6-1", 4, "failed")]
    tables.given("cases", "instance id outcome", *outcomes, ("k6-2", 1, "failed"))
    tables.given("attributed", "id cause", (1, "b"), (2, "b"), (3, "b"), (4, "a"), instance="k6-1")
    (found,) = tables.made("causes")
    assert found == ({"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 3})
    assert list(found[2]) == ["a", "b"]


def test_unexplained_requests_are_the_first_of_their_cause(tables: Tables) -> None:
    causes = {3: "unexplained", 1: "refused", 2: "unexplained", 9: "unexplained"}
    tables.given("cases", "id", *((number,) for number in causes), **without(SLOW, "id"))
    rows = [(number, cause, f"why {number}") for number, cause in causes.items()]
    tables.given("attributed", "id cause evidence", *rows, instance="k6-1")
    found = tables.made("unexplained_requests", cause="unexplained", most=2)
    assert found == [("slow", "why 2", "k6-1/2"), ("slow", "why 3", "k6-1/3")]


def test_the_tries_of_a_line_have_the_connections_that_are_known(tables: Tables) -> None:
    key = {"instance": "nginx", "line": 9}
    tables.given("tries", "instance line try", ("nginx", 9, 2), ("nginx", 9, 1), ("nginx", 8, 1), ("haproxy", 9, 1))
    tables.given("try_links", "try", (2,), **key, observer="backend-1", flow=7, how="dial")
    found = tables.made("tries_of_line", **key)
    assert [row[-3:] for row in found] == [(None, None, None), ("backend-1", 7, "dial")]


def test_the_errors_of_a_request_are_its_connection_s_in_its_time_by_whole_seconds(tables: Tables) -> None:
    rows = [
        (1, 3_999_999, "nginx", 3), (4, 6_000_000, "nginx", 3), (3, 4_000_000, "nginx", 3), (5, 6_000_001, "nginx", 3),
        (6, 5_000_000, "nginx", 4), (7, 5_000_000, "haproxy", 3),
    ]  # fmt: skip
    tables.given("errors", "line time_us instance connection", *rows)
    asked = {"instance": "nginx", "connection": 3, "start_us": 5_000_000, "end_us": 6_000_000}
    assert [row[1] for row in tables.made("errors_of_request", **asked)] == [3, 4]


def test_a_connection_is_found_in_every_capture_its_own_first(tables: Tables) -> None:
    rows = [("nginx", 1, 7, "c", 1000, "s", 80), ("backend-1", 2, 7, "c", 1000, "s", 80)]
    # The same addresses and ports again, and each of them another.
    others = [
        ("backend-1", 3, 8, "c", 1000, "s", 80), ("nginx", 4, 7, "c", 2, "s", 80), ("nginx", 5, 7, "c", 1000, "s", 2),
        ("nginx", 6, 7, "x", 1000, "s", 80), ("nginx", 7, 7, "c", 1000, "x", 80),
    ]  # fmt: skip
    tables.given("flows", f"observer id client_isn {' '.join(ENDS)}", *rows, *others)
    found = tables.made("captures_of_flow", observer="nginx", id=1)
    names = [column[0] for column in tables.database.execute("DESCRIBE flows").fetchall()]
    assert [row[names.index("id")] for row in found] == [1, 2]


def test_a_connection_whose_begin_no_capture_has_is_the_same_without_its_isn(tables: Tables) -> None:
    tables.given("flows", "observer id", ("nginx", 1), ("backend-1", 2), **ENDS)
    assert len(tables.made("captures_of_flow", observer="nginx", id=1)) == 2


def test_unsampled_are_connections_of_the_window(tables: Tables) -> None:
    in_window = enumerate((True, True, False, True))
    tables.given("connections", "id in_window", *in_window, observer="nginx")
    tables.given("syn_drop_proof", "id syns_unsampled", *enumerate((2, 0, 1, 1)), observer="nginx")
    assert tables.made("unsampled") == [(2,)]


def test_without_port_counts_a_role_s_dials_and_those_while_the_range_was_in_use(tables: Tables) -> None:
    tables.given("instances", "instance role", ("k6-1", "k6"), ("gateway", "gateway"))
    tables.given("port_shortages", "instance held", ("k6-1", 3), ("k6-1", 2), ("k6-1", 1), ("gateway", 9), ports=2)
    assert tables.made("without_port", role="k6") == [(3, 2)]


def test_derived_causes_are_of_requests_that_have_one(tables: Tables, tmp_path: Path) -> None:
    path = written(tables, tmp_path, "id evidence cause", (1, "why", "refused"), (2, None, None), instance="k6-1")
    assert tables.made("derived_causes", path=path) == [("k6-1", 1, "refused", "why")]


def test_beside_a_request_are_those_that_its_connection_carried_as_it_was_sent(tables: Tables) -> None:
    asked = [(1, 0, 40), (2, 5, 10), (3, 0, 20), (4, 30, 50)]
    tables.given("requests", "id time_us end_us", *asked, instance="k6-1", dial=5, remote="s:80", blocked_us=0)
    assert tables.made("beside_request", instance="k6-1", dial=5, id=2, sent_us=10) == [(2,)]


def test_the_next_request_over_a_connection_begins_after_this_one(tables: Tables) -> None:
    here = [(2, 100, 5), (1, 100, 5), (9, 300, 5), (3, 200, 5), (4, 150, 6)]
    tables.given("requests", "id time_us dial", *here, instance="k6-1")
    tables.given("requests", instance="k6-2", id=5, time_us=150, dial=5)
    for number, time_us, found in ((2, 100, 200), (1, 100, 100), (9, 300, None)):
        assert tables.made("next_request", instance="k6-1", dial=5, time_us=time_us, id=number) == [(found,)]


def test_ids_of_each_instance_and_the_lower_of_two_that_are_as_near(tables: Tables) -> None:
    tables.given("requests", "instance id", ("k6-2", 7), ("k6-1", 8), ("k6-1", 2), ("k6-1", 4))
    assert tables.made("ids", number=3) == [("k6-1", 2, 8, 2), ("k6-2", 7, 7, 7)]


TOOK = [(0, "ok", 9), (1, "slow", 7), (2, "failed", 1), (3, "failed", 5), (4, "ok", 9), (5, "failed", 99)]


def test_the_worst_failed_and_then_took_longest(tables: Tables) -> None:
    tables.given("cases", "id outcome total_us", *TOOK, instance="k6-1")
    assert [number for _, number in tables.made("worst", number=5)] == [5, 3, 2, 0, 4]


def test_the_slowest_is_the_first_of_those_that_took_longest_and_succeeded(tables: Tables) -> None:
    tables.given("cases", "id outcome total_us", *TOOK, instance="k6-1")
    assert tables.made("slowest") == [("k6-1", 0, None)]
    tables.given("attributed", instance="k6-1", id=0, cause="slow-handler")
    assert tables.made("slowest") == [("k6-1", 0, "slow-handler")]


def test_the_typical_request_of_a_cause_took_as_long_as_half_of_those_whose_packets_are_known(tables: Tables) -> None:
    failed = [(1, 1, None), (2, 5, 7), (3, 4, 8), (4, 3, 9), (5, 2, 6), (8, 0, 1)]
    tables.given("cases", "id total_us flow_id", *failed, instance="k6-1", outcome="failed")
    tables.given("cases", **(SLOW | {"id": 9}), flow_id=1)
    causes = [(number, "refused") for number in (1, 2, 3, 4, 5, 9)]
    tables.given("attributed", "id cause", *causes, (8, "reset"), instance="k6-1")
    assert tables.made("typical", outcome="failed", cause="refused") == [("k6-1", 4, 5)]


def test_the_typical_good_request_had_to_connect_with_packets_or_without(tables: Tables) -> None:
    rows = [(1, 1, True), (2, 2, False), (3, 3, False), (4, 4, False)]
    tables.given("cases", "id total_us reused", *rows, instance="k6-1", outcome="ok")
    assert tables.made("typical", outcome="ok", cause=None) == [("k6-1", 3, 3)]


def test_the_connections_to_a_server_are_counted_by_what_became_of_them(tables: Tables) -> None:
    plain = {
        **MADE, "in_window": True, "answered": True, "established": True, "refused": False, "entered": True,
        "syn_count": 1, "syns_lost": 0, "syn_retransmissions": 0, "answered_us": 1, "synack_count": 1,
        "perhaps_unknown": False, "ack_dropped_min": 0, "ack_dropped_max": 0, "dropped_late": 0,
        "gave_up_us": None,
        "client_retransmissions": 0, "server_retransmissions": 0, "handshake_us": 5, "queued_late": False,
        "aborted": False, "close_kind": "fin",
    }  # fmt: skip
    never = {"answered": False, "established": False, "entered": False, "answered_us": None, "handshake_us": None}
    rows: list[Row] = [
        {
            "closed_by": "client",
            "first_rst_by": "client",
            "ack_dropped_min": 1,
            "ack_dropped_max": 2,
            "dropped_late": 1,
        },
        {"syns_lost": 2, "syn_count": 3, "syn_retransmissions": 2, "closed_by": "server", "first_rst_by": "server"},
        {**never, "refused": True, "synack_count": 0, "first_rst_by": "server"},
        {**never, "syns_lost": 4, "syn_count": 4, "synack_count": 0},
        {"established": False, "synack_count": 3, "reused_port_of": 1, "perhaps_unknown": True},
        {"client_retransmissions": 5, "server_retransmissions": 6, "closed_by": "client"},
        {"handshake_ack_time_us": 10, "client_first_data_time_us": 59},
        {"handshake_ack_time_us": 10, "client_first_data_time_us": 60},
        {"queued_late": True, "gave_up_us": 9},
        {"entered": False, "close_kind": "none"},
        {"entered": False},
        {"in_window": False},
        {"to_instance": "backend-1"},
    ]
    for number, row in enumerate(rows):
        tables.given("connections", **(plain | row), id=number)
    assert tables.named("connections_to", instance="nginx") == {
        "total": 11, "established": 8, "refused": 1, "unanswered": 1, "half_open": 1, "recovered": 1, "syns": 16,
        "syn_unanswered": 6, "syn_recovered": 2, "syn_failed": 4, "syn_retransmissions": 2, "synack_retransmissions": 2,
        "entered": 6, "perhaps_entered": 2, "made_at_once": 1,
        "perhaps_unknown": 1, "ack_dropped_min": 1, "ack_dropped_max": 2, "dropped_late": 1, "in_vain": 1,
        "closed_by_client": 2, "closed_by_server": 1, "reset_by_client": 1, "reset_by_server": 2,
        "retransmissions": 11, "port_reuses": 1,
    }  # fmt: skip
    found = tables.made("of_each_connection", instance="nginx")
    assert found == [(5, None), (5, None), (None, None), (None, 4), *[(5, None)] * 7]


def test_told_by_kernels_counts_connections_that_differ_from_their_packets(tables: Tables) -> None:
    plain: Row = MADE | {
        "in_window": True, "syn_retransmissions": 0, "synack_count": 1, "client_rst_count": 0, "server_rst_count": 0,
    }  # fmt: skip
    rows: list[Row] = [
        {"first_time_us": 10_000, "syn_retransmissions": 1},
        {"first_time_us": 90_000, "syn_retransmissions": 1},  # of the same ports; its kernel says nothing
        {"first_time_us": 10_000, "client_port": 1001, "synack_count": 2},  # two were told
        {"first_time_us": 10_000, "client_port": 1002, "client_rst_count": 1, "server_rst_count": 1},
        {"first_time_us": 10_000, "client_port": 1003, "server_rst_count": 1},  # another namespace told it
        {"first_time_us": 10_000, "client_port": 1004, "in_window": False, "server_rst_count": 1},
    ]
    for number, row in enumerate(rows):
        tables.given("connections", **(plain | row), id=number)
    client, server = ("k6-1", "c", "s", 80), ("nginx", "s", "c", 80)
    told = [(*client, 1000, "retransmitted", "S", 50_000), (*client, 1000, "retransmitted", "PA", 50_000)]
    told += [(*client, 1002, "reset_sent", "", 50_000)]
    for instance, local, peer, port, other, kind, flags, time_us in told:
        tables.given(
            "kernel_events", instance=instance, local=local, local_port=other, peer=peer, peer_port=port,
            kind=kind, flags=flags, time_us=time_us,
        )  # fmt: skip
    answered = [(1001, "synack_retransmitted"), (1001, "synack_retransmitted"), (1002, "reset_sent")]
    for instance, port, kind in [*((server[0], *each) for each in answered), ("another", 1003, "reset_sent")]:
        tables.given(
            "kernel_events", instance=instance, local="s", local_port=80, peer="c", peer_port=port, kind=kind,
            time_us=50_000,
        )  # fmt: skip
    counted = tables.named("told_by_kernels", instance="nginx", slack_us=5)
    assert counted == {"syns": 1, "synacks": 1, "resets": 1, "accepts": 0}


def test_a_connection_that_no_try_used_is_a_check(tables: Tables) -> None:
    rows = [(1, True, True), (2, True, True), (3, False, True), (4, True, False)]
    tables.given("connections", "id in_window established", *rows, **MADE)
    tables.given("try_links", "observer flow", (MADE["observer"], 2), ("another", 1))
    assert tables.made("checks_to", instance="nginx") == [(1,)]


def test_a_request_that_the_server_closed_upon_and_that_did_not_fail_was_sent_again(tables: Tables) -> None:
    columns = "id closed_by first_rst_by client_last_data_time_us"
    # Closed upon the request; failed for it; answered before; reset; closed by the client; before the request was sent;
    # closed right behind an answer, which came before the whole request; and one that may be that of a failed try.
    flows = [(1, "server", None, 9), (2, "server", None, 9), (3, "server", None, 4), (4, None, "server", 9)]
    ends = {"in_window": True, "established": True, "server_last_data_time_us": 5}
    tables.given("connections", columns, *flows, (5, "client", None, 9), (6, "server", None, 4), **MADE, **ends)
    tables.given("connections", columns, (7, "server", None, 9), **MADE, **ends, server_fin_time_us=6)
    tables.given("connections", columns, (8, "server", None, 9), **MADE, **ends)
    tables.given("breaches_in_doubt", observer="nginx", flow=8)
    columns = "id dial status error_code first_dial sent_again protocol"
    again = [(2, 7, 200, 0, 6, 1, None), (3, 8, 200, 0, 3, 1, "http2")]
    tables.given("requests", columns, (1, 2, 0, 1000, None, None, None), *again, instance="k6-1", tls_us=0)
    tables.given("dial_links", "dial flow", (2, 2), (1, 1), (3, 3), (6, 6), instance="k6-1", observer="nginx")
    assert tables.made("resent_to", instance="nginx") == [(3,)]


def test_syns_that_came_to_no_socket_are_those_without_answer_and_without_drop(tables: Tables) -> None:
    columns = "id answered in_window syns_lost observer"
    rows = [(1, False, True, 3, "s"), (2, True, True, 1, "s"), (3, False, True, 1, "s"), (4, False, False, 1, "s"),
            (5, False, True, 1, "s"), (6, True, True, 1, "k6-1"), (7, True, True, 1, "s")]  # fmt: skip
    tables.given("connections", columns, *rows, to_instance="s")
    tables.given("before_socket", "id synacks_again", (1, 0), (3, 1), (4, 0), (5, 0), observer="s", cookies_sent=0)
    proofs = [(1, 3, "s"), (2, 1, "s"), (3, 1, "s"), (4, 1, "s"), (5, 0, "s"), (6, 1, "k6-1"), (7, 0, "s")]
    tables.given("syn_drop_proof", "id syns_not_dropped observer", *proofs)
    assert tables.made("before_socket_of", instance="s") == [(4,)]


def test_tries_after_a_move_are_those_of_the_proxies_at_the_name_s_two_servers(tables: Tables) -> None:
    tables.given("addresses", "address instance", ("a", "backend-1"), ("b", "backend-2"), ("c", "backend-3"))
    rows = [
        ("nginx", 4, "a"),
        ("nginx", 5, "a"),
        ("nginx", 6, "b"),
        ("nginx", 7, "c"),
        ("other", 8, "a"),
        ("nginx", 9, "b"),
    ]
    tables.given("tries", "instance start_us server_address", *rows)
    asked = {"former": "backend-1", "latter": "backend-2", "proxies": ["nginx"], "start": 5}
    assert tables.made("tries_after_move", until=9, **asked) == [(5, True), (6, False)]
    assert tables.made("tries_after_move", until=None, **asked) == [(5, True), (6, False), (9, False)]


def test_no_connection_to_a_server_counts_as_none(tables: Tables) -> None:
    assert set(tables.named("connections_to", instance="nginx").values()) == {0}


def test_what_the_gateway_did_in_the_window_is_that_of_its_instances_alone(tables: Tables) -> None:
    tables.given("instances", "instance role", ("gateway", "gateway"), ("k6-1", "k6"))
    here, outside = ("gateway", 5_000_500), [("k6-1", 5_000_500), ("gateway", 5_000_499), ("gateway", 9_000_001)]
    dials = [(*here, kind) for kind in (None, "refused", "timeout", "timeout")]
    tables.given("dials", "instance time_us error_kind", *dials, *((*each, None) for each in outside))
    closes = [(*here, error) for error in (None, "EOF", "EOF")]
    tables.given("closes", "instance time_us error", *closes, *((*each, None) for each in outside))
    # What the access log has at 5.000 s may have been at 5.0005 s, too.
    uses = [
        ("gateway", 5_000_000, True), ("gateway", 9_000_000, True), ("gateway", 6_000_000, False),
        ("gateway", 4_999_000, True), ("gateway", 9_001_000, True), ("k6-1", 6_000_000, True),
    ]  # fmt: skip
    tables.given("tries", "instance start_us reused", *uses)
    assert tables.named("at_gateway", role="gateway", start_us=5_000_500, end_us=9_000_000) == {
        "dials_total": 4, "dials_failed": 3, "connections_opened": 1, "kinds": {"refused": 1, "timeout": 2},
        "connections_closed": 3, "connections_closed_by_peer": 2, "connections_reused": 2,
    }  # fmt: skip
    assert tables.named("at_gateway", role="gateway", start_us=0, end_us=1)["kinds"] == {}


def test_what_the_proxies_logs_say_of_the_window(tables: Tables) -> None:
    here = [(200, 3, 1), (504, None, 1), (504, 0, 1), (502, None, 2), (502, 4, 1), (None, None, 1)]
    at = {"server_port": 80, "start_us": 5_000_000}
    tables.given("tries", "status connect_us tries try", *((*row, 1) for row in here), **at)
    outside = [(None, 5_000_000), (80, 4_999_000), (80, 9_001_000)]
    tables.given("tries", "server_port start_us tries try", *((*row, 1, 1) for row in outside))
    headers = [("close", 5_000), ("keep-alive", 9_000), ("keep-alive", 5_001), (None, 6_000)]
    late = [("close", 4_999), ("keep-alive", 9_001)]
    tables.given("access", "sent_http_connection time_ms", *headers, *late)
    secured = [(1, "TLSv1.3", "r"), (2, "TLSv1.3", "r"), (1, "TLSv1.2", "."), (1, "", "")]
    tables.given("access", "connection_requests ssl_protocol ssl_session_reused", *secured, time_ms=6_000)
    tables.given("access", "unsent time_ms", (True, 6_000), (False, 6_000), (True, 9_001))
    assert tables.named("at_proxies", start_us=5_000_500, end_us=9_000_000) == {
        "tries_total": 6, "tries_connected": 3, "tries_connect_timeout": 1, "tries_connect_failed": 1,
        "tries_aborted": 1, "tries_retried": 1, "connection_close": 1, "connection_keep_alive": 2,
        "unsent": 1, "tls_connections": 2, "tls_resumed": 1,
    }  # fmt: skip


def test_errors_with_a_number_are_those_of_the_window_by_whole_seconds(tables: Tables) -> None:
    refused, other = "connect() failed (111: Connection refused)", "connect() failed (1111: other)"
    rows = [(5, refused), (9, refused), (6, other), (4, refused), (10, refused)]
    tables.given("errors", "time_us text", *((1_000_000 * second, text) for second, text in rows))
    assert tables.made("errors_with", start_us=5_500_000, end_us=9_000_000, code="111") == [(2,)]


def test_error_numbers_are_those_in_brackets_each_once(tables: Tables) -> None:
    texts = ("(111: refused)", "a (110: timed out) and (104: reset)", "(111: refused)", "no number", "(x: y)", "7: z")
    tables.given("errors", "text", *((text,) for text in texts))
    assert tables.made("error_numbers") == [(110,), (111,)]


def test_requests_of_clients_are_counted_by_what_became_of_them(tables: Tables) -> None:
    first = [(1, 200, 0, 10, 20), (1, 500, 0, 5, 7), (2, 200, 0, 12, 15)]
    tables.given("requests", "vu status error_code time_us end_us", *first, instance="k6-1")
    second = [(1, 200, 0, 9, 9), (0, 0, 1050, 8, 40)]
    by_tls = {"instance": "k6-2", "tls_us": 7, "reused": False, "url": "https://s/"}
    tables.given("requests", "vu status error_code time_us end_us", *second, **by_tls)
    assert tables.named("requests_of_clients") == {
        "total": 5, "ok": 3, "users": 3, "users_failed": 1, "lasted_us": 35, "cut": 0, "handshakes": 2, "over_tls": 2,
        "codes": {0: 4, 1050: 1},
        "statuses": {200: 3, 500: 1},
    }  # fmt: skip


def test_streams_are_counted_by_their_connections(tables: Tables) -> None:
    streams = [(5, 10, 30), (5, 20, 40), (5, 30, 50), (6, 10, 90)]
    always = {"instance": "k6-1", "protocol": "http2", "remote": "s:80", "blocked_us": 0}
    tables.given("requests", "dial time_us end_us", *streams, **always)
    plain = {"instance": "k6-1", "remote": "s:80", "time_us": 1, "end_us": 2, "blocked_us": 0}
    tables.given("requests", "dial url", (7, "https://s/"), (8, "http://s/"), **plain)
    assert tables.named("streams_of_clients") == {
        "connections": 2, "requests": 4, "requests_max": 3, "at_once_max": 2,
    }  # fmt: skip


def test_dials_of_clients_are_counted_by_how_they_failed(tables: Tables) -> None:
    kinds = [(kind, kind) for kind in (None, "timeout", "half-open", "odd")]
    tables.given("dials", "error error_kind", *kinds, instance="k6-1", duration_us=3000)
    tables.given("dials", instance="gateway-1")
    found = tables.named("dials_of_clients", instances=["k6-1"])
    assert found == {"total": 4, "ok": 1, "failed": 2, "kinds": {"timeout": 1, "half-open": 1, "other": 1}}
    # A dial that lasts for 3 ms has sent what is due before.
    asked = {"instances": ["k6-1"], "due_us": [0, 1000, 3000]}
    assert tables.made("syns_of_dials", **asked, kinds=["timeout", "half-open"]) == [(4,)]
    assert tables.made("syns_of_dials", **asked, kinds=["refused"]) == [(0,)]


def test_access_lines_are_counted_by_status_and_time(tables: Tables) -> None:
    tables.given("access", "time_ms status", (5, 200), (5, 404), (10, 404), (11, 404), (4, 404))
    asked = {"start_us": 5500, "end_us": 9500, "low": 400, "high": 499}
    assert tables.made("access_lines", **asked) == [(2, False)]
    tables.given("access", time_ms=0, status=200, resolution_us=1_000_000)
    assert tables.made("access_lines", **asked) == [(2, True)]


def test_lines_begun_are_those_of_an_instance_whose_request_began_in_a_time(tables: Tables) -> None:
    lines = (("nginx", 10, 0.002), ("nginx", 12, None), ("nginx", 20, 0.001), ("haproxy", 10, 0.002))
    tables.given("access", "instance time_ms request_time", *lines)
    assert tables.made("begun", instance="nginx", first_us=8000, last_us=12_000) == [(2,)]


def test_named_requests_are_counted_by_name_or_by_group(tables: Tables) -> None:
    asked = (("pay", "::buy", 200, 10), ("pay", None, 500, 20), ("home", "", 200, 30), (None, "::buy", 200, 40))
    tables.given("requests", "name group status duration_us", *asked, connecting_us=1, tls_us=2, error_code=0)
    assert tables.made("named", parameter="request") == [("home", 1, 0), ("pay", 2, 1)]
    assert tables.made("named", parameter="group") == [("", 1, 0), ("::buy", 2, 0)]


def test_decided_has_the_cause_or_why_clocks_leave_it_open(tables: Tables) -> None:
    tables.given("known", "id apart_us", (1, 10), (2, 20), (3, 30), instance="k6-1")
    parts = {"cause": "if(id < 3, 'reset', NULL)", "doubted": "if(apart_us > 10, cause, NULL)"}
    found = tables.made("decided", "id, cause, doubted", parts, unexplained="unexplained")
    assert found == [(1, "reset", None), (2, "unexplained", "reset"), (3, None, None)]


def test_attributed_tells_the_evidence_and_what_the_lab_did(tables: Tables) -> None:
    tables.given("known", "id acted_says", (1, None), (2, "; the lab had begun"), instance="k6-1")
    tables.given("decided", "id", (1,), (2,), instance="k6-1", cause="reset")
    found = tables.made("attributed", "id, cause, evidence", {"evidence": "CASE cause WHEN 'reset' THEN 'RST' END"})
    assert found == [(1, "reset", "RST"), (2, "reset", "RST; the lab had begun")]


# Events of connections, as analysis.evidence.clocks makes the table.
EVENTS = """machine:VARCHAR side:VARCHAR client:VARCHAR server:VARCHAR isn:BIGINT place:BIGINT places:BIGINT
    what:VARCHAR sender:VARCHAR time_us:BIGINT"""
DIALLED = "id client server place places time_us duration_us error error_kind"


def one_machine(apart: Tables) -> None:
    apart.given("instances", instance="k6-1", machine="one", address="c")
    apart.given("events", EVENTS)


def test_events_captured_are_those_of_one_end_and_whose_packets_they_are(apart: Tables, tmp_path: Path) -> None:
    one_machine(apart)
    columns = """client_port first_packet truncated_start syn_count syn_times_us first_rst_by first_rst_time_us
        client_fin_time_us:BIGINT server_fin_time_us:BIGINT"""
    whole, cut = (1000, 1, False, 2, [1, 2], "server", 9), (1001, 2, True, 1, [1], None, None)
    times = {"synack_times_us": [3], "handshake_ack_time_us": 4, "client_first_data_time_us": 5,
             "server_first_data_time_us": 6, "client_last_data_time_us": 8}  # fmt: skip
    rows = [(*row, None, None) for row in (whole, cut)]
    path = written(apart, tmp_path, columns, *rows, **without(ENDS, "client_port"), client_isn=7, **times)
    found = apart.made("events_captured", "time_us, what, sender", path=path, instance="k6-1", one_of=1)
    # The client's last data may not have come: at the client's end it says nothing.
    assert found == [
        (1, "syn", "client"), (2, "syn 2 of 2", "client"), (3, "answer", "server"), (4, "ack", "client"),
        (5, "client data", "client"), (6, "server data", "server"), (9, "server rst", "server"),
    ]  # fmt: skip
    ends = apart.database.execute("SELECT DISTINCT machine, side, client, server FROM events").fetchall()
    assert ends == [("one", "client", "c 1000", "s 80")]


def test_events_dialled_bound_the_syn_and_the_answer_of_what_was_connected(apart: Tables) -> None:
    one_machine(apart)
    failed = (2, "c 2", "s 80", 1, 1, 20, 5, "late", "timeout")
    apart.given("dialled", DIALLED, (1, "c 1", "s 80", 1, 1, 10, 5, None, None), failed)
    assert apart.made("events_dialled", "client, what, sender, time_us, machine", instance="k6-1") == [
        ("c 1", "answer", "server", 15, "one"),
        ("c 1", "syn", "client", 10, "one"),
        ("c 2", "syn", "client", 20, "one"),
    ]


def test_events_requested_bound_the_data_of_a_connection(apart: Tables) -> None:
    one_machine(apart)
    apart.given("dialled", DIALLED, (1, "c 1", "s 80", 1, 1, 10, 5, None, None))
    apart.given("answered", "dial first_us last_us end_us", (1, 20, 30, 25), (9, 1, 1, 1))
    found = apart.made("events_requested", "what, sender, time_us", instance="k6-1")
    assert found == [("client data", "client", 20), ("last client data", "client", 30), ("server data", "server", 25)]


def test_pairs_are_one_event_at_two_machines_from_sender_to_receiver(apart: Tables) -> None:
    here, there = ("one", "client", "c 1", "s 80"), ("two", "server", "c 1", "s 80")
    apart.given(
        "events", EVENTS,
        (*here, 7, 1, 1, "syn", "client", 10), (*there, 7, 1, 1, "syn", "client", 12),
        (*there, 7, 1, 1, "answer", "server", 13), (*here, None, 1, 1, "answer", "server", 15),
        (*there, 8, 1, 1, "ack", "client", 99), (*here, 7, 1, 1, "ack", "client", 16),
    )  # fmt: skip
    assert sorted(apart.made("pairs")) == [("one", "two", 10, 12), ("two", "one", 13, 15)]


def test_too_late_counts_those_whose_next_syn_was_due_after_the_end(apart: Tables) -> None:
    ticks = [(10, 1, 2, 1), (20, 1, 1, 1), (15, 0, None, None)]
    apart.given("timeline", "time_us ticks listen_depth listen_limit", *ticks, instance="backend")
    failed = {"dial_error_kind": "timeout", "dial_time_us": 1, "flow_observer": "backend"}
    requests = [("full", 29, 1), ("full", 18, 2), ("else", 29, 1)]
    apart.given("requests", "cause dial_duration_us flow_id", *requests, **failed)
    flows = [(1, [2, 9]), (2, [2])]
    here = {"observer": "backend", "to_instance": "backend", "first_time_us": 2, "established": False}
    apart.given("flows", "id syn_times_us", *flows, **here)
    # The second gave up at 19, before there was a free place.
    assert apart.made("too_late", queues=1, cause="full") == [(1, 20, 7, 30, 30)]


def test_queues_are_those_that_held_a_connection_by_steps(apart: Tables) -> None:
    ticks = [("a:80", 1, 0, 0), ("a:80", 2, 50, 3), ("a:80", 3, 100, 1), ("b:80", 1, 50, 0)]
    apart.given("ticks", "instance n time_us depth", *ticks, listeners=1, queue_limit=5)
    assert apart.made("queues", start_us=0, end_us=100, steps=2) == [("a:80", 0, 0, 5), ("a:80", 1, 3, 5)]


def test_listeners_are_counted_from_the_tick_before_the_window_to_the_one_after(apart: Tables) -> None:
    ticks = [
        ("a:80", 1, 0, 0, 3, 10), ("a:80", 2, 10, 0, 5, 20), ("a:80", 3, 20, 2, 6, 25), ("a:80", 4, 30, 1, 9, 27),
        ("a:80", 5, 40, 9, 99, 99), ("b:80", 1, 20, 9, 9, 9),
    ]  # fmt: skip
    columns = "instance n time_us depth listen_drops overflows"
    apart.given("ticks", columns, *ticks, listeners=1, queue_limit=1)
    assert apart.made("listeners", prefix="a:", start_us=15, end_us=25) == [("a:80", 1, 2, 33.33, 4, 7)]


# The columns of a connection in the ledger of what was watched, whose values may be null.
_TIMES = "queued_us in_queue_us answered_us handshake_us first_data_us first_byte_us"


def ledger(apart: Tables, *rows: Row) -> None:
    """Put connections into the ledger of what was watched; the ports tell them apart."""
    plain = {
        "observer": "a", "direction": "in", "to_instance": "a:80", "client_address": "c", "outcome": "ok",
        "cause": None, "syn_count": 1, "time_wait_owner": None, "first_time_us": 0, "last_time_us": 10,
        "in_window": True, "syns_lost": 0, "client_retransmissions": 0, "server_retransmissions": 0,
        "closed_by": None, **dict.fromkeys(_TIMES.split()),
    }  # fmt: skip
    types = [f"{name}:BIGINT" if name in _TIMES.split() else name for name in plain]
    filled = [tuple((plain | row).values()) for row in rows]
    ends = {"server_address": "s", "server_port": 80, "client_isn": 7}
    numbered = [(*row, port, port) for port, row in enumerate(filled, start=1)]
    apart.given("ledger", " ".join([*types, "client_port", "id"]), *numbered, **ends)


OUT: Row = {"direction": "out", "to_instance": "a>s:80"}


def test_peers_with_the_most_failed_connections_come_first(apart: Tables) -> None:
    ledger(apart, {}, {"outcome": "recovered"}, {"outcome": "refused", "client_address": "d"}, OUT)
    assert apart.made("peers", instance="a", most=2) == [("a:80", "d", 1, 1, 0), ("a:80", "c", 2, 0, 1)]


def test_time_wait_most_are_those_that_the_instance_closed_first_within_a_minute(apart: Tables) -> None:
    ours = {**OUT, "time_wait_owner": "client"}
    late = [ours | {"last_time_us": us} for us in (59_000_000, 61_000_000)]
    ledger(apart, ours, *late, ours | {"time_wait_owner": "server"})
    assert apart.made("time_wait_most", instance="a") == [("a>s:80", 2)]


def test_crossing_counts_what_left_the_peer_and_did_not_come(apart: Tables) -> None:
    apart.given("own", observer="target", address="s")
    rows = [("peer", 1, 1, "s", 3), ("target", 9, 1, "s", 1), ("peer", 2, 2, "s", 2), ("peer", 3, 3, "other", 2)]
    ends = {"client_address": "c", "server_port": 80, "client_isn": 7, "truncated_start": False}
    apart.given("flows", "observer id client_port server_address syn_count", *rows, **ends)
    assert apart.made("crossing", peer="peer", target="target") == [(1, 1, 4)]


def test_failed_at_counts_by_outcome_and_cause(apart: Tables) -> None:
    never = {"outcome": "never-answered"}
    full = never | {"cause": "accept-queue-drop"}
    ledger(
        apart, full | {"syn_count": 5}, full | {"syn_count": 3}, never, {"outcome": "never-accepted"},
        {"outcome": "reset", "cause": "accept-queue-reset"}, {"outcome": "given-up"}, {"outcome": "recovered"},
        full | {"to_instance": "b:80"}, full | {"outcome": "given-up"},
    )  # fmt: skip
    assert apart.made("failed_at", server="a:80") == [(4, 2, 2, 1, 1, 1, 5)]


def test_places_are_the_most_that_waited_or_stood_in_the_queue_at_once(apart: Tables) -> None:
    waits = {"outcome": "never-answered", "first_time_us": 4}
    taken = {"outcome": "never-accepted", "first_time_us": 5}
    ledger(apart, {"queued_us": 2, "in_queue_us": 3}, waits, taken, {"outcome": "refused"}, {"outcome": "earlier"})
    assert apart.made("places", server="a:80") == [(3,)]


def test_servers_account_for_an_instance_s_connections_by_the_server_s_end(apart: Tables) -> None:
    reset = {"outcome": "reset", "cause": "b", "closed_by": "server"}
    slow = {"client_retransmissions": 3, "handshake_us": 20, "in_queue_us": 7, "first_data_us": 9, "last_time_us": 99}
    ledger(
        apart, reset | {"syns_lost": 1, "handshake_us": 10, "time_wait_owner": "client", "first_byte_us": 10},
        {"outcome": "recovered", "cause": "a", "syns_lost": 2, **slow},
        reset | {"server_retransmissions": 4, "first_byte_us": 5}, OUT, {"observer": "b", "to_instance": "b:80"},
    )  # fmt: skip
    nothing = {"count": 0, "p50": None, "p99": None, "max": None}
    # The first data of a server's TLS is no answer.
    apart.given("tls_handshakes", TLS_HANDSHAKES, ("a", 1, 10, 20, 700, None))
    first, second = apart.made("servers", instance="a")
    assert first == (
        "a:80", "in", 3, 3, 3, 4, {"recovered": 1, "reset": 2}, {"a": 1, "b": 2},
        {"count": 2, "p50": 15.0, "p99": pytest.approx(19.9), "max": 20},
        {"count": 1, "p50": 9.0, "p99": 9.0, "max": 9}, {"count": 1, "p50": 690.0, "p99": 690.0, "max": 690},
        {"count": 1, "p50": 5.0, "p99": 5.0, "max": 5}, {"count": 1, "p50": 7.0, "p99": 7.0, "max": 7},
        {"count": 2, "p50": 54.5, "p99": pytest.approx(98.11), "max": 99},
        {"nobody": 1, "server": 2}, {"client": 1, "unknown": 2},
    )  # fmt: skip
    assert second == (
        "a>s:80", "out", 1, 0, 0, 0, {"ok": 1}, {}, *[nothing] * 6, {"nobody": 1}, {"unknown": 1},
    )  # fmt: skip
    # The file connections.json has them in this order.
    maps = [each for each in first[:15] if isinstance(each, dict) and "p50" not in each]
    assert [list(each) for each in maps] == [["recovered", "reset"], ["a", "b"], ["nobody", "server"]]


def test_came_and_taken_are_those_that_began_in_the_window(apart: Tables) -> None:
    taken = {"in_queue_us": 5}
    ledger(apart, taken, {}, {"outcome": "earlier"}, taken | {"in_window": False}, taken | {"to_instance": "b:80"})
    assert apart.made("came_and_taken", server="a:80") == [(2, 1)]


def test_levels_are_the_greatest_of_each_step_that_has_a_tick(apart: Tables) -> None:
    ticks = [
        ("a", 100, 1, 3, 2, 7), ("a", 105, 1, 2, 9, 4), ("b", 105, 1, 4, 2, None), ("a", 110, 1, 0, 9, 1),
        ("a", 107, 0, 99, 99, 99), ("else", 100, 1, 99, 99, 99),
    ]  # fmt: skip
    apart.given("timeline", "instance time_us ticks listen_depth listen_limit time_wait", *ticks)
    found = apart.made("levels", start=100, width=10, queues=2, instances=["a", "b"])
    assert sorted(found) == [("a", 0, 3, 9, 11, 0, 7), ("a", 1, 0, 9, 11, 0, 1), ("b", 0, 4, 2, 4, 1, None)]


def test_grown_is_the_sum_over_instances_of_one_counter_where_it_is_known(apart: Tables) -> None:
    ticks = [("a", 100, 1), ("b", 109, 2), ("a", 110, 4), ("a", 120, None), ("else", 100, 99)]
    apart.given("timeline", "instance time_us Tcp.RetransSegs", *ticks, **{"Tcp.RetransSegsToo": 50})
    found = apart.made("grown", counter="Tcp.RetransSegs", start=100, width=10, instances=["a", "b"])
    assert found == [(0, 3), (1, 4)]


def test_read_by_second_is_the_greatest_of_each_name_in_each_second(apart: Tables) -> None:
    name = "sockets.server.listen"
    read = [("b", 10, 1.0), ("a", 2_000_010, 2.0), ("a", 1_500_000, 3.0), ("a", 1_900_000, 4.0)]
    apart.given("readings", "instance time_us value", *read, name=name)
    apart.given("readings", "instance time_us value", ("a", 1_900_000, 99.0), name="host.cpu_percent")
    found = apart.made("read_by_second", start=10, pattern="sockets.%")
    assert found == [("a", name, 1, 4), ("a", name, 2, 2), ("b", name, 0, 1)]


def test_machine_busy_is_what_one_sampler_read_of_all_processors(apart: Tables) -> None:
    read = [("a", 20, 5.0), ("a", 10, 7.0), ("a", 10, 6.0), ("b", 10, 99.0)]
    apart.given("readings", "instance time_us value", *read, name="host.cpu_percent")
    apart.given("readings", instance="a", time_us=10, value=99.0, name="else")
    assert apart.made("machine_busy", instance="a") == [(10, 7), (20, 5)]


def requests(apart: Tables, *rows: Row) -> None:
    """Put requests into the table that the drawings of a report read; each waited for a dial of its own."""
    filled = []
    for row in rows:
        begin_us, number = row["time_us"], row["id"]
        plain = {"outcome": "ok", "cause": None, "reused": False, "dial": number, "dial_time_us": begin_us}
        filled.append(plain | {"dial_duration_us": 1, "total_us": row["end_us"] - begin_us} | row)
    columns = sorted(filled[0])
    apart.given(
        "requests", " ".join(columns), *(tuple(row[name] for name in columns) for row in filled), instance="k6-1"
    )


def asked(number: int, begin_us: int, end_us: int, **values: object) -> Row:
    return {"id": number, "time_us": begin_us, "end_us": end_us, **values}


def test_ended_counts_what_became_of_the_requests_of_each_step(apart: Tables) -> None:
    failed = [asked(n, 100, 105, outcome="failed", cause=cause) for n, cause in ((5, "refused"), (6, "reset"))]
    requests(apart, asked(1, 90, 99), asked(2, 90, 100), asked(3, 100, 109), asked(4, 100, 110), *failed)
    found = apart.made("ended", start=100, width=10)
    assert [step for _, _, step, _ in found] == [0, 0, 0, 1]
    assert sorted(found, key=str) == [
        ("failed", "refused", 0, 1), ("failed", "reset", 0, 1), ("ok", None, 0, 2), ("ok", None, 1, 1),
    ]  # fmt: skip


def test_took_tells_connecting_of_those_alone_that_had_to(apart: Tables) -> None:
    again = asked(4, 102, 202, reused=True, dial_duration_us=50)
    requests(apart, asked(1, 110, 120), asked(2, 100, 101), asked(3, 101, 104, dial_duration_us=2), again)
    assert apart.made("took", start=100, width=10) == [(0, 3.0, pytest.approx(90.3), 100, 2), (1, 10.0, 10.0, 10, 1)]


def test_in_order_is_by_begin_and_gives_the_dial_to_whoever_waited_for_it(apart: Tables) -> None:
    requests(apart, asked(3, 10, 20), asked(2, 10, 30, outcome="slow", reused=True), asked(9, 5, 6, outcome="failed"))
    assert apart.made("in_order") == [
        ("failed", 5, 6, 1, 1, 5, 1), ("slow", 10, 30, 20, 2, None, None), ("ok", 10, 20, 10, 3, 10, 1),
    ]  # fmt: skip


def test_dialled_has_each_dial_once_that_a_request_waited_long_for(apart: Tables) -> None:
    rows = [asked(1, 30, 99, dial_duration_us=7), asked(2, 30, 99, dial=1, dial_duration_us=7)]
    rows += [asked(3, 10, 99, dial_duration_us=5), asked(4, 10, 99, dial_duration_us=4)]
    requests(apart, *rows, asked(5, 10, 99, dial_duration_us=9, reused=True))
    assert apart.made("dialled", least_us=5) == [(10, 5), (30, 7)]


def test_share_at_last_hop_is_of_one_cause(apart: Tables) -> None:
    apart.given("requests", "cause status", ("reset", 0), ("reset", 502), ("refused", 502))
    found = apart.made("share_at_last_hop", "*", {"at_last_hop": "status > 0"}, cause="reset")
    assert found == [(0.5,)]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("failure_of(NULL, NULL), failure_of('x', 'timeout')", (None, "timeout")),
        ("failure_of('x', 'odd'), failure_of('x', NULL)", ("other", "other")),
        ("succeeded(0, 399), succeeded(0, 400), succeeded(1, 200)", (True, False, False)),
        ("host_of('[::1]:80'), port_of('[::1]:80')", ("::1", 80)),
        ("host_of('10.0.0.2:81'), port_of('10.0.0.2')", ("10.0.0.2", None)),
        ("seconds_of('0.5, -, -1, 2')", ([0.5, None, None, 2.0],)),
        ("server_close_us(9, 'server', 5), server_close_us(9, 'client', 5)", (5, 9)),
        ("server_close_us(NULL, 'client', 5)", (None,)),
    ],
)
def test_macros_of_records_ask_addresses_ends_and_tries(apart: Tables, asked: str, found: tuple[Any, ...]) -> None:
    parts = {"succeeded": "error_code = 0 AND status BETWEEN 200 AND 399", "kinds": "'timeout', 'other'"}
    apart.made("macros_of_records", "*", parts)
    assert apart.database.execute(f"SELECT {asked}").fetchall() == [found]


def test_macros_of_evidence_tell_moments_and_durations(apart: Tables) -> None:
    apart.made("macros_of_evidence", "*", {"start_us": "1000000"})
    asked = "SELECT moment(3500000), took(1500), took(1500000)"
    assert apart.database.execute(asked).fetchall() == [("2.500 s", "1.5 ms", "1.500 s")]


def of_lines(tmp_path: Path, *lines: Row | str) -> str:
    """Write a file of JSON Lines, with lines that are none as they stand, and return its path."""
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_captured_of_instance_adds_one_capture_s_connections(apart: Tables, tmp_path: Path) -> None:
    path = written(apart, tmp_path, "id", (2,), (1,), isn=7, other="x")
    apart.given("captured", "observer:VARCHAR handshakes_only:BOOLEAN id:BIGINT isn:BIGINT")
    columns = {"columns": "id, isn"}
    found = apart.made("captured_of_instance", "*", columns, path=path, observer="nginx", handshakes_only=True)
    assert found == [("nginx", True, 1, 7), ("nginx", True, 2, 7)]


def test_tls_handshakes_of_instance_are_those_that_a_client_began(apart: Tables, tmp_path: Path) -> None:
    path = written(apart, tmp_path, f"id {TLS_TIMES}", (1, None, None, None, None), (2, 5, 6, None, None), other="x")
    apart.given("tls_handshakes", TLS_HANDSHAKES)
    assert apart.made("tls_handshakes_of_instance", path=path, observer="nginx") == [("nginx", 2, 5, 6, None, None)]


def test_lines_of_requests_tell_records_header_end_and_what_is_corrupt(apart: Tables, tmp_path: Path) -> None:
    path = of_lines(
        tmp_path, {"kind": "header", "schema": "connlab.requests/1", "instance": "k6-1"},
        {"kind": "header", "schema": "connlab.requests/1", "instance": "k6-2"}, {"kind": "header", "schema": "else"},
        {"id": 3}, "{broken\n", {"kind": "end", "requests": 1},
    )  # fmt: skip
    fields = jsonl.HEADER | dict.fromkeys(("id", "requests", "dials"), "BIGINT")
    parts = {"records": "requests", "whole": "kind IS NULL AND id IS NOT NULL", "closed": "false"}
    found = apart.made("lines_of_records", "*", parts, path=path, instance="k6-1", writers=["k6-1"], fields=fields)
    kinds = [(None, None, 1), (None, None, 3), (None, None, 3), (3, None, 0), (None, None, 4), (None, 1, 2)]
    assert found == [(number, "k6-1", announced, kind) for number, announced, kind in kinds]


def test_lines_of_dials_tell_closes_too(apart: Tables, tmp_path: Path) -> None:
    path = of_lines(
        tmp_path, {"kind": "header", "schema": "connlab.dials/1", "instance": "gateway"}, {"kind": "dial", "id": 1},
        {"kind": "close", "id": 1}, {"kind": "close"}, {"kind": "end", "dials": 1}, {"id": 1},
    )  # fmt: skip
    fields = jsonl.HEADER | dict.fromkeys(("id", "requests", "dials"), "BIGINT")
    parts = {"records": "dials", "whole": "kind = 'dial'", "closed": "kind = 'close' AND id IS NOT NULL"}
    writers = {"instance": "gateway-1", "writers": ["gateway-1", "gateway"]}
    found = apart.made("lines_of_records", "*", parts, path=path, fields=fields, **writers)
    assert [(id_, announced, kind) for id_, _, announced, kind in found] == [
        (None, None, 1), (1, None, 0), (1, None, 5), (None, None, 3), (None, 1, 2), (1, None, 4),
    ]  # fmt: skip


def test_lines_of_kernel_events_are_whole_if_they_tell_time_and_both_ends(apart: Tables, tmp_path: Path) -> None:
    ends = {"local": "s", "local_port": 80, "peer": "c", "peer_port": 1000}
    path = of_lines(
        tmp_path, {"kind": "header"}, {"kind": "queued", "time_us": 5, **ends}, {"kind": "queued", **ends},
        {"kind": "accepted", "time_us": 5, **ends, "wait_us": -1}, {"kind": "accepted", "time_us": 5, **ends},
        {"kind": "reset_sent", "time_us": 5, **ends, "peer_port": 70_000}, {"kind": "of-another-version", "time_us": 5},
        "{broken\n", {"kind": "dropped", "time_us": 5, "from": "c", "to": "s"}, {"kind": "dropped", "time_us": 5},
    )  # fmt: skip
    texts, numbers = ("kind", "local", "peer", "from", "to"), ("time_us", "local_port", "peer_port", "wait_us")
    fields = {**dict.fromkeys(texts, "VARCHAR"), **dict.fromkeys(numbers, "BIGINT")}
    found = apart.made("lines_of_kernel_events", "*", path=path, fields=fields)
    assert [(number, row[0]) for number, row in enumerate(found) if row[-1]] == [
        (1, "queued"), (4, "accepted"), (8, "dropped"),
    ]  # fmt: skip


def test_waterfall_has_connections_by_time_and_leaves_out_those_that_did_not_fail_first(
    apart: Tables, tmp_path: Path
) -> None:
    columns = "observer id outcome first_time_us last_time_us handshake_us first_data_us first_byte_us client_address"
    more = "client_port to_instance"
    refused = ("refused", 105, 106, None, None, None, "c", 2, "web:80")
    rows = [
        ("web", 1, "answered", 110, 190, 5, 7, 20, "c", 1, "web:80"), ("web", 2, *refused), ("peer", 1, *refused),
        ("web", 3, "answered", 103, 104, 1, -1, None, "c", 3, "web:80"),
    ]  # fmt: skip
    path = tmp_path / "connections.parquet"
    apart.given("written", f"{columns} {more}", *rows)
    apart.database.execute(f"COPY written TO '{path}' (FORMAT parquet)")
    found = apart.made("waterfall", path=str(path), start_us=100, peers=["peer"], most=2)
    assert found == [
        ("answered", "web:80", 3, 3, 1, 1, 1, 1, "c:3"), ("refused", "web:80", 3, 5, -1, -1, -1, 1, "c:2"),
    ]  # fmt: skip


def test_closes_are_those_of_an_instance_each_once(apart: Tables) -> None:
    columns = "instance id time_us bytes_sent bytes_received error"
    apart.given(
        "closes", "instance:VARCHAR id:BIGINT time_us:BIGINT bytes_sent:BIGINT bytes_received:BIGINT error:VARCHAR"
    )
    rows = [
        ("a", 2, 20, 1, 1, None, 5), ("a", 1, 10, 1, 1, "reset", 5), ("a", 2, 30, 1, 1, None, 5),
        ("a", 3, 30, None, None, None, 0), ("b", 4, 10, 1, 1, None, 5),
    ]  # fmt: skip
    apart.given("dials", f"{columns} line_kind", *rows)
    assert apart.made("closes", "id, time_us, error", instance="a") == [(1, 10, "reset"), (2, 20, None)]


def test_dialled_has_dials_with_both_ends_as_a_capture_names_them(apart: Tables, tmp_path: Path) -> None:
    ends = {"kind": "dial", "local": "[::1]:1000", "remote": "10.0.0.2:80"}
    path = of_lines(
        tmp_path, ends | {"id": 2, "time_us": 20}, ends | {"id": 1, "time_us": 10},
        ends | {"id": 3, "local": "c:1001", "error_kind": "address-not-available"}, {"kind": "dial", "id": 4},
        ends | {"kind": "close", "id": 1},
    )  # fmt: skip
    columns = "id, client, server, place, places"
    fields = jsonl.HEADER | jsonl.DIALS
    found = apart.made("dialled_both_ends", columns, {"whole": "kind = 'dial'"}, path=path, one_of=1, fields=fields)
    assert found == [(1, "::1 1000", "10.0.0.2 80", 1, 2), (2, "::1 1000", "10.0.0.2 80", 2, 2)]


def test_answered_bounds_the_requests_of_a_plain_connection(apart: Tables, tmp_path: Path) -> None:
    request = {"url": "http://s/", "status": 200, "tls_us": 0, "blocked_us": 1}
    path = of_lines(
        tmp_path,
        request | {"dial": 1, "time_us": 10, "end_us": 15}, request | {"dial": 1, "time_us": 20, "end_us": 25},
        request | {"dial": 2, "time_us": 10, "end_us": 15}, request | {"dial": 2, "status": 0},
        request | {"dial": 3, "url": "https://s/", "time_us": 10}, request | {"time_us": 10},
        request | {"dial": 1, "id": 9},
    )  # fmt: skip
    found = apart.made("answered", "*", {"whole": "id IS NULL"}, path=path, fields=jsonl.HEADER | jsonl.REQUESTS)
    assert found == [(1, 11, 21, 15)]


def test_lines_of_an_access_log_have_numbers_and_the_format_s_columns(apart: Tables, tmp_path: Path) -> None:
    path = of_lines(tmp_path, {"took": 500}, "\n", {"took": 10_000}, {"took": 2000})
    parts = {"columns": "took / 1000 AS seconds", "within": "if(took BETWEEN -9000 AND 9000, took, NULL) AS took"}
    found = apart.made("lines_of_logs", "*", parts, path=path, fields={"took": "BIGINT"})
    assert found == [(0.5, 1), (None, 2), (2.0, 3)]


@pytest.mark.parametrize(("speaks", "sentence"), [(True, 3), (False, 4)])
def test_lines_of_access_leave_room_for_sentences(apart: Tables, speaks: bool, sentence: int) -> None:  # noqa: FBT001
    apart.given("lines", "time_ms status", (900, 200), (None, None), (None, 200))
    parts = {"whole": "time_ms IS NOT NULL AND status IS NOT NULL"}
    found = apart.made("lines_of_access", "*", parts, instance="nginx", speaks=speaks)
    assert found == [(900, 200, "nginx", 0), (None, None, "nginx", sentence), (None, 200, "nginx", 4)]


def test_what_a_declared_log_s_fields_mean(apart: Tables) -> None:
    apart.database.execute("CREATE MACRO host_of(address) AS 'a'; CREATE MACRO port_of(address) AS 80")
    apart.made("macros_of_logs")
    asked = (
        "SELECT duration_us('2ms', 1e6), client_port_of('[::1]:80'), client_host_of('::ffff:10.0.0.9'), path_of('/?')"
    )
    assert apart.database.execute(asked).fetchall() == [(2000, 80, "10.0.0.9", "/")]


@pytest.mark.parametrize(("stood", "found"), [(True, (502, 40)), (False, (None, None))])
def test_a_try_s_connection_tells_what_the_log_leaves_open(
    tables: Tables,
    stood: bool,  # noqa: FBT001
    found: tuple[int | None, int | None],
) -> None:
    tables.given("request_links", instance="k6-1", id=1, access_instance="caddy", line=9)
    tables.given("access", instance="caddy", line=9, status=502, guessed=True)
    tables.given("tries", "try", (1,), instance="caddy", line=9, tries=1, guessed=True, start_us=100)
    tables.given("try_links", "try", (1,), instance="caddy", line=9, observer="backend-1", flow=7)
    times = {"first_time_us": 110, "answered_us": 140}
    tables.given("flows_with_proof", observer="backend-1", id=7, established=stood, **times)
    assert tables.made("proxied", "try_status, try_connect_us", slack_us=5) == [found]


def test_a_declared_log_tells_fields_by_their_sql(apart: Tables) -> None:
    apart.given("told", line=3, found="x")
    parts = {"values": "found AS f_status", "columns": "f_status AS status"}
    assert apart.made("lines_of_declared_logs", "*", parts) == [("x", 3)]


def test_flows_of_what_was_watched_name_its_listener_or_the_server_elsewhere(apart: Tables) -> None:
    apart.given("own", observer="web", address="10.0.0.1")
    apart.given("ticks", instance="web:80")
    ends = [
        (1, "10.0.0.9", "10.0.0.1", 80), (2, "10.0.0.1", "10.0.0.3", 5432),
        (3, "10.0.0.1", "10.0.0.1", 80), (4, "10.0.0.9", "10.0.0.7", 80),
    ]  # fmt: skip
    apart.given("captured", "id client_address server_address server_port", *ends, observer="web")
    assert apart.made("flows", "id, direction, to_instance") == [
        (1, "in", "web:80"), (2, "out", "web>10.0.0.3:5432"), (3, "in", "web:80"), (4, "in", "web:80"),
    ]  # fmt: skip


CONNECTION = {"observer": "web", "id": 1, "first_time_us": 10, "last_time_us": 90, "syn_times_us": [10], "syns_lost": 0,
              "answered": True, "established": True, "entered": True, "refused": False, "truncated_start": False,
              "client_inferred": False, "handshakes_only": False, "closed_by": "client",
              "nothing_came": False}  # fmt: skip
CLOSED_BY_RST = {"server_first_data_time_us": 40, "server_last_data_time_us": 50, "client_first_data_time_us": 30,
                 "client_last_data_time_us": 30, "close_kind": "rst"}  # fmt: skip
# Its client had the connection at 20, asked, and left at 80.
LEFT = {"client_first_data_time_us": 20, "client_last_data_time_us": 20, "handshake_ack_time_us": 20, "queued_us": 20,
        "client_fin_time_us": 80, "ack_dropped_min": 0}  # fmt: skip
UNANSWERED = {"answered": False, "established": False, "syn_times_us": [10, 1_000_010], "syns_lost": 2}


@pytest.mark.parametrize(
    ("values", "until_us", "overflowed", "found"),
    [
        (UNANSWERED, None, 0, [("never-answered", "unexplained")]),
        ({"answered": False, "established": False}, None, 0, [("undecided", None)]),
        ({"answered": False}, None, 0, [("one-sided", None)]),
        (LEFT, 99, 0, [("given-up", "unexplained")]),
        (UNANSWERED | {"to_instance": "web>10.0.0.3:*"}, None, 0, [("never-answered", None)]),
        ({"server_first_data_time_us": 50}, 99, 0, [("answered", None)]),
        ({"server_first_data_time_us": 50, "syns_lost": 1}, 99, 1, [("recovered", "waited-for-syn-retry")]),
        ({"server_first_data_time_us": 50, "syns_lost": 1}, 99, 0, [("recovered", None)]),
        ({"client_fin_time_us": 40, "server_first_data_time_us": 50}, 99, 0, [("given-up", "unexplained")]),
        (CLOSED_BY_RST | {"client_last_data_time_us": 30}, 99, 0, [("answered", None)]),
        (CLOSED_BY_RST | {"client_last_data_time_us": 60}, 99, 0, [("reset", "unexplained")]),
        (CLOSED_BY_RST | {"closed_by": "server"}, 99, 0, [("answered", None)]),
        (CLOSED_BY_RST | {"closed_by": "server", "client_last_data_time_us": 60}, 99, 0, [("reset", "reset-by-peer")]),
        (LEFT | {"accepted_after_us": 55, "accepted_before_us": 95}, 99, 0, [("given-up", "waited-in-accept-queue")]),
        (LEFT | {"accepted_after_us": 25, "accepted_before_us": 75}, 99, 0, [("given-up", "unexplained")]),
        (LEFT | {"accepted_after_us": 20, "accepted_before_us": 30}, 99, 0, [("given-up", "time-in-server")]),
        (LEFT | {"accepted_after_us": 20, "client_first_data_time_us": None}, 99, 0, [("idle", None)]),
        (LEFT | {"ack_dropped_min": 3, "queued_us": 80}, 99, 0, [("given-up", "accept-queue-drop")]),
        (LEFT | {"ack_dropped_min": 1, "queued_us": 70}, 99, 0, [("given-up", "waited-for-ack-retry")]),
        (LEFT | {"syns_lost": 2, "answered_us": 75}, 99, 2, [("given-up", "waited-for-syn-retry")]),
        ({"established": False, "answered_us": 20}, 2_000_000, 0, [("half-open", "unexplained")]),
        ({"established": False, "answered_us": 20}, 99, 0, [("undecided", None)]),
        ({"refused": True}, 99, 0, [("refused", "connection-refused")]),
        (UNANSWERED, 9_000_000, 2, [("never-answered", "accept-queue-drop")]),
        (UNANSWERED, 9_000_000, 1, [("never-answered", "unexplained")]),
        (UNANSWERED, 3_000_000, 2, [("undecided", "waited-for-syn-retry")]),
        ({"entered": False, "nothing_came": True}, 99, 0, [("idle", None)]),
        ({"last_time_us": 9}, 99, 0, []),
    ],
)
def test_ledger_of_what_was_watched_has_outcome_and_proven_cause(
    values: Row, until_us: int | None, overflowed: int, found: list[tuple[str, str | None]]
) -> None:
    """Of a capture that was made elsewhere nobody knows the end (None): it has its last packet."""
    more = dict.fromkeys(("direction", "to_instance", "observer"), "VARCHAR") | dict.fromkeys(
        ("handshakes_only", "entered", "refused", "aborted", "nothing_came"), "BOOLEAN"
    )
    values = {"syn_count": len(values.get("syn_times_us", [10]))} | values
    accepted = {name: values.pop(name) for name in ("accepted_after_us", "accepted_before_us") if name in values}
    counts = dict.fromkeys(("syns_lost", "answered_us", "queued_us", "ack_dropped_min"), "BIGINT")
    apart = Tables(APART, Account({"connections": {**FLOWS, **more, **counts}}, []))
    apart.given("connections", **(CONNECTION | values))
    apart.given("spans", observer="web", end_us=until_us or 1_000_010, ends=until_us is not None)
    apart.given("accepted", "observer:VARCHAR id:BIGINT accepted_after_us:BIGINT accepted_before_us:BIGINT")
    if accepted:
        apart.given("accepted", observer="web", id=1, **accepted)
    apart.given("before_socket", "observer:VARCHAR id:BIGINT synacks_again:BIGINT cookies_sent:BIGINT")
    none = dict.fromkeys(("syns_syn_queue_full", "syns_not_dropped", "syns_unsampled"), 0)
    apart.given("syn_drop_proof", observer="web", id=1, syns_overflowed=overflowed, **none, depth_max=1, queue_limit=1)
    assert apart.made("ledger", "outcome, cause", {"direction": "direction"}, start_us=10, end_us=99) == found


def test_ledger_both_ends_gives_the_client_s_end_what_the_server_s_proves(apart: Tables) -> None:
    rows = [(1, "in", "accept-queue-drop", 7), (2, "out", "unexplained", 7), (3, "out", "unexplained", 8)]
    apart.given("ledger", "id direction cause client_isn", *rows, (4, "out", None, 7), **ENDS)
    assert apart.made("ledger_both_ends", "id, cause") == [
        (1, "accept-queue-drop"), (2, "accept-queue-drop"), (3, "unexplained"), (4, None),
    ]  # fmt: skip


def test_flows_scanned_has_the_connections_of_a_scan_under_one_name(apart: Tables) -> None:
    scanned = [(port, "scanner", port, False, f"a>s:{port}") for port in range(1, 101)]
    few = [(200 + port, "client", port, False, f"a>s:{port}") for port in range(1, 100)]
    apart.given("flows", "id client_address server_port established to_instance", *scanned, *few, observer="a",
                server_address="s")  # fmt: skip
    found = dict(apart.made("flows_scanned", "id, to_instance"))
    assert ({found[port] for port in range(1, 101)}, found[201]) == ({"a>s:*"}, "a>s:1")


def test_lost_syns_by_port_are_those_of_the_host_s_own_ports(apart: Tables) -> None:
    apart.given("own", observer="a", address="s")
    columns = "server_address server_port answered syn_times_us first_rst_by:VARCHAR"
    rows = [("s", 80, False, [3, 5], None), ("s", 80, True, [1, 2], None), ("s", 81, False, [4], "server"),
            ("other", 80, False, [9], None)]  # fmt: skip
    apart.given("captured", columns, *rows, observer="a", client_inferred=False)
    assert apart.made("lost_syns_by_port", observer="a") == [(80, [1, 3, 5])]


def test_troubled_connections_come_first_and_those_without_data_not_at_all(apart: Tables) -> None:
    rows = [(1, 0, 9, 0, 100), (2, 0, 99, 0, 100), (3, 0, 5, 2, 100), (4, 0, 99, 0, 0)]
    columns = "id first_time_us last_time_us client_retransmissions client_unique_bytes"
    always = {"server_retransmissions": 0, "server_unique_bytes": 0, "client_packets": 1, "server_packets": 1}
    apart.given("ledger", columns, *rows, observer="a", **always, **ENDS)
    assert [(row[0], row[-1]) for row in apart.made("troubled", observer="a", packets=4)] == [(3, 3), (2, 3)]


def test_what_two_ends_have_of_a_connection_is_compared(apart: Tables) -> None:
    columns = "observer id client_isn first_time_us last_time_us client_packets server_packets client_payload_bytes"
    rows = [("here", 1, 7, 10, 20, 5, 4, 9), ("there", 1, 7, 12, 18, 4, 4, 9), ("here", 2, 8, 10, 20, 3, 3, 9),
            ("there", 2, 8, 10, 20, 3, 3, 9), ("here", 3, 9, 30, 40, 2, 0, 0), ("here", 4, 5, 50, 60, 3, 3, 9),
            ("there", 4, 5, 50, 60, 3, 3, 8)]  # fmt: skip
    apart.given("flows", columns, *rows, server_payload_bytes=0, **ENDS)
    ends = {"client_end": "here", "server_end": "there"}
    assert apart.made("at_both_ends", **ends) == [(3,)]
    found = apart.made("at_both_ends_unequal", **ends)
    assert [row[2]["first_time_us"] + 1_000_000 for row in found] == [50, 30, 10]
    apart.given("spans", "observer start_us end_us", ("here", 1, 9), ("there", 3, 7))
    assert apart.made("in_both_spans", **ends) == [(3, 7)]
    apart.given("own", observer="there", address="s")
    assert apart.made("is_on_the_way", **ends) == [(True,)]
    apart.given("own", observer="here", address="s")
    assert apart.made("is_on_the_way", **ends) == [(False,)]


def packets_in(folder: Path, packets: list[Row]) -> Path:
    """Write the packets of one connection, as the program `flows` gives them."""
    file = folder / "packets.jsonl"
    file.write_text("".join(json.dumps({"connection": 0} | each) + "\n" for each in packets))
    return file


def test_a_turn_begins_where_the_client_sends_after_the_server_did(tables: Tables, tmp_path: Path) -> None:
    columns = ("number", "time_us", "from", "flags", "seq", "payload_bytes")
    packets = [
        (1, 10, "client", ["PSH"], 1, 100), (2, 20, "server", [], 1, 900), (3, 30, "server", ["PSH"], 901, 100),
        (4, 40, "client", [], 101, 0), (5, 50, "client", ["PSH"], 101, 50), (6, 60, "client", ["PSH"], 101, 50),
        (7, 70, "client", ["PSH"], 151, 50), (8, 80, "server", ["PSH"], 1001, 100),
    ]  # fmt: skip
    file = packets_in(tmp_path, [dict(zip(columns, each, strict=True)) for each in packets])
    wanted = "flow, turn, time_us, asked_us, first_us, end_us, pieces"
    found = tables.made(
        "exchanges_of_packets", wanted, {"steady": "time_us"}, path=str(file), observer="s", flows=[7], servers=["s"]
    )
    # The packet that was sent again is no piece of its own.
    assert found == [(7, 1, 10, 10, 20, 30, 1), (7, 2, 50, 70, 80, 80, 2)]


def test_data_that_a_capture_shows_again_has_the_time_of_its_first_copy(tables: Tables, tmp_path: Path) -> None:
    columns = ("number", "time_us", "from", "flags", "seq", "payload_bytes")
    packets = [
        (1, 10, "client", [], 1, 100), (2, 20, "server", [], 1, 900), (3, 30, "server", [], 901, 100),
        (4, 40, "client", ["ACK"], 101, 0), (5, 50, "server", [], 901, 100), (6, 60, "client", [], 1, 100),
        (7, 70, "server", [], 1, 1100), (8, 80, "client", ["FIN", "ACK"], 101, 0),
    ]  # fmt: skip
    file = packets_in(tmp_path, [dict(zip(columns, each, strict=True)) for each in packets])
    given = {"path": str(file), "observer": "s", "flows": [7]}
    chosen = "number, asks, has_data, first_us"
    assert tables.made("sent_packets_of_capture", chosen, {"steady": "time_us"}, **given) == [
        (1, True, True, None), (2, False, True, None), (3, False, True, None), (4, True, False, None),
        (5, False, True, 30), (6, True, True, 10), (7, False, True, None),
    ]  # fmt: skip


def test_packets_are_asked_of_requests_whose_data_may_have_been_late(tables: Tables) -> None:
    counts = {"client_retransmissions": 0, "client_packets": 3, "server_packets": 4}
    columns = "id from_instance server_retransmissions"
    rows = [(1, "k6-1", 0), (2, "k6-1", 1), (3, "nginx", 0), (4, "k6-1", 1), (5, "k6-1", 1), (6, "k6-1", 0)]
    tables.given("connections", columns, *rows, observer="s", hop=1, **counts)
    columns = "id outcome protocol flow_id up_id total_us"
    cases = [
        (1, "slow", None, 1, 3, 900), (2, "failed", None, 2, None, 900), (3, "slow", "http2", 4, None, 900),
        (4, "ok", None, 5, None, 900), (5, "slow", None, 6, None, 500),
    ]  # fmt: skip
    tables.given("cases", columns, *cases, instance="k6-1", status=0, flow_observer="s", up_observer="s")
    assert [row[1] for row in tables.made("carrying_late", again=["nginx"], delayed_max_us=250)] == [2, 3, 6]


# A request that was sent at 110, and over at 400; its data as the capture has it: from the client, when, when first.
@pytest.mark.parametrize(
    ("observer", "again", "data", "found"),
    [
        # The request's first copy never came to the server's capture.
        ("s-1", "k6-1", [(True, 330, None)], [(True, 110, 330)]),
        ("s-1", "k6-1", [(True, 300, None)], []),
        ("s-1", "-", [(True, 330, None)], []),
        # None of it did.
        ("s-1", "k6-1", [], [(True, 110, 400)]),
        # The answer was sent again, twice; the span counts once. An answer before it is another request's.
        (
            "s-1",
            "-",
            [(False, 150, None), (False, 200, 150), (False, 300, 150)],
            [(False, 150, 200), (False, 200, 300)],
        ),
        ("s-1", "-", [(False, 200, 100)], []),
        # When the request was over, its client had the first copy: an acknowledgement got lost.
        ("s-1", "-", [(False, 500, 150)], []),
        # The client's own capture has what it sent; of the server's data it has what came.
        ("k6-1", "-", [(True, 112, None), (True, 320, 112), (False, 350, 330)], [(True, 112, 320)]),
        # The request came, and came again; what the server sent then is in no capture.
        ("s-1", "s-1", [(True, 112, None), (True, 320, 112)], [(True, 112, 320)]),
        ("s-1", "s-1", [(True, 112, None), (True, 320, 112), (False, 350, None)], []),
        ("s-1", "-", [(True, 112, None), (True, 320, 112)], []),
    ],
)
def test_a_request_waited_for_data_that_got_lost(
    tables: Tables, observer: str, again: str, data: list[Any], found: list[Any]
) -> None:
    case = {"sending_us": 0, "blocked_us": 10, "time_us": 100, "end_us": 400, "flow_to_instance": "s-1"}
    tables.given("cases", **(SLOW | case), flow_observer=observer, flow_id=7, flow_established=True, remote="s:80")
    packets = [(number, *each) for number, each in enumerate(data)]
    tables.given("sent_packets", "number asks time_us first_us", *packets, observer=observer, flow=7, has_data=True)
    assert tables.made("data_waits", "asks, from_us, until_us", **_waits_of(again)) == found


def _waits_of(again: str) -> dict[str, Any]:
    return {
        "again": [again],
        "slack_us": 0,
        "timeout_us": 200,
        "delayed_us": 30,
        "delayed_max_us": 100,
        "at_once_us": 2,
    }


# The packets of a request that was sent at 110: from the client, with data or a bare acknowledgement, when.
@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([(True, True, 111), (False, True, 112), (True, False, 152), (False, True, 153)], [(True, False, 112, 153)]),
        ([(True, True, 111), (False, False, 151), (True, True, 152), (False, True, 160)], [(True, True, 111, 152)]),
        # Acknowledged at once; more came long after; a whole request in between; a stream that goes on as it likes.
        ([(False, True, 112), (True, False, 122), (False, True, 123)], []),
        ([(False, True, 112), (True, False, 152), (False, True, 160)], []),
        ([(False, True, 112), (True, True, 152), (False, True, 153)], []),
        ([(False, True, 112), (False, True, 152), (True, False, 152), (False, True, 192)], []),
    ],
)
def test_a_kernel_held_data_back_until_what_came_before_was_acknowledged(
    tables: Tables, packets: list[Any], found: list[Any]
) -> None:
    case = {"sending_us": 0, "blocked_us": 10, "time_us": 100, "flow_to_instance": "s-1"}
    tables.given("cases", **(SLOW | case), flow_observer="s-1", flow_id=7, flow_established=True, remote="s:80")
    numbered = [(number, *each) for number, each in enumerate(packets)]
    tables.given("sent_packets", "number asks has_data time_us", *numbered, observer="s-1", flow=7)
    assert tables.made("data_waits", "held, asks, from_us, until_us", **_waits_of("-")) == found


def test_what_a_kernel_sent_again_is_unseen_where_the_captures_have_less(tables: Tables) -> None:
    columns = "id from_instance to_instance client_retransmissions server_retransmissions"
    tables.given("connections", columns, (1, "k6-1", "nginx", 2, 3), (2, "nginx", "s-1", 4, 5))
    assert sorted(tables.made("data_again")) == [("k6-1", 2), ("nginx", 7), ("s-1", 5)]


def test_late_data_is_no_part_of_the_server_s_time_or_of_the_answer_s_way(tables: Tables) -> None:
    tables.given("cases", **(SLOW | {"end_us": 400}))
    served = {"server": "s-1", "from_us": 110, "taken_us": 250, "to_us": 300, "left_us": 300}
    tables.given("served", instance="k6-1", id=1, **served, acceptance_known=True)
    columns = "up held asks from_us until_us"
    spans = [(False, False, True, 110, 250), (False, False, False, 300, 380), (True, False, True, 260, 270),
             (False, True, False, 280, 285)]  # fmt: skip
    tables.given("data_waits", columns, *spans, instance="k6-1", id=1)
    chosen = "data_us, up_data_us, ack_wait_us, up_ack_wait_us, server_us, lag_us, data_asks"
    found = tables.made("waits", chosen, **WAITS | {"silent": ["s-1"]})
    assert found == [(220, 10, 5, 0, 35, 20, True)]


@pytest.mark.parametrize(("flags", "heard_us"), [(["FIN", "ACK"], 20), (["RST"], 20), (["ACK"], 40)])
def test_a_client_hears_nothing_of_an_answer_after_it_has_closed(
    tables: Tables, tmp_path: Path, flags: list[str], heard_us: int
) -> None:
    packets = [
        {"number": 1, "time_us": 10, "from": "client", "flags": ["PSH"], "seq": 1, "payload_bytes": 9},
        {"number": 2, "time_us": 20, "from": "server", "flags": ["PSH"], "seq": 1, "payload_bytes": 9},
        {"number": 3, "time_us": 30, "from": "client", "flags": flags, "seq": 10, "payload_bytes": 0},
        {"number": 4, "time_us": 40, "from": "server", "flags": ["PSH"], "seq": 10, "payload_bytes": 9},
    ]
    file = packets_in(tmp_path, packets)
    given = {"path": str(file), "observer": "s", "flows": [7], "servers": ["s"]}
    found = tables.made("exchanges_of_packets", "end_us, heard_us", {"steady": "time_us"}, **given)
    assert found == [(40, heard_us)]


def test_turns_of_connections_with_data_are_in_doubt_where_they_may_be_more_or_less_than_requests(
    tables: Tables,
) -> None:
    columns = "id hop client_first_data_time_us sequence_exact"
    rows = [(1, 1, 5, True), (2, 1, None, True), (3, 2, 5, True), (4, 1, 5, False)]
    no = ("truncated_start", "handshakes_only")
    always = {"observer": "s", "in_window": True, "to_instance": "s", **dict.fromkeys(no, False)}
    tables.given("connections", columns, *rows, **always, client_missing_bytes=0, server_missing_bytes=0)
    assert [row[1] for row in tables.made("carrying")] == [1, 4]
    turns = [(1, 10, 20, 1), (2, 30, None, 1), (3, 40, 50, 2), (0, None, 5, 0)]
    tables.given("exchanges", "turn time_us end_us pieces", *turns, flow=1, to_instance="s")
    tables.given("unread_exchanges", "why", ("cut",), observer="s")
    assert tables.named("exchanges_in_doubt", servers=["s"]) == {
        "total": 4, "unanswered": 1, "spoken_first": 1, "in_pieces": 1, "torn": 1, "unread": "cut",
    }  # fmt: skip


def test_held_places_are_those_open_when_the_proxy_first_refused(tables: Tables) -> None:
    columns = "id from_instance to_instance first_time_us server_fin_time_us client_fin_time_us first_rst_time_us"
    rows = [
        (1, "k6-1", "nginx", 10, None, None, None), (2, "k6-1", "nginx", 10, None, 60, None),
        (3, "k6-1", "nginx", 10, None, None, None), (4, "k6-1", "nginx", 10, 40, None, None),
        (5, "nginx", "web-1", 10, None, None, None), (6, "nginx", "web-1", 10, None, None, 40),
        (7, "k6-1", "nginx", 90, None, None, None),
    ]  # fmt: skip
    tables.given("connections", columns, *rows, established=True, observer="nginx")
    tables.given("dial_links", "dial flow", (1, 1), (2, 2), (3, 3), instance="k6-1", observer="nginx")
    asked = [(1, 1, 101, 20, 99, "websocket"), (2, 2, 500, 40, 60, None), (3, 3, 200, 20, 30, None)]
    tables.given("requests", "id dial status time_us end_us protocol", *asked, instance="k6-1")
    tables.given("cases", "id end_us", (2, 50), (4, 80), (3, 20), instance="k6-1", flow_to_instance="nginx")
    said = [(2, "full", "socket() failed (24: Too many open files)"), (4, "full", None), (3, "slow-handler", None)]
    tables.given("attributed", "id cause evidence", *said, instance="k6-1")
    assert tables.named("held_places", cause="full") == {
        "instance": "nginx", "time_us": 50, "sessions": 1, "requests": 1, "idle": 1, "servers": 1,
        "out_of_files": True,
    }  # fmt: skip


def test_held_by_servers_are_those_that_came_before_who_waits_and_were_not_closed(tables: Tables) -> None:
    columns = (
        "id from_instance queued_us client_first_data_time_us client_last_data_time_us server_last_data_time_us"
        " server_fin_time_us"
    )
    rows = [
        (1, None, 10, None, None, None, None), (2, None, 11, 90, 90, None, None),  # nothing by then
        (3, "k6-1", 12, 13, 13, 14, None), (4, "k6-1", 15, 16, 16, None, None), (5, "k6-1", 17, 18, 70, 71, None),
        (6, "k6-1", 19, 20, 20, 21, 30),  # closed
        (7, None, 35, None, None, None, None), (8, "k6-1", 36, 37, 37, None, None),  # in the queue
        (9, "k6-1", 80, 81, 81, None, None),
    ]  # fmt: skip
    tables.given("arriving_flows", columns, *rows, observer="web-1", to_instance="web-1")
    # At 34 a connection had just come; at 50 none.
    tables.given("ticks", "time_us depth", (34, 3), (50, 2), (60, 2), instance="web-1", listeners=1)
    tables.given("cases", "id flow_to_instance", (8, "web-1"), instance="k6-1")
    tables.given("attributed", "id cause", (8, "full"), instance="k6-1")
    crowded = [(40, 50, "web", 9), (45, 70, "web", 9), (51, 90, "no", 8)]
    tables.given("full_processes", "from_us to_us comm files", *crowded, instance="web-1")
    assert tables.named("held_by_servers", causes=["full"], near_us=5) == {
        "instance": "web-1", "time_us": 50, "waiting": 2, "silent": 2, "idle": 1, "held": 5, "others": 2,
        "process": "web", "files": 9,
    }  # fmt: skip
    assert tables.made("held_by_servers", causes=["other"], near_us=5) == []


TOLD = {"observer": "a", "to_instance": "a>s:80", "handshake_us": 5, "first_data_us": 5, "first_byte_us": 5}
TOLD_FLOWS = "observer:VARCHAR id:BIGINT syn_times_us:BIGINT[]"
TLS_TIMES = "client_hello_time_us:BIGINT server_hello_time_us:BIGINT client_reply_time_us:BIGINT tls_end_time_us:BIGINT"
TLS_HANDSHAKES = f"observer:VARCHAR id:BIGINT {TLS_TIMES}"


def test_tls_handshakes_to_a_server_have_the_times_of_each_side(tables: Tables) -> None:
    tables.given("connections", "id in_window to_instance", (1, True, "s-1"), (2, False, "s-1"), (3, True, "s-2"),
                 (4, True, "s-1"), (5, True, "s-1"), observer="s")  # fmt: skip
    times = [(each, 10, 30, 35, 40) for each in (1, 2, 3)] + [(4, 10, None, None, None)]
    names = TLS_TIMES.replace(":BIGINT", "")
    tables.given("tls_handshakes", f"id {names}", *times, observer="s")
    assert sorted(tables.made("tls_handshakes_to", instance="s-1"), key=str) == [(30, 20, 5), (None, None, None)]


def test_one_sided_are_counted_with_those_of_the_client_s_side(apart: Tables) -> None:
    rows = [("one-sided", 4), ("one-sided", 0), ("answered", 4)]
    apart.given("ledger", "outcome client_packets", *rows, observer="a")
    assert apart.made("one_sided", observer="a") == [(2, 1)]


def test_told_are_failures_stalls_and_long_waits(apart: Tables) -> None:
    columns = "id outcome cause:VARCHAR syns_lost to_instance first_byte_us"
    rows = [(1, "answered", None, 0, "a>s:80", 5), (2, "answered", None, 0, "a>s:80", 900),
            (3, "refused", "x", 0, "a>s:80", 5), (4, "answered", None, 0, "a>s:81", 5),
            (5, "refused", None, 0, "a>s:*", 5)]  # fmt: skip
    apart.given("ledger", columns, *rows, **(without(TOLD, "to_instance", "first_byte_us") | ENDS))
    apart.given("flows", "observer id syn_times_us", ("a", 3, [7, 9]))
    apart.given("tls_handshakes", TLS_HANDSHAKES, ("a", 1, 10, 20, 700, 700))
    found = apart.made("told", observer="a", stalled=[4], alerts=[""], long_us=500, alike=3)
    assert [(row[0], row[-2]) for row in found] == [(3, [7, 9]), (4, None), (2, None), (1, None)]


def test_told_keeps_connections_apart_whose_alerts_differ(apart: Tables) -> None:
    columns = "id outcome cause:VARCHAR syns_lost to_instance first_byte_us"
    rows = [(each, "answered", None, 0, "a>s:80", 5) for each in (1, 2, 3)]
    apart.given("ledger", columns, *rows, **(without(TOLD, "to_instance", "first_byte_us") | ENDS))
    apart.given("flows", TOLD_FLOWS)
    apart.given("tls_handshakes", TLS_HANDSHAKES)
    asked = {"observer": "a", "stalled": [1, 2, 3], "alerts": ["x", "x", "y"], "long_us": 500, "alike": 1}
    assert sorted((row[0], row[-1]) for row in apart.made("told", **asked)) == [(1, 1), (3, 0)]


def test_of_more_alike_than_are_told_the_last_one_says_how_many(apart: Tables) -> None:
    always = without(TOLD, "id") | ENDS | {"outcome": "refused", "cause": "x", "syns_lost": 0}
    apart.given("ledger", "id", (1,), (2,), (3,), (4,), **always)
    apart.given("flows", TOLD_FLOWS)
    apart.given("tls_handshakes", TLS_HANDSHAKES)
    query = apart.made("told", observer="a", stalled=[], alerts=[], long_us=500, alike=3)
    assert [row[-1] for row in query] == [0, 0, 1]


def test_endings_of_both_ends_count_at_the_server_s(apart: Tables) -> None:
    columns = "observer direction outcome closed_by:VARCHAR client_port to_instance"
    rows = [
        ("web", "in", "reset", "server", 1, "web:80"), ("web", "in", "reset", "client", 2, "web:80"),
        ("lb", "out", "reset", "server", 1, "lb>s:80"), ("lb", "out", "refused", "server", 3, "lb>s:80"),
        ("lb", "out", "refused", "server", 4, "lb>s:*"),
    ]  # fmt: skip
    apart.given("ledger", columns, *rows, **without(ENDS, "client_port"))
    assert apart.made("endings", observer="web") == [("in", "reset", 80, "s:80", 1)]
    assert apart.made("endings", observer="lb") == [("out", "refused", 80, "s:80", 1)]


def test_answers_are_those_of_one_listener(apart: Tables) -> None:
    columns = "id to_instance direction"
    apart.given(
        "ledger", columns, (1, "a:80", "in"), (2, "a:80", "in"), (3, "a:81", "in"), (4, "a:80", "in"), observer="a"
    )
    times = [(1, 100), (2, 300), (3, 900), (4, None)]
    apart.given("connections", "id server_first_data_time_us", *times, observer="a")
    assert apart.made("answers", server="a:80") == [(2, 100, 300)]


def test_scans_open_questions_and_logged_ends_are_counted(apart: Tables) -> None:
    columns = "server_port outcome cause:VARCHAR synack_count to_instance"
    rows = [
        (1, "refused", None, 0, "a>s:*"),
        (2, "half-open", None, 4, "a>s:*"),
        (80, "never-answered", "unexplained", 0, "a>s:80"),
    ]
    always = without(ENDS, "server_port") | {"observer": "a", "syn_count": 2, "direction": "out"}
    apart.given("ledger", columns, *rows, **always)
    assert apart.made("scans", observer="a") == [("c", "s", 4, 2, 1, 4)]
    assert apart.made("open_questions", observer="a") == [("out", "never-answered", "s:80", 1, 2)]
    assert apart.made("ended_as_logged", server="s:80", outcomes=["never-answered"]) == [(True, 1)]
    assert apart.made("ended_as_logged", server="t:80", outcomes=["never-answered"]) == [(False, 0)]
    assert apart.made("logged", clients=["c:1000", "c:1"]) == [(1,)]


def test_captured_once_has_no_copies_of_syns_where_most_came_twice(apart: Tables) -> None:
    columns = "observer id syn_count syn_times_us synack_count synack_times_us"
    rows = [("any", 1, 4, [10, 40, 1_000_010, 1_000_030], 2, [1_000_100, 1_000_120]), ("any", 2, 2, [50, 70], 0, []),
            ("eth0", 3, 2, [10, 1_000_010], 1, [1_000_100])]  # fmt: skip
    apart.given("captured", columns, *rows)
    assert apart.made("doubled") == [("any",)]
    assert apart.made("captured_once", "id, syn_count, syn_times_us, synack_count") == [
        (1, 2, [10, 1_000_010], 1), (2, 1, [50], 0), (3, 2, [10, 1_000_010], 1),
    ]  # fmt: skip
