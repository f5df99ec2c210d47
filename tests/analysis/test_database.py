"""The databases of one process: one engine, and nothing that one user leaves to the next."""

import gc
from pathlib import Path

import duckdb
import numpy as np
import pytest

from analysis.database import in_memory, over_files
from analysis.derivation import judge
from analysis.diagnosis.attribution import ACTED, BESIDE
from analysis.diagnosis.joins import Joined
from analysis.diagnosis.joins.connections import OF_LOST_SYNS, SHORTAGES
from analysis.diagnosis.joins.requests import AT_THE_PROXY, PROXIED
from tests.analysis.packets import Connection
from tests.analysis.support import MEASURE_S, USERS, RunFolder, at_us


def databases() -> set[str]:
    with in_memory() as database:
        return {name for (name,) in database.execute("SELECT database_name FROM duckdb_databases()").fetchall()}


def test_each_database_has_tables_macros_and_registered_columns_of_its_own() -> None:
    first, second = in_memory(), in_memory()
    first.execute("CREATE TABLE requests (id BIGINT); CREATE MACRO twice(number) AS 2 * number")
    first.register("incoming", {"id": np.array([1])})

    for query in ("SELECT * FROM requests", "SELECT twice(1)", "SELECT * FROM incoming"):
        first.execute(query)
        with pytest.raises(duckdb.CatalogException):
            second.execute(query)


def test_a_database_that_nobody_holds_any_more_is_gone() -> None:
    database = in_memory()
    ((name,),) = database.execute("SELECT current_database()").fetchall()
    assert name in databases()

    del database
    gc.collect()
    assert name not in databases()


def test_rows_come_in_one_order_and_times_are_utc() -> None:
    with in_memory() as database:
        query = "SELECT current_setting('threads'), current_setting('TimeZone')"
        assert database.execute(query).fetchall() == [(1, "UTC")]


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    for number in (1, 2):
        with over_files() as database:
            database.execute(f"COPY (SELECT {number} AS number) TO '{path}'")
            assert database.execute(f"SELECT number FROM '{path}'").fetchall() == [(number,)]  # noqa: S608  our own


def test_a_table_that_is_made_empty_has_the_columns_that_its_query_gives(proxied_run: RunFolder) -> None:
    """All queries run: a line at the proxy, a SYN that got lost, a dial without a port, and an action."""
    proxied_run.manifest["actions"] = [
        {
            "do": "pause", "instance": "backend-1", "at_ms": 0, "for_ms": 1000, "start_us": at_us(MEASURE_S),
            "end_us": at_us(MEASURE_S + 1), "exit_code": None, "down_us": None,
        }
    ]  # fmt: skip
    proxied_run.clients["k6-1"].dials[5]["error_kind"] = "address-not-available"
    capture = proxied_run.captures["nginx"]
    Connection(capture, "172.18.0.3:41999", "172.18.0.4:8080").syns(MEASURE_S + 1)
    joined = judge(proxied_run.write()).run.joined
    assert isinstance(joined, Joined)
    joined.need("attributed")

    for source in ("access", "request_links", "lost_syns", "port_shortages", "actions"):
        assert joined.rows(f"SELECT 1 FROM {source} LIMIT 1"), source  # noqa: S608  names of our own
    made = AT_THE_PROXY | OF_LOST_SYNS | PROXIED | BESIDE | SHORTAGES | ACTED
    for table, columns in made.items():
        assert {row["column_name"]: row["column_type"] for row in joined.rows(f"DESCRIBE {table}")} == columns


@pytest.mark.parametrize("query", ["SELECT count(*) AS n FROM cases", "select count(*) as n\n  from\n       cases"])
def test_a_table_is_made_for_the_first_query_that_reads_it_however_that_is_laid_out(run: RunFolder, query: str) -> None:
    joined = judge(run.write()).run.joined
    assert isinstance(joined, Joined)

    assert joined.rows(query) == [{"n": USERS}]
