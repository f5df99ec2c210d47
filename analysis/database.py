"""DuckDB within this process. It is started once: a start takes longer than most queries over a run.

- `over_files()`: for queries over files, on all processors;
- `in_memory()`: a database of its own, on one processor, so that rows come in the same order each time;
- `sql()`: what makes its tables, or a query, each in a file of its own.
"""

import glob
import re
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from string import Template
from typing import Any, TypeAlias
from uuid import uuid4

import duckdb
import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
Row: TypeAlias = dict[str, Any]

# A file that was written again is read again.
_ANEW: dict[str, Any] = {"enable_external_file_cache": False}

# What a run's tables may hold of memory, until `may_use` allows more.
MEMORY_MB = 1000

_numbers = count(1)


def over_files() -> duckdb.DuckDBPyConnection:
    """Return a connection for queries over files; what it registers is its own. Close it."""
    return _over_files().cursor()


def in_memory() -> duckdb.DuckDBPyConnection:
    """Return a connection to a new and empty database, which lasts as long as this object; times are UTC."""
    name = f"run_{next(_numbers)}"
    connection = _in_memory().cursor()
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}; SET TimeZone = 'UTC'")
    weakref.finalize(connection, _detach, name).atexit = False
    return connection


def literal(path: Path) -> str:
    """Spell a file's path for DuckDB, which takes a path for a pattern: a folder may be named `r[1]`."""
    return glob.escape(str(path))


def may_use(database: duckdb.DuckDBPyConnection, megabytes: int) -> None:
    """Let the tables of this process hold so much memory; what is more goes to the disk."""
    database.execute(f"SET memory_limit = '{megabytes}MB'")


def create(database: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]) -> None:
    """Make an empty table."""
    # A word of SQL, such as group, may be a column's name too.
    described = ", ".join(f'"{name}" {type_}' for name, type_ in columns.items())
    database.execute(f"CREATE TABLE {table} ({described})")


def insert(database: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, Any], select: str = "*") -> None:
    """Append columns, each a NumPy array or a list, to a table."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    database.register("incoming", arrays)
    database.execute(f"INSERT INTO {table} BY NAME SELECT {select} FROM incoming")  # noqa: S608  names of our own
    database.unregister("incoming")


def insert_rows(
    database: duckdb.DuckDBPyConnection,
    table: str,
    names: Iterable[str],
    rows: Sequence[Sequence[object]],
    select: str = "*",
) -> None:
    """Append rows, whose values have these names, to a table: a statement for each row takes far longer."""
    if rows:
        columns = zip(names, zip(*rows, strict=True), strict=True)
        insert(database, table, {name: _array(values) for name, values in columns}, select)


def _array(values: Sequence[object]) -> npt.NDArray[Any]:
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    found = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        # NumPy takes lists of one length for a second dimension.
        found[at] = value
    return found


@cache
def sql(module: str, name: str) -> str:
    """Read the SQL that makes a table, or a query, from the folder `sql` beside a module.

    Args:
        module: the module's `__name__`, or that of a package, whose `__init__` is beside the folder.
        name: the file's, without its ending; it begins with the table's name.
    """
    package = sys.modules[module].__package__
    return (files(str(package)) / "sql" / f"{name}.sql").read_text(encoding="utf-8").rstrip().removesuffix(";")


def composed(module: str, name: str, **parts: str) -> str:
    """Read the SQL of a query of which some parts, each a `$name`, are SQL from the record of what it is about.

    A cause has its proof in its record, a format of a log its columns. What a run's files hold is never a part: that
    is a parameter.
    """
    return Template(sql(module, name)).safe_substitute(parts)


# The columns that a query gives; no row changes them.
_COLUMNS: dict[str, dict[str, str]] = {}
_CREATES = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
_MAKES_A_VIEW = re.compile(r"^CREATE VIEW ", re.MULTILINE)


def make(database: duckdb.DuckDBPyConnection, sources: Iterable[str], queries: Mapping[str, Mapping[str, Any]]) -> None:
    """Make tables by queries, with their parameters, if a source has a row; else make them empty.

    A source is a table, or one with a condition. For a small run DuckDB takes longer to plan a query than to run it:
    what has nothing to join is planned once. A view is made in any case.
    """
    found = any(has_rows(database, source) for source in sources)
    for query, parameters in queries.items():
        created = _CREATES.search(query)
        if found or _MAKES_A_VIEW.search(query):
            database.execute(query, parameters)
        elif created and query in _COLUMNS:
            create(database, created[1], _COLUMNS[query])
        elif created:
            database.execute(f"{query} WITH NO DATA", parameters)
            described = database.execute(f"DESCRIBE {created[1]}").fetchall()
            _COLUMNS[query] = {name: type_ for name, type_, *_ in described}


def has_rows(database: duckdb.DuckDBPyConnection, source: str) -> bool:
    """Return whether a table, or a table with a condition, has any row."""
    return database.execute(f"SELECT 1 FROM {source} LIMIT 1").fetchone() is not None  # noqa: S608  names of our own


class Tables:
    """Tables of one database, to be asked."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self.database = database
        self._known: dict[tuple[object, ...], Row] = {}

    def execute(self, query: str, **parameters: object) -> duckdb.DuckDBPyConnection:
        """Run a query."""
        return self.database.execute(query, parameters)

    def rows(self, query: str, **parameters: object) -> list[Row]:
        """Return the rows that a query gives, each as a mapping from column to value."""
        found = self.execute(query, **parameters)
        names = [column[0] for column in found.description]
        return [dict(zip(names, values, strict=True)) for values in found.fetchall()]

    def row(self, query: str, **parameters: object) -> Row:
        """Return the only row of a query, such as counts. The result of each query is kept."""
        key = (query, repr(parameters))
        if key not in self._known:
            (self._known[key],) = self.rows(query, **parameters)
        return self._known[key]

    def integers(self, query: str, **parameters: object) -> Integers:
        """Return the one column of integers that a query gives."""
        (column,) = self.execute(query, **parameters).fetchnumpy().values()
        return np.asarray(column, dtype=np.int64)


def _detach(name: str) -> None:
    with _in_memory().cursor() as connection:
        connection.execute(f"DETACH {name}")


@cache
def _over_files() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config=_ANEW)


@cache
def _in_memory() -> duckdb.DuckDBPyConnection:
    # What does not fit into memory goes to the machine's place for that, not into the user's folder.
    spill = Path(tempfile.gettempdir()) / f"connlab-duckdb-{uuid4()}"
    return duckdb.connect(
        config={
            **_ANEW,
            "threads": 1,
            "memory_limit": f"{MEMORY_MB}MB",
            "temp_directory": str(spill),
            # All values of a column with missing ones say its type: of a part, a later one might not fit into it.
            "pandas_analyze_sample": 1 << 40,
        }
    )
