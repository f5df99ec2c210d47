"""What costs a test most is the same for nearly all tests: it is done once, and remembered by what the files hold.

A run's files are read, its captures reduced, its queries parsed. What is not a plain file is not remembered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pytest

from analysis import database
from analysis.diagnosis import observed
from analysis.diagnosis.health import arrivals
from analysis.evidence import flows, records, samples

_Read = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def remembered() -> Iterator[None]:
    """Let what reads a run's files and captures remember them; for a conftest.py to import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "read", by_content(samples.read))
        patch.setattr(arrivals, "_first", by_content(arrivals._first))  # noqa: SLF001  no test asks for more
        patch.setattr(flows, "run", reduced_once(flows.run))
        for module in (records, observed):
            patch.setattr(module, "in_memory", lambda: Connection(database.in_memory()))
        yield
    _parsed.cache_clear()


def by_content(read: _Read) -> _Read:
    """Remember what a function makes of a file, which is its first argument."""
    known: dict[tuple[bytes, str], Any] = {}

    def remembering(path: Path, *arguments: object, **named: object) -> Any:  # noqa: ANN401  whatever it reads
        if not path.is_file() or path.resolve() != path.absolute():
            return read(path, *arguments, **named)
        key = (_digest(path.read_bytes()), repr((arguments, sorted(named.items()))))
        if key not in known:
            known[key] = read(path, *arguments, **named)
        return known[key]

    return remembering


def reduced_once(run: _Read) -> _Read:
    """Remember what `flows` said of a capture, and the file that it wrote."""
    known: dict[tuple[object, ...], tuple[Any, bytes | None]] = {}

    def remembering(capture: BinaryIO, options: Sequence[str], stdin: str = "", lines: BinaryIO | None = None) -> Any:  # noqa: ANN401  as `run`
        if lines is not None:
            return run(capture, options, stdin, lines)
        out = Path(options[1]) if options[0] == "--out" else None
        asked = options[0] if out else tuple(options)
        content = os.pread(capture.fileno(), os.fstat(capture.fileno()).st_size, 0)
        key = (*map(os.environ.get, ("CONNLAB_FLOWS", "PATH")), asked, stdin, _digest(content))
        if key not in known:
            done = run(capture, options, stdin)
            known[key] = done, out.read_bytes() if out and out.is_file() else None
        done, written = known[key]
        if out and written is not None:
            out.write_bytes(written)
        return done

    return remembering


class Connection:
    """A connection of DuckDB that parses each query once in a process."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def execute(self, query: str, parameters: object = None) -> Connection:
        *first, last = _parsed(query)
        for statement in first:
            self._connection.execute(statement)
        self._connection.execute(last, parameters)
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the connection has
        return getattr(self._connection, name)


@cache
def _parsed(query: str) -> list[duckdb.Statement]:
    return duckdb.extract_statements(query)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
