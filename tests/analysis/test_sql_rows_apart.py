"""What each file of SQL makes of a few rows, where its tables are not those of a run's account."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from analysis.database import in_memory
from tests.analysis.test_sql import APART, table

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

    def made(self, file: str, columns: str = "*", **parameters: object) -> list[tuple[Any, ...]]:
        """Run a file and give these columns of all rows of its table; of a query, its rows."""
        found = self.database.execute(PATHS[file].read_text(), parameters)
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
    in_queue_us BIGINT, answered_us BIGINT"""


def of_ledger(port: int, outcome: str, **values: object) -> tuple[Any, ...]:
    row = {
        "observer": "a", "direction": "in", "to_instance": "a:80", "client_address": "c", "client_port": port,
        "server_address": "s", "server_port": 80, "client_isn": 7, "outcome": outcome, "cause": None, "syn_count": 1,
        "time_wait_owner": None, "first_time_us": 0, "last_time_us": 10, "queued_us": None, "in_queue_us": None,
        "answered_us": None,
    } | values  # fmt: skip
    return tuple(row.values())


def test_peers_with_the_most_failed_connections_come_first(rows: Rows) -> None:
    rows.given(
        "ledger", LEDGER,
        of_ledger(1, "ok"), of_ledger(2, "healed"), of_ledger(3, "refused", client_address="d"),
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
        of_ledger(5, "never-accepted"), of_ledger(6, "given-up"), of_ledger(7, "healed"),
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
