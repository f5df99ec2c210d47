"""The files of SQL: each makes the table that it is named after, or is one query. sqlfluff sees to their layout."""

import re
from pathlib import Path

import duckdb
import pytest

from analysis.derivation import judge
from analysis.diagnosis.joins import Joined
from tests.analysis.support import RunFolder

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "analysis").rglob("*.sql"))
# A system that was only watched has another account, with a database of its own.
_OBSERVED = (
    "came_and_taken", "crossing", "failed_at", "listeners", "peers", "places", "queues", "servers", "time_wait_most",
)  # fmt: skip
# The tables that the others are about are not those of a run's account: test_sql_rows_apart.py makes them.
# These read a run's files, or have what others are made with.
_READING = ("captured_of_instance", "macros_of_evidence", "macros_of_records", "records")
_ROOMS = ("evidence", "observed", "reports")
APART = [path for path in FILES if path.parent.parent.name in _ROOMS or path.stem in (*_OBSERVED, *_READING)]
OF_A_RUN = [path for path in FILES if path not in APART]

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
of_macros = [path for path in FILES if path.stem.startswith("macros_")]


def test_no_two_files_that_are_put_to_rows_have_one_name() -> None:
    for paths in (APART, OF_A_RUN):
        assert sorted({path.stem for path in paths}) == sorted(path.stem for path in paths)


def table(path: Path) -> str | None:
    """The table, or the view, that a file makes or goes on making; None if it is a query."""
    found = re.findall(
        r"^(?:CREATE (?:OR REPLACE )?TABLE|CREATE VIEW|INSERT INTO|UPDATE) (\w+)", path.read_text(), re.MULTILINE
    )
    return str(found[0]) if found else None


@pytest.mark.parametrize("path", [path for path in FILES if path not in of_macros], ids=lambda path: path.stem)
def test_it_is_one_statement_that_makes_what_it_is_named_after(path: Path) -> None:
    (statement,) = duckdb.extract_statements(path.read_text())
    made = table(path)
    assert (made is None) == (statement.type == duckdb.StatementType.SELECT)
    assert made is None or re.fullmatch(rf"{made}(_\w+)?", path.stem)
    assert path.parent.name == "sql"


@pytest.mark.parametrize("path", of_macros, ids=lambda path: path.stem)
def test_macros_are_all_that_a_file_of_macros_makes(path: Path) -> None:
    text = path.read_text()
    assert len(duckdb.extract_statements(text)) == len(re.findall("^CREATE MACRO ", text, re.MULTILINE))


@each_file
def test_it_begins_with_what_it_makes(path: Path) -> None:
    assert path.read_text().startswith("-- ")


def test_a_run_makes_all_of_them(run: RunFolder) -> None:
    joined = judge(run.write()).run.joined
    assert isinstance(joined, Joined)
    joined.need("attributed")
    assert {table(path) for path in OF_A_RUN} - {None} - {row["name"] for row in joined.rows("SHOW TABLES")} == set()
