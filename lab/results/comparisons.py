"""What `connlab compare` is given, found in the results, compared, and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import suggested
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.nearest import did_you_mean
from lab.results import find
from lab.run.manifest import FILE as MANIFEST_FILE
from lab.scenario import places
from lab.series import matrix_file, record

if TYPE_CHECKING:
    from analysis.compare import Comparison, SeriesVerdict
    from analysis.compare.series import Plan

# Runs of the same scenario are read to learn of the noise; those of last year say no more than the last few.
_OTHERS_MAX = 200


@dataclass(frozen=True)
class Compared:
    """A comparison, the folder of comparison.json and comparison.html, and the verdict on its series, if it is one."""

    comparison: Comparison
    folder: Path
    verdict: SeriesVerdict | None = None


def of_runs(a: Sequence[str], b: Sequence[str]) -> Compared:
    """Compare two groups of runs and write what came out.

    Args:
        a: the runs to compare with, each as `find_run` takes it, or all of a cell as `<series>:<cell>`.
        b: the others.

    Raises:
        BadInput: a name that is none, or runs that cannot be compared.
    """
    from analysis import compare  # noqa: PLC0415  it brings scipy, which only this command needs

    if not a or not b:
        raise BadInput(
            Problem("a comparison takes two groups of runs", way_on="give A=<run> B=<run>, or MATRIX=<name>")
        )
    runs_a, runs_b = runs_of(a), runs_of(b)
    scenarios = {folder.parent for folder in (*runs_a, *runs_b)}
    others = sorted((run.parent for each in scenarios for run in each.glob(f"*/{MANIFEST_FILE}")), reverse=True)
    with refusals():
        comparison = compare.compare(runs_a, runs_b, [run for run in others[:_OTHERS_MAX] if not run.is_symlink()])
    name = f"{runs_a[0].parent.name}-{runs_a[0].name}-and-{runs_b[0].name}"
    return _written(comparison, paths.RESULTS / "comparisons" / name, paths.RESULTS)


def of_series(name: str) -> Compared:
    """Compare the cells of a series and write what came out.

    Args:
        name: its folder, its id, or the matrix or scenario whose newest series it is.

    Raises:
        BadInput: there is no such series, or its runs cannot be compared.
    """
    from analysis import compare  # noqa: PLC0415  as above

    folder = find_series(name)
    with refusals():
        # The folder of all runs is that beside which the series lies, wherever it was copied to.
        verdict, results = compare.series_verdict(folder), folder.parent.parent
        return _written(compare.compare_series(folder), folder / "derived", results, verdict)


def _written(comparison: Comparison, folder: Path, results: Path, verdict: SeriesVerdict | None = None) -> Compared:
    from analysis.pages import comparison_page  # noqa: PLC0415  as above

    if folder.parent.is_symlink():
        raise BadInput(Problem(f"{folder.parent} is a link; the lab writes through none", way_on="remove it"))
    folder.mkdir(parents=True, exist_ok=True)
    comparison_page.write(comparison, folder, results, verdict)
    return Compared(comparison, folder, verdict)


class refusals:  # noqa: N801  a context manager reads as a verb
    """Turns what the analysis refuses into bad input."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from analysis.compare import CompareError  # noqa: PLC0415  as above

        if isinstance(error, CompareError):
            raise BadInput(Problem(str(error))) from None


def runs_of(names: Iterable[str]) -> list[Path]:
    """Find runs, each as `find_run` takes it, or all of a cell as `<series>:<cell>`.

    Raises:
        BadInput: a name that is none.
    """
    found: list[Path] = []
    for name in names:
        series, colon, cell = name.rpartition(":")
        found += _of_cell(find_series(series), cell) if colon else [find.find_run(name)]
    return found


def is_series(folder: Path) -> bool:
    """Whether a folder is a series'."""
    return (folder / record.FILE).is_file()


def cells(folder: Path) -> list[str]:
    """Give the cells of a series.

    Raises:
        BadInput: it cannot be read.
    """
    return [each.cell for each in _plan(folder).cells]


def _of_cell(folder: Path, cell: str) -> list[Path]:
    """Give the runs of a cell that completed."""
    series = _plan(folder)
    cells = [each.cell for each in series.cells]
    if cell not in cells:
        raise BadInput(Problem(f"the series {series.series} has no cell '{cell}'", way_on=did_you_mean(cell, cells)))
    runs = [place.run for place in series.runs if place.cell == cell and place.status == "complete"]
    found = [paths.RESULTS / run for run in runs if run is not None]
    if not found:
        raise BadInput(Problem(f"no run of the cell '{cell}' completed in {series.series}", way_on="run it again"))
    return found


def find_series(name: str) -> Path:
    """Find a series by its folder, its id, or the newest of a matrix or scenario.

    Raises:
        BadInput: there is none.
    """
    root = record.root()
    for folder in (Path(name), root / name):
        if name and is_series(folder):
            return folder.resolve()
    ids = sorted((file.parent.name for file in root.glob(f"*Z-*/{record.FILE}")), reverse=True)
    named = {series_id.split("-", 2)[2]: series_id for series_id in reversed(ids)}
    if name in named:
        return root / named[name]
    what = f"no series of '{name}'" if name else "no series is named"
    way_on = _not_run(name) or did_you_mean(name, named) or "run one first: make matrix MATRIX=<name>"
    raise BadInput(Problem(f"{what} below {paths.shown(root)}", way_on=way_on))


def _not_run(name: str) -> str | None:
    """Say how to run what has a name and no series yet."""
    if name in matrix_file.names():
        return f"run it first: {suggested.make('matrix', {'MATRIX': name})}"
    if name in places.slugs():
        return f"run it first: {suggested.make('run', {'SCENARIO': name})}"
    return None


def _plan(folder: Path) -> Plan:
    from analysis.compare import series  # noqa: PLC0415  as above

    with refusals():
        return series.read_plan(folder)
