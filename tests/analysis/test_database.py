"""The databases of one process: one engine, and nothing that one user leaves to the next."""

import gc
from pathlib import Path

import duckdb
import numpy as np
import pytest

from analysis.database import create, has_rows, in_memory, insert_rows, make, over_files
from analysis.derivation import judge
from analysis.diagnosis.joins import Joined
from tests.analysis.support import USERS, RunFolder


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


@pytest.mark.parametrize("query", ["SELECT count(*) AS n FROM cases", "select count(*) as n\n  from\n       cases"])
def test_a_table_is_made_for_the_first_query_that_reads_it_however_that_is_laid_out(run: RunFolder, query: str) -> None:
    joined = judge(run.write()).run.joined
    assert isinstance(joined, Joined)

    assert joined.rows(query) == [{"n": USERS}]


def test_one_large_number_among_many_missing_ones_is_kept() -> None:
    database = in_memory()
    create(database, "readings", {"files": "BIGINT"})
    rows = [(3_000_000_000 if n == 1601 else n % 2 or None,) for n in range(3200)]
    insert_rows(database, "readings", ["files"], rows)
    assert database.execute("SELECT max(files) FROM readings").fetchone() == (3_000_000_000,)


def test_a_view_is_made_although_nothing_is_there_to_be_joined() -> None:
    database = in_memory()
    create(database, "found", {"id": "BIGINT"})
    make(database, ["found"], {"CREATE VIEW large AS SELECT * FROM found WHERE id > 9": {}})
    assert not has_rows(database, "large")
