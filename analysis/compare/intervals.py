"""Statistics over runs: intervals of means and of differences, the noise between repetitions, how many it takes.

The unit is the run. Requests of one run share its servers, its machine and its minute, so ten thousand of them are no
ten thousand witnesses. docs/compare.md gives the reasons and the measured coverage.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# The value of a figure in each run of a group, and one or two such groups.
Values: TypeAlias = tuple[int | float, ...]
Groups: TypeAlias = tuple[Values, ...]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

CONFIDENCE = 0.95
POWER = 0.8
RESAMPLES = 9_999
# The same runs give the same bytes.
SEED = 20_150_605

# Beyond this a number of repetitions says no more than "very many".
REPETITIONS_MAX = 1_000

_TAIL = (1 - CONFIDENCE) / 2
# The standard deviation of what rounding to a whole number cuts off.
_ROUNDING = 1 / math.sqrt(12)
# Means that a batch of samples may have at once: 16 MB.
_BATCH_ELEMENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, with the confidence CONFIDENCE."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Return how wide it is."""
        return self.high - self.low

    def has(self, value: float) -> bool:
        """Return whether a value lies in it, its ends included."""
        return self.low <= value <= self.high


def suffice(*sizes: int) -> bool:
    """Return whether one or two groups are large enough for an interval to exclude a value, or zero, honestly.

    A resample never leaves the range of its sample. Two groups from the same source are wholly apart by chance in 2 of
    the C(n + m, n) ways to deal the runs out, and one group lies on one side of a value in 2 of 2ⁿ; if that is more
    often than the interval may err, it cannot keep its word.
    """
    ways = math.comb(sum(sizes), sizes[0]) if len(sizes) > 1 else 1 << sizes[0]
    return min(sizes) > 1 and 2 / ways <= 2 * _TAIL


# The fewest repetitions: of each of two groups, and of one against a fixed value.
FEWEST_OF_TWO = next(n for n in range(2, 100) if suffice(n, n))
FEWEST_OF_ONE = next(n for n in range(2, 100) if suffice(n))


def find_intervals(samples: Iterable[Groups]) -> dict[Groups, Interval]:
    """Return the interval of the mean of each sample of one group, and of the difference of the means of two.

    A sample with a group of less than two runs has none.
    """
    by_size: dict[tuple[int, ...], list[Groups]] = defaultdict(list)
    found: dict[Groups, Interval] = {}
    for groups in sorted(set(samples)):
        sizes = tuple(map(len, groups))
        if min(sizes) > 1 and all(len(set(group)) == 1 for group in groups):
            point = groups[-1][0] - (groups[0][0] if len(groups) > 1 else 0)
            found[groups] = Interval(point, point)
        elif min(sizes) > 1:
            by_size[sizes].append(groups)
    for same_size in by_size.values():
        columns = (np.array(column, dtype=np.float64) for column in zip(*same_size, strict=True))
        found.update(zip(same_size, bootstrap(*columns), strict=True))
    return found


def bootstrap(*groups: Floats) -> list[Interval]:
    """Return the interval of the mean of each row of one group, or of the difference of the means of two.

    A row is a sample, of two runs or more; both groups have as many.
    """
    sizes = [group.shape[1] for group in groups]
    contributions = np.stack([group.var(axis=1, ddof=1) / group.shape[1] for group in groups], axis=1)
    quantiles = np.array([expanded_quantile(row, sizes) for row in contributions])
    taken, times = _ways(*sizes)
    found: list[Interval] = []
    rows = max(1, _BATCH_ELEMENTS // len(times))
    for start in range(0, len(quantiles), rows):
        batch = slice(start, start + rows)
        # Whole numbers are summed up before they are divided: equal means are then equal to the last bit.
        # Not by BLAS: its threads wait busily, and its sums differ by machine.
        means = [
            np.einsum("rn,nw->rw", group[batch], each) / size
            for group, each, size in zip(groups, taken, sizes, strict=True)
        ]
        found += _ends(means[-1] - means[0] if len(means) > 1 else means[0], times, quantiles[batch])
    return found


def expanded_quantile(variances: Sequence[float] | Floats, sizes: Sequence[int]) -> float:
    """Return how many standard deviations of the bootstrap distribution the interval must reach to each side.

    Resampling n runs shows only (n - 1)/n of their variance, and says nothing of not knowing that variance: a plain
    percentile interval of 5 + 5 runs covers 86 % instead of 95 %. Its percentiles are therefore moved out so that for
    normal samples it is as wide as Welch's t interval (Hesterberg 2015, "What Teachers Should Know about the
    bootstrap", The American Statistician 69).

    Args:
        variances: what each group contributes to the variance of the estimate, unbiased.
        sizes: the number of runs in each.
    """
    total = sum(variances)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(v**2 / (n - 1) for v, n in zip(variances, sizes, strict=True))
    shown = sum(v * (n - 1) / n for v, n in zip(variances, sizes, strict=True))
    return _t(freedom) * math.sqrt(total / shown)


def _special() -> ModuleType:
    # It takes a quarter of a second to load, and most commands compute no interval.
    from scipy import special  # noqa: PLC0415

    return special


def _t(freedom: float) -> float:
    """Return where Student's distribution leaves _TAIL above it."""
    return float(_special().stdtrit(freedom, 1 - _TAIL))


def interval_of(distribution: Floats, quantile: float) -> Interval:
    """Return the interval of a bootstrap distribution, so many standard deviations of a normal one to each side."""
    return _ends(distribution[np.newaxis, :], np.ones(len(distribution), dtype=np.int64), np.array([quantile]))[0]


def resamples(n: int, stream: int) -> Integers:
    """Return which of n runs each resample takes, one resample to a row; each stream is independent of the others."""
    return np.random.default_rng([SEED, stream]).integers(0, n, (RESAMPLES, n))


@lru_cache(maxsize=16)
def _ways(*sizes: int) -> tuple[tuple[Floats, ...], Integers]:
    """Return the different ways in which RESAMPLES resamples take the runs of groups of these sizes.

    Few runs can be taken in few ways: two of each group in nine. The draws depend on the sizes alone, so an interval
    does not depend on what else is compared.

    Returns:
        How often each way takes each run, one way to a column, for each group; and how many resamples take that way.
    """
    rng = np.random.default_rng(SEED)
    drawn = [(n, rng.integers(0, n, (RESAMPLES, n))) for n in sizes]
    counts = [np.count_nonzero(runs == run, axis=1) for n, runs in drawn for run in range(n)]
    ways, times = np.unique(np.stack(counts, axis=1), axis=0, return_counts=True)
    return tuple(np.split(ways.T.astype(np.float64, order="C"), np.cumsum(sizes)[:-1])), times


def _ends(values: Floats, times: Integers, quantiles: Floats) -> list[Interval]:
    """Return the interval of each distribution.

    Args:
        values: the values of one distribution to a row.
        times: how often each column's value occurs.
        quantiles: how many standard deviations of a normal distribution each interval reaches to each side.
    """
    found = []
    for row, tail in zip(values, _special().ndtr(-quantiles), strict=True):
        order = row.argsort()
        reached = times[order].cumsum()
        ends = []
        for share in (tail, 1 - tail):
            position = share * (reached[-1] - 1)
            ranks = np.array([math.floor(position), math.ceil(position)])
            low, high = row[order[reached.searchsorted(ranks, side="right")]]
            ends.append(float(low + (high - low) * (position - ranks[0])))
        found.append(Interval(*ends))
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """How far repetitions of the same cell lie apart.

    Attributes:
        deviation: the standard deviation, pooled within the groups.
        freedom: its degrees of freedom: the runs less the groups.
    """

    deviation: float
    freedom: int

    def noise(self, n_a: int, n_b: int) -> float:
        """Return by how much the means of two groups of one cell differ at the most, in CONFIDENCE of all cases."""
        return _t(self.freedom) * self.deviation * math.sqrt(1 / n_a + 1 / n_b)


def spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    """Return the spread within groups of repetitions; None if no group has two.

    Whole numbers count with the spread of their rounding at least: what came out as 3 twice may come out as 4.
    """
    repeated = [np.asarray(group, dtype=np.float64) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in repeated)
    if freedom == 0:
        return None
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in repeated)
    whole = all(float(value).is_integer() for group in groups for value in group)
    return Spread(max(math.sqrt(squares / freedom), _ROUNDING if whole else 0.0), freedom)


def standardised(difference: float, a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return Hedges' g: the difference in pooled standard deviations, without small groups' bias; None without one."""
    freedom = len(a) + len(b) - 2
    if min(len(a), len(b)) < 2:  # noqa: PLR2004  one run has no spread
        return None
    squares = float(np.var(a)) * len(a) + float(np.var(b)) * len(b)
    if squares == 0:
        return None
    return difference / math.sqrt(squares / freedom) * (1 - 3 / (4 * freedom - 1))


def repetitions_needed(difference: float, deviation: float) -> int | None:
    """Return how many runs each of two groups must have to tell this difference from none with the probability POWER.

    By the power of the two-sided t test at the level 1 - CONFIDENCE; at most REPETITIONS_MAX, and None if the
    difference is zero, which no number of runs tells from zero.

    Args:
        difference: as observed.
        deviation: the standard deviation within each group.
    """
    if difference == 0:
        return None
    if deviation == 0:
        return FEWEST_OF_TWO
    effect = abs(difference) / deviation
    low, high = FEWEST_OF_TWO, REPETITIONS_MAX
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle) >= POWER else (middle + 1, high)
    return low


def power(effect: float, n: int) -> float:
    """Return the probability that a t test of two groups of n runs sees a difference of so many standard deviations."""
    freedom, shift = 2 * n - 2, effect * math.sqrt(n / 2)
    critical = _t(freedom)
    if shift > 10 * critical:
        return 1.0  # scipy's distributions give out so far from their middle
    # The square of a noncentral t is a noncentral F, of whose distribution scipy's is the sounder.
    return 1 - float(_special().ncfdtr(1, freedom, shift**2, critical**2))
