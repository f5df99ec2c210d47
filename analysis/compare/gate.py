"""Whether a figure of one group of runs is worse than that of another by more than a limit, for a machine to act on.

The unit is the run, as in every comparison. `worse` takes two proofs: the interval of the difference lies wholly beyond
the limit, and of all ways to deal the same runs out to the two groups at most one in a thousand gives as great a
difference. The second holds whatever the figure's distribution is: ten gates of a program against itself say `worse`
in less than one of a hundred cases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import stats

from analysis.compare import intervals
from analysis.compare.comparison_file import SettingChange
from analysis.compare.intervals import Floats, Interval, find_intervals
from analysis.compare.narrative import unit_for
from analysis.compare.replicates import (
    CompareError,
    Group,
    figure_names,
    figure_values,
    find_changes,
    require_comparable,
)
from analysis.figures import catalogue
from analysis.output import Written

BY_CHANCE_MAX = 0.001
# Up to so many ways to deal the runs out, all are tried; of more, so many are drawn.
_RESAMPLES = 9_999
_STATUS = r"(client\.requests|access\.\w+)\.status\."
_GREATER_IS_BETTER = re.compile(
    rf"client\.(requests\.ok(_per_second)?|users\.served|dials\.ok|admissions\.total|checks\..*\.rate)"
    rf"|{_STATUS}[23](xx|\d\d)"
)
_LESS_IS_BETTER = re.compile(
    rf"client\.(\w+\.\w+\.)?(latency|dial)_ms\.(failed\.)?\w+|client\..*\.failed(_\w+)?"
    rf"|client\.requests\.error\.\w+|client\.(iterations\.dropped|admissions\.out_of_order)|{_STATUS}[45](xx|\d\d)"
    rf"|ledger\.requests\.(failed|slow)|access\.\w+\.(errors\.\w+|tries\.(connect_timeout|connect_failed|aborted|retried))"
)
# What makes two machines two: times of one say nothing of the other.
_MACHINE = ("host.kernel", "host.cpus")


class GateOutcome(StrEnum):
    """What a gate says."""

    PASSED = "passed"
    WORSE = "worse"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much worse a figure may be: a share of the baseline's mean, or so much of its unit."""

    value: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read `5%` or `2.5`; raise CompareError if it is neither."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip(), re.ASCII)
        if match is None:
            raise CompareError(f"'{text}' is not a limit; give a share of the baseline as 5%, or a difference as 2.5")
        return cls(float(match[1]) / (100 if match[2] else 1), relative=bool(match[2]))

    def of(self, mean: float) -> float:
        """Return how much worse than this mean a figure may be, in its unit."""
        return self.value * abs(mean) if self.relative else self.value

    def __str__(self) -> str:
        """Return the limit as it was given."""
        return f"{100 * self.value:g} %" if self.relative else f"{self.value:g}"


class Decided(Written):
    """What two groups of values say.

    Attributes:
        worse_by: the interval of how much worse b is, in the figure's unit; None without two runs of each.
        by_chance: how often runs of the same program, dealt out at random, differ as much beyond the limit; None
            where the interval does not lie beyond it.
    """

    outcome: GateOutcome
    why: str | None
    worse_by: Interval | None = None
    by_chance: float | None = None


class Gate(Decided):
    """What a gate found: of the baseline a and of what is judged, b, the means, and the runs that count."""

    figure: str
    unit: str
    greater_is_better: bool
    limit: Limit
    a: float | None
    b: float | None
    runs_a: int
    runs_b: int
    unasked: tuple[SettingChange, ...]


def judge(a: Group, b: Group, figure: str, limit: Limit, *, greater_is_better: bool | None = None) -> Gate:
    """Judge whether a figure is worse in b than in a, the baseline, by more than a limit.

    Args:
        a: the baseline.
        b: what is judged.
        figure: a figure's name.
        limit: how much worse it may be.
        greater_is_better: None where the figure's name tells it.

    Raises:
        CompareError: groups that cannot be compared, a figure that there is not, or one whose name does not tell which
            way is better.
    """
    require_comparable(a, b)
    changes = find_changes(a.example, b.example)
    for change in changes:
        if change.name in _MACHINE:
            raise CompareError(
                f"{change.name} is {change.a} in {a.example.name} and {change.b} in {b.example.name}: make the baseline"
                " on the machine that is to be judged"
            )
    if greater_is_better is None:
        greater_is_better = _is_greater_better(figure)
    values_a, values_b = (figure_values(group.used, figure) for group in (a, b))
    if not values_a and not values_b:
        _require_known(figure, a, b)
    sign = -1 if greater_is_better else 1
    decided = decide([sign * value for value in values_a], [sign * value for value in values_b], limit)
    return Gate(
        **dict(decided),
        figure=figure,
        unit=unit_for(figure),
        greater_is_better=greater_is_better,
        limit=limit,
        a=_mean(values_a),
        b=_mean(values_b),
        runs_a=len(values_a),
        runs_b=len(values_b),
        unasked=tuple(change for change in changes if not change.asked),
    )


def _is_greater_better(figure: str) -> bool:
    greater = _GREATER_IS_BETTER.fullmatch(figure) is not None
    if greater or _LESS_IS_BETTER.fullmatch(figure):
        return greater
    raise CompareError(f"whether more of {figure} is better or worse is unknown: give --better more or --better less")


def _require_known(figure: str, a: Group, b: Group) -> None:
    if any(figure in run.why for group in (a, b) for run in group.used):
        return
    near = catalogue.nearest(figure, figure_names([a, b]))
    raise CompareError(f"no run has the figure {figure}{f'; did you mean {near}?' if near else ''}")


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def decide(a: Sequence[float], b: Sequence[float], limit: Limit) -> Decided:
    """Decide by values of which smaller ones are better: a of the baseline, b of what is judged."""
    if not a or not b:
        which = "the baseline" if not a else "what is judged"
        return Decided(outcome=GateOutcome.UNKNOWN, why=f"no usable run of {which} knows the figure")
    if min(len(a), len(b)) < 2:  # noqa: PLR2004  one run has no spread
        return Decided(outcome=GateOutcome.UNKNOWN, why=f"one run tells nothing about noise; give {FEWEST} of each")
    allowed = limit.of(sum(a) / len(a))
    pair = (tuple(a), tuple(b))
    worse_by = find_intervals([pair])[pair]
    if worse_by.high <= allowed:
        return Decided(outcome=GateOutcome.PASSED, why=None, worse_by=worse_by)
    by_chance = None
    if worse_by.low > allowed:
        # A share of the baseline moves with it: the same runs, each worse by the limit, are what b must lie beyond.
        shifted = [value + (limit.value * abs(value) if limit.relative else limit.value) for value in a]
        by_chance = _by_chance(shifted, b)
        if by_chance <= BY_CHANCE_MAX:
            return Decided(outcome=GateOutcome.WORSE, why=None, worse_by=worse_by, by_chance=by_chance)
    why = _too_few(a, b, allowed)
    return Decided(outcome=GateOutcome.UNKNOWN, why=why, worse_by=worse_by, by_chance=by_chance)


def _too_few(a: Sequence[float], b: Sequence[float], allowed: float) -> str:
    """Return how many runs would tell."""
    spread = intervals.spread([a, b])
    beyond = sum(b) / len(b) - sum(a) / len(a) - allowed
    needed = intervals.repetitions_needed(beyond, spread.deviation) if spread else None
    told = f"{len(a)} and {len(b)} runs cannot tell"
    if needed is None or needed >= intervals.REPETITIONS_MAX:
        return f"{told}: the difference lies at the limit"
    return f"{told}; about {max(needed, FEWEST)} of each would"


def _by_chance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return in how many of the ways to deal all these values out to two groups b's mean is as far above a's."""

    def sum_of_b(_a: Floats, b: Floats, axis: int) -> Any:  # noqa: ANN401  a number, or an array
        return b.sum(axis=axis)

    # The sum of b alone decides: that of all is always the same. With all values above zero, rounding is small in it.
    least = min(*a, *b)
    groups = [np.array([value - least for value in group]) for group in (a, b)]
    test = stats.permutation_test(
        groups, sum_of_b, vectorized=True, n_resamples=_RESAMPLES, alternative="greater", rng=intervals.SEED
    )
    return float(test.pvalue)


# The fewest runs of each group of which `worse` can be said.
FEWEST = next(n for n in range(2, 100) if 1 / math.comb(2 * n, n) <= BY_CHANCE_MAX)
