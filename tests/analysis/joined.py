"""What the joins make of a run's requests, by the columns of requests.parquet and without writing it."""

from pathlib import Path
from typing import Any

from analysis.derivation import judge
from analysis.diagnosis.joins import Joined
from analysis.verdicts.parquet_files import REQUESTS


def one_request(folder: Path, *columns: str) -> tuple[Any, ...]:
    """The values of these columns of a run's only request."""
    joined = judge(folder).run.joined
    assert isinstance(joined, Joined)
    (found,) = joined.rows(f"SELECT {', '.join(columns)} FROM ({REQUESTS})")  # noqa: S608  names of our own
    return tuple(found.values())
