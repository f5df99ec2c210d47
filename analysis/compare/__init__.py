"""Comparisons of runs: what was set differently, which counters moved, which packets, and what users felt.

In: manifests and derived/ of runs, also of another machine. Out: a comparison, and its file.
It must not know raw files, nor how a comparison is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.compare import comparison, groups, verdict
from analysis.compare import series as series_file
from analysis.compare.comparison_file import Comparison
from analysis.compare.incomparable import CompareError
from analysis.compare.verdict import SeriesVerdict
from analysis.output import make_folder, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = [
    "CompareError",
    "Comparison",
    "SeriesVerdict",
    "compare",
    "compare_series",
    "series_verdict",
]


def compare(a: Sequence[Path], b: Sequence[Path], others: Iterable[Path] = ()) -> Comparison:
    """Compare two groups of runs.

    Args:
        a: the folders of the runs to compare with, repetitions of one another.
        b: those of the others.
        others: folders of any runs: those that are further repetitions of a or b tell of the noise.

    Raises:
        CompareError: something that is not a run, or runs that cannot be compared.
    """
    return comparison.of_groups(groups.group("A", a), groups.group("B", b), others)


def compare_series(folder: Path) -> Comparison:
    """Compare the cells of a series.

    Args:
        folder: the folder with series.json, at its place below the results with the runs that it names.

    Raises:
        CompareError: there is no series, or its runs cannot be compared.
    """
    series = series_file.read(folder)
    return comparison.of_series(series, verdict.of_series(series))


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
    make_folder((folder / verdict.FILE).parent)
    write(folder / verdict.FILE, found.to_json())
    return found
