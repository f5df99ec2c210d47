"""Groups of runs that are repetitions of one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.compare import runs
from analysis.compare.differences import mixed
from analysis.compare.incomparable import CompareError
from analysis.compare.runs import RunRecord


@dataclass(frozen=True)
class Group:
    """Repetitions of one cell.

    Attributes:
        name: the cell, or the side of a comparison.
        runs: all of them, those that are not evidence too.
    """

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def used(self) -> list[RunRecord]:
        """The runs that are evidence."""
        return [run for run in self.runs if run.unusable is None]

    @property
    def example(self) -> RunRecord:
        """One of them, for their settings: a usable one, if there is any."""
        return (self.used or self.runs)[0]


def group(name: str, folders: Sequence[Path]) -> Group:
    """Read a group; raise CompareError if it is none."""
    if not folders:
        raise CompareError(f"{name} names no run; give at least one run's folder")
    return of_runs(name, [runs.read(folder) for folder in folders])


def of_runs(name: str, records: Sequence[RunRecord]) -> Group:
    """The same of runs that were read."""
    first = records[0]
    for index, record in enumerate(records[1:], start=1):
        # By its name: a copy of a run's folder is the same run.
        if record.name in [each.name for each in records[:index]]:
            raise CompareError(f"{name} names the run {record.name} twice; leave one out")
        if record.scenario != first.scenario:
            raise CompareError(
                f"{name} mixes the scenarios {first.scenario} and {record.scenario}; give runs of one scenario"
            )
        change = mixed(first, record)
        if change is not None:
            raise CompareError(
                f"{name} mixes runs that are not repetitions of each other: {change.name} is {change.a} in {first.name}"
                f" and {change.b} in {record.name}; leave one out, or give them as A and B"
            )
    return Group(name, tuple(records))


def require_comparable(a: Group, b: Group, *, scenarios_differ: bool = False) -> None:
    """Raise CompareError unless two groups can be compared.

    Args:
        a: the one.
        b: the other.
        scenarios_differ: whether they may be of different scenarios, as the cells of a matrix over scenarios are.
    """
    both = {run.name for run in a.runs} & {run.name for run in b.runs}
    if both:
        raise CompareError(f"the run {min(both)} stands on both sides; a run can only be compared with another")
    if not scenarios_differ and a.example.scenario != b.example.scenario:
        raise CompareError(
            f"{a.example.name} and {b.example.name} are of different scenarios, whose figures do not mean the same;"
            " compare runs of one scenario, or write a matrix over both"
        )
