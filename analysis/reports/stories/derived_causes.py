"""Reads from the ledger's derived/requests.parquet why requests failed or were slow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from analysis.database import over_files, sql
from analysis.evidence.rawfiles import descriptor_path
from analysis.reports.stories.parts import AttributedCause
from formats.safe_open import open_within
from formats.sanitize import visible

if TYPE_CHECKING:
    from analysis.reports.stories.select import Key

FILE = Path("derived") / "requests.parquet"


def load_causes(folder: Path) -> dict[Key, AttributedCause] | None:
    """The cause of each request that has one; None if the run was not analysed, or its file cannot be read.

    Args:
        folder: the run's.
    """
    try:
        with open_within(folder, FILE) as file, over_files() as database:
            found = database.execute(sql(__name__, "derived_causes"), {"path": descriptor_path(file)}).fetchall()
    except (OSError, duckdb.Error):
        return None
    return {
        (instance, id_): AttributedCause(cause, visible(evidence or "")) for instance, id_, cause, evidence in found
    }
