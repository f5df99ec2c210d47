"""Reads a proxy's access.jsonl: one line for each request it answered, written when the request ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.evidence import bulk

if TYPE_CHECKING:
    from pathlib import Path

# Which lines are records.
WHOLE_LINE = bulk.whole("time_ms", "status")

# One row for each line; see analysis.evidence.bulk. The file has neither header nor end.
_ACCESS = f"""
    SELECT if({WHOLE_LINE}, 0, 4) AS line, 0 AS announced, time_ms, status,
           time_ms - if(request_time BETWEEN 0 AND 1e9, (1000 * request_time)::BIGINT, 0) AS begin_ms
      FROM read_json($path, format = 'newline_delimited', ignore_errors = true,
                     columns = {{time_ms: 'BIGINT', status: 'BIGINT', request_time: 'DOUBLE'}})
"""  # noqa: S608  names of our own


def read(path: Path) -> bulk.Log:
    """Return the columns begin_ms, time_ms (Unix epoch) and status of an access.jsonl; it never raises."""
    return bulk.read(path, _ACCESS, ("time_ms", "begin_ms", "status"))
