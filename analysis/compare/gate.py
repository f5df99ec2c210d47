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
from typing import TYPE_CHECKING

import numpy as np

from analysis.compare import intervals, replicates
from analysis.compare.differences import changes
from analysis.compare.groups import require_comparable
from analysis.compare.incomparable import CompareError
from analysis.compare.intervals import Interval
from analysis.figures import catalogue

if TYPE_CHECKING:
    from analysis.compare.differences import SettingChange
    from analysis.compare.groups import Group
    from analysis.compare.replicates import Values

BY_CHANCE_MAX = 0.001
# Relabelings are counted one by one up to so many, and drawn beyond.
_COUNTED_MAX, _DRAWN = 200_000, 99_999
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
        """How much worse than this mean a figure may be, in its unit."""
        return self.value * abs(mean) if self.relative else self.value

    def __str__(self) -> str:
        """As it was given."""
        return f"{100 * self.value:g} %" if self.relative else f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate found.

    Attributes:
        figure: its name.
        unit: its unit, empty for a count.
        greater_is_better: which way is worse.
        limit: how much worse it may be.
        a, b: the means of the baseline and of what is judged; None without a value.
        runs_a, runs_b: the runs that count.
        worse_by: the interval of how much worse b is, in the figure's unit; None without two runs of each.
        by_chance: how often runs of the same program, dealt out at random, differ as much beyond the limit.
        outcome: what follows.
        why: why it is unknown; None if it is not.
        unasked: settings that differ though nobody set them.
    """

    figure: str
    unit: str
    greater_is_better: bool
    limit: Limit
    a: float | None
    b: float | None
    runs_a: int
    runs_b: int
    worse_by: Interval | None
    by_chance: float | None
    outcome: GateOutcome
    why: str | None
    unasked: tuple[SettingChange, ...]


def judge(a: Group, b: Group, figure: str, limit: Limit, *, greater_is_better: bool | None = None) -> Gate:
    """Judge whether a figure is worse in b than in a, by more than a limit.

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
    found = changes(a.example, b.example)
    for change in found:
        if change.name in _MACHINE:
            raise CompareError(
                f"{change.name} is {change.a} in {a.example.name} and {change.b} in {b.example.name}: make the baseline"
                " on the machine that is to be judged"
            )
    if greater_is_better is None:
        greater_is_better = _direction(figure)
    values_a, values_b = (replicates.values(group.used, figure) for group in (a, b))
    if not values_a and not values_b:
        _require_known(figure, a, b)
    declared = catalogue.find(figure)
    sign = -1 if greater_is_better else 1
    decided = decide(tuple(sign * v for v in values_a), tuple(sign * v for v in values_b), limit)
    return Gate(
        figure=figure,
        unit=declared[0].unit if declared else "",
        greater_is_better=greater_is_better,
        limit=limit,
        a=_mean(values_a),
        b=_mean(values_b),
        runs_a=len(values_a),
        runs_b=len(values_b),
        worse_by=decided.worse_by,
        by_chance=decided.by_chance,
        outcome=decided.outcome,
        why=decided.why,
        unasked=tuple(change for change in found if not change.asked),
    )


def _direction(figure: str) -> bool:
    if _GREATER_IS_BETTER.fullmatch(figure):
        return True
    if _LESS_IS_BETTER.fullmatch(figure):
        return False
    raise CompareError(f"whether more of {figure} is better or worse is not known: say --better more or --better less")


def _require_known(figure: str, a: Group, b: Group) -> None:
    for group in (a, b):
        for run in group.used:
            if figure in run.why:
                return
    known = replicates.names([a, b])
    near = catalogue.nearest(figure, known)
    raise CompareError(f"no run has the figure {figure}{f'; did you mean {near}?' if near else ''}")


def _mean(values: Values) -> float | None:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True, slots=True)
class Decided:
    """What two groups of values say; see `Gate`."""

    outcome: GateOutcome
    why: str | None
    worse_by: Interval | None = None
    by_chance: float | None = None


def decide(a: Sequence[float], b: Sequence[float], limit: Limit) -> Decided:
    """Decide by values of which smaller ones are better: a of the baseline, b of what is judged."""
    if not a or not b:
        which = "the baseline" if not a else "what is judged"
        return Decided(GateOutcome.UNKNOWN, f"no usable run of {which} knows the figure")
    if min(len(a), len(b)) < 2:  # noqa: PLR2004  one run has no spread
        return Decided(GateOutcome.UNKNOWN, f"one run tells nothing of noise; give {FEWEST} of each")
    allowed = limit.of(sum(a) / len(a))
    pair = (tuple(a), tuple(b))
    worse_by = replicates.difference_intervals([pair])[pair]
    if worse_by.high <= allowed:
        return Decided(GateOutcome.PASSED, None, worse_by)
    # A share of the baseline moves with it: the same runs, each worse by the limit, are what b must lie beyond.
    shifted = [value + (limit.value * abs(value) if limit.relative else limit.value) for value in a]
    by_chance = _by_chance(shifted, b)
    if worse_by.low > allowed and by_chance <= BY_CHANCE_MAX:
        return Decided(GateOutcome.WORSE, None, worse_by, by_chance)
    return Decided(GateOutcome.UNKNOWN, _too_few(a, b, allowed), worse_by, by_chance)


def _too_few(a: Sequence[float], b: Sequence[float], allowed: float) -> str:
    """Say how many runs would tell."""
    spread = intervals.spread([a, b])
    beyond = sum(b) / len(b) - sum(a) / len(a) - allowed
    needed = intervals.repetitions_needed(beyond, spread.deviation) if spread else None
    told = f"{len(a)} and {len(b)} runs cannot tell"
    if needed is None or needed >= intervals.REPETITIONS_MAX:
        return f"{told}: the difference lies at the limit"
    return f"{told}; about {max(needed, FEWEST)} of each would"


def _by_chance(a: Sequence[float], b: Sequence[float]) -> float:
    """How many of the ways to deal all these values out to two groups have a mean of b at least as much above a's."""
    together, n = np.array([*a, *b], dtype=np.float64), len(b)
    # The sum of b alone decides: that of all is always the same.
    least = math.fsum(b) - 1e-9 * float(np.abs(together).sum())
    if math.comb(len(together), n) <= _COUNTED_MAX:
        sums = _sums(together, n)
        return float(np.count_nonzero(sums >= least) / len(sums))
    rng = np.random.default_rng(intervals.SEED)
    drawn = rng.permuted(np.tile(together, (_DRAWN, 1)), axis=1)[:, :n].sum(axis=1)
    return float((1 + np.count_nonzero(drawn >= least)) / (1 + _DRAWN))


def _sums(values: intervals.Floats, n: int) -> intervals.Floats:
    """The sum of each choice of n of the values."""
    found = [np.zeros(1)] + [np.empty(0)] * n
    for value in values:
        for size in range(n, 0, -1):
            found[size] = np.concatenate([found[size], found[size - 1] + value])
    return found[n]


# The fewest runs of each group of which `worse` can be said.
FEWEST = next(n for n in range(2, 100) if 1 / math.comb(2 * n, n) <= BY_CHANCE_MAX)
