"""The statistics, against scipy on known samples and by simulation."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

from analysis.compare.intervals import (
    FEWEST_OF_ONE,
    FEWEST_OF_TWO,
    REPETITIONS_MAX,
    Floats,
    bootstrap,
    power,
    repetitions_needed,
    spread,
    standardised,
    suffice,
)

Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], Floats]

NORMAL: Draw = lambda rng, shape: rng.normal(10, 2, shape)  # noqa: E731  one of several in a table
SKEWED: Draw = lambda rng, shape: rng.lognormal(0, 0.7, shape)  # noqa: E731  as above


def test_an_interval_of_many_runs_is_that_of_scipy() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(10, 2, 200), rng.normal(11, 3, 250)
    ours = bootstrap(a[np.newaxis], b[np.newaxis])[0]
    scipys = stats.bootstrap(
        (a, b), lambda a, b, axis: b.mean(axis=axis) - a.mean(axis=axis), method="percentile", rng=1, n_resamples=9_999
    ).confidence_interval
    welch = stats.ttest_ind(b, a, equal_var=False).confidence_interval()

    assert (ours.low, ours.high) == pytest.approx((scipys.low, scipys.high), abs=0.03)
    assert (ours.low, ours.high) == pytest.approx((welch.low, welch.high), abs=0.03)


def test_an_interval_of_few_normal_runs_is_as_wide_as_welchs() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(10, 2, (300, 8)), rng.normal(11, 3, (300, 8))
    ours = [interval.width for interval in bootstrap(a, b)]
    welch = stats.ttest_ind(b, a, axis=1, equal_var=False).confidence_interval()

    assert np.mean(ours) == pytest.approx(np.mean(welch.high - welch.low), rel=0.04)


@pytest.mark.parametrize(
    ("draw", "sizes", "least"),
    [
        (NORMAL, (4, 4), 0.93),
        (NORMAL, (5, 5), 0.93),
        (NORMAL, (3, 5), 0.91),
        (SKEWED, (5, 5), 0.93),
        (SKEWED, (10, 10), 0.92),
        (NORMAL, (6,), 0.93),
        (NORMAL, (20,), 0.93),
    ],
)
def test_an_interval_covers_the_truth_as_often_as_it_says(draw: Draw, sizes: tuple[int, ...], least: float) -> None:
    rng = np.random.default_rng(9)
    truth = 10 if len(sizes) == 1 else 0
    covered = [interval.has(truth) for interval in bootstrap(*(draw(rng, (1_000, size)) for size in sizes))]

    assert least <= np.mean(covered) <= 0.99


def test_the_same_runs_give_the_same_interval() -> None:
    a, b = np.array([[1.0, 2.0, 4.0, 3.0]]), np.array([[2.0, 5.0, 4.0, 6.0]])

    # What else is computed beside it changes nothing.
    others = np.random.default_rng(13).normal(3, 1, (2_000, 4))
    assert bootstrap(np.vstack([a, others]), np.vstack([b, others]))[0] == bootstrap(a, b)[0]
    assert bootstrap(np.vstack([a, others]))[0] == bootstrap(a)[0]


@pytest.mark.parametrize(
    ("sizes", "enough"),
    [((1, 100), False), ((3, 3), False), ((3, 4), False), ((3, 5), True), ((4, 4), True), ((2, 7), False)],
)
def test_too_few_runs_are_apart_by_chance_too_often(sizes: tuple[int, int], enough: bool) -> None:  # noqa: FBT001  a table
    chance = stats.mannwhitneyu(range(sizes[0]), range(100, 100 + sizes[1]), method="exact").pvalue

    assert suffice(*sizes) == enough == (chance <= 0.05 and min(sizes) > 1)


def test_against_a_fixed_value_it_takes_six() -> None:
    chances = {size: stats.binomtest(size, size).pvalue for size in (5, 6)}

    assert (FEWEST_OF_TWO, FEWEST_OF_ONE) == (4, 6)
    assert {size: suffice(size) for size in chances} == {size: chance <= 0.05 for size, chance in chances.items()}


def test_the_spread_is_pooled_within_groups_and_blind_to_their_means() -> None:
    found = spread([(1.5, 2.5, 3.5), (101.0, 103.0), (7.0,)])

    assert found is not None
    assert found.freedom == 3
    assert found.deviation == pytest.approx(((2 * 1.0 + 2.0) / 3) ** 0.5)
    assert spread([(1.0,), (2.0,)]) is None


def test_the_noise_is_exceeded_by_one_difference_in_twenty_of_the_same_cell() -> None:
    runs = np.random.default_rng(11).normal(10, 2, (4_000, 8))
    beyond = 0
    for row in runs:
        found = spread([row[:4], row[4:]])
        assert found is not None
        beyond += abs(row[:4].mean() - row[4:].mean()) > found.noise(4, 4)

    assert beyond / len(runs) == pytest.approx(0.05, abs=0.012)


def test_whole_numbers_that_came_out_the_same_may_still_come_out_as_their_neighbours() -> None:
    whole, measured = spread([(3, 3), (4, 4)]), spread([(3.25, 3.25), (4.25, 4.25)])

    assert whole is not None
    assert measured is not None
    assert whole.noise(2, 2) > 1
    assert measured.noise(2, 2) == 0


def test_hedges_g_is_the_difference_in_deviations_corrected_for_few_runs() -> None:
    a, b = (1.0, 2.0, 3.0), (3.0, 4.0, 5.0)

    assert standardised(2.0, a, b) == pytest.approx(2.0 * (1 - 3 / 15))
    assert standardised(2.0, (1.0, 1.0), (3.0, 3.0)) is None
    assert standardised(2.0, (1.0,), (3.0, 4.0)) is None


@pytest.mark.parametrize(
    # Cohen 1988, table 2.4.1: two-sided 0.05, power 0.80.
    ("effect", "needed"),
    [(1.0, 17), (0.8, 26), (0.5, 64), (1.2, 12)],
)
def test_the_repetitions_needed_are_those_of_the_published_tables(effect: float, needed: int) -> None:
    assert repetitions_needed(effect * 3, 3) == needed
    assert power(effect, needed) >= 0.8 > power(effect, needed - 1)


def test_so_many_repetitions_see_the_difference_as_often_as_promised() -> None:
    needed = repetitions_needed(2.0, 2.0)
    assert needed is not None
    rng = np.random.default_rng(12)
    intervals = bootstrap(rng.normal(10, 2, (500, needed)), rng.normal(12, 2, (500, needed)))

    assert np.mean([not interval.has(0) for interval in intervals]) == pytest.approx(0.8, abs=0.05)


def test_the_ends_of_the_repetitions_needed() -> None:
    assert repetitions_needed(0, 1) is None
    assert repetitions_needed(1, 0) == FEWEST_OF_TWO
    assert repetitions_needed(1_000, 1) == FEWEST_OF_TWO
    assert repetitions_needed(0.001, 1) == REPETITIONS_MAX
