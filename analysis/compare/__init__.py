"""Comparisons of runs: what was set differently, which counters moved, which packets, and what users felt.

In: manifests and derived/ of runs, also of another machine. Out: a comparison, and its file.
It must not know raw files, nor how a comparison is shown.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from analysis.compare import verdict
from analysis.compare.comparison import compare_cells, compare_groups
from analysis.compare.comparison_file import Comparison
from analysis.compare.replicates import CompareError, load_group, load_series
from analysis.compare.verdict import SeriesVerdict
from analysis.output import make_folder

__all__ = [
    "CompareError",
    "Comparison",
    "SeriesVerdict",
    "compare_runs",
    "compare_series",
    "judge_series",
    "write_verdict",
]


def compare_runs(a: Sequence[Path], b: Sequence[Path], others: Iterable[Path] = ()) -> Comparison:
    """Compare two groups of runs by their folders, each of repetitions; others that repeat a or b tell of the noise.

    Raises:
        CompareError: something that is not a run, or runs that cannot be compared.
    """
    return compare_groups(load_group("A", a), load_group("B", b), others)


def compare_series(folder: Path) -> tuple[Comparison, SeriesVerdict]:
    """Compare the cells of a series, whose folder lies below the results with the runs that it names, and judge it.

    Raises:
        CompareError: there is no series, or its runs cannot be compared.
    """
    series = load_series(folder)
    found = verdict.judge_series(series)
    return compare_cells(series, found), found


def judge_series(folder: Path) -> SeriesVerdict:
    """Judge a series and write its verdict; what is raised is as for `compare_series`, and OSError."""
    found = verdict.judge_series(load_series(folder))
    write_verdict(folder, found)
    return found


def write_verdict(folder: Path, found: SeriesVerdict) -> None:
    """Write derived/verdict.json into a series' folder; raise OSError if it cannot be written."""
    make_folder((folder / found.file).parent)
    found.write(folder)
