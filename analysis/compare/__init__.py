"""Comparisons of runs: what was set differently, which counters moved, which packets, and what users felt.

It reads derived/ and the manifests, never the raw files, and works on results copied from another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.compare import series as series_file
from analysis.compare import verdict
from analysis.compare.errors import CompareError
from analysis.compare.verdict import SeriesVerdict
from analysis.output import write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CompareError", "SeriesVerdict", "series_verdict"]


def series_verdict(folder: Path) -> SeriesVerdict:
    """Judge a series and write derived/verdict.json into its folder.

    Args:
        folder: the folder with series.json, at its place below the results with the runs that it names.

    Returns:
        The verdict, as written.

    Raises:
        CompareError: there is no series, or its runs cannot be compared.
        OSError: the verdict cannot be written.
    """
    found = verdict.of_series(series_file.read(folder))
    write(folder / verdict.FILE, found.to_json())
    return found
