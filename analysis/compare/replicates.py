"""The values of a figure in groups of runs, with their intervals computed for many figures at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from analysis.compare import intervals
from analysis.compare.groups import Group
from analysis.compare.intervals import Interval
from analysis.compare.runs import RunRecord
from analysis.expressions.values import Number

Values: TypeAlias = tuple[Number, ...]
Pair: TypeAlias = tuple[Values, Values]

# Figures that a run has only where something occurred → the figure that says that it was looked for.
_ZERO_IF_ABSENT = (
    (re.compile(r"client\.requests\.(error|status)\."), "client.requests.total"),
    (re.compile(r"access\.(?P<proxy>\w+)\.(status|errors)\."), "access.{proxy}.requests"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure in one group: its value in each run, and the interval of the mean where there are two or more."""

    values: Values
    interval: Interval | None = None

    @property
    def mean(self) -> float | None:
        """The mean of the values, None without any."""
        return sum(self.values) / len(self.values) if self.values else None


def names(groups: Iterable[Group]) -> list[str]:
    """Every figure that is a number in some usable run, in the order of the runs' files."""
    runs = [run for group in groups for run in group.used]
    return list(dict.fromkeys(name for run in runs for name in run.figures if run.number(name) is not None))


def values(runs: Iterable[RunRecord], name: str) -> Values:
    """The value of a figure in each run that knows it."""
    found = [_number(run, name) for run in runs]
    return tuple(value for value in found if value is not None)


def _number(run: RunRecord, name: str) -> Number | None:
    if name not in run.figures:
        for family, looked_for in _ZERO_IF_ABSENT:
            of_family = family.match(name)
            if of_family and run.number(looked_for.format(**of_family.groupdict())) is not None:
                return 0
    return run.number(name)


def mean_intervals(samples: Iterable[Values]) -> dict[Values, Interval]:
    """The interval of each sample's mean; samples of less than two runs have none."""
    by_size: dict[int, list[Values]] = defaultdict(list)
    found: dict[Values, Interval] = {}
    for sample in sorted(set(samples)):
        if len(set(sample)) > 1:
            by_size[len(sample)].append(sample)
        elif len(sample) > 1:
            found[sample] = Interval(sample[0], sample[0])
    for group in by_size.values():
        found.update(zip(group, intervals.mean_intervals(np.array(group, dtype=np.float64)), strict=True))
    return found


def all_mean_intervals(groups: Sequence[Group]) -> dict[Values, Interval]:
    """The interval of the mean of every figure in every group."""
    return mean_intervals(values(group.used, name) for name in names(groups) for group in groups)


def difference_intervals(pairs: Iterable[Pair]) -> dict[Pair, Interval]:
    """The interval of each pair's difference of means; pairs with a sample of less than two runs have none."""
    by_size: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    found: dict[Pair, Interval] = {}
    for pair in sorted(set(pairs)):
        a, b = pair
        if min(len(a), len(b)) > 1 and len(set(a)) == len(set(b)) == 1:
            found[pair] = Interval(b[0] - a[0], b[0] - a[0])
        elif min(len(a), len(b)) > 1:
            by_size[len(a), len(b)].append(pair)
    for group in by_size.values():
        sides = (np.array([pair[side] for pair in group], dtype=np.float64) for side in (0, 1))
        found.update(zip(group, intervals.difference_intervals(*sides), strict=True))
    return found
