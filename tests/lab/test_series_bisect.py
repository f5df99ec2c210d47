"""Where a search looks next: it finds every border, and admits where there is none."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from formats.predictions import Truth
from lab.series.bisect import Done, Range, decide


def search(within: Range, holds: Callable[[int], Truth]) -> tuple[Done, dict[int, list[Truth]]]:
    seen: dict[int, list[Truth]] = {}
    for _ in range(200):
        decision = decide(within, seen)
        if isinstance(decision, Done):
            return decision, seen
        seen.setdefault(decision, []).append(holds(decision))
    raise AssertionError("the search does not end")


@st.composite
def borders(draw: st.DrawFn) -> tuple[int, int, int]:
    low = draw(st.integers(1, 10_000))
    high = draw(st.integers(low + 1, low + 10_000))
    return low, draw(st.integers(low + 1, high)), high


@given(borders(), st.integers(1, 3), st.lists(st.integers(1, 20_000), max_size=2))
def test_it_finds_the_smallest_value_that_holds(border: tuple[int, int, int], confirm: int, hints: list[int]) -> None:
    low, first, high = border
    done, seen = search(Range(low, high, 1, confirm, tuple(hints)), lambda value: "true" if value >= first else "false")
    assert (done.outcome, done.goal, done.found) == ("found", "smallest", first)
    assert len(seen[first]) == len(seen[first - 1]) == confirm
    assert len(seen) <= 20, "it bisects"


@given(borders())
def test_it_finds_the_largest_value_that_holds(border: tuple[int, int, int]) -> None:
    low, first, high = border
    done, _ = search(Range(low, high, 1, 1), lambda value: "true" if value < first else "false")
    assert (done.goal, done.found) == ("largest", first - 1)


@given(borders(), st.integers(2, 500))
def test_a_step_is_how_near_it_comes(border: tuple[int, int, int], step: int) -> None:
    low, first, high = border
    done, seen = search(Range(low, high, step, 1), lambda value: "true" if value >= first else "false")
    failed = max(value for value, outcomes in seen.items() if outcomes == ["false"])
    assert done.found is not None
    assert 0 < done.found - failed <= step


def test_a_right_hint_saves_the_bisection() -> None:
    done, seen = search(Range(1, 1_000_000, 1, 2, (300, 299)), lambda value: "true" if value >= 300 else "false")
    assert done.found == 300
    assert list(seen) == [300, 299]


def test_a_range_without_a_border_is_reported() -> None:
    everywhere, _ = search(Range(1, 9, 1, 2), lambda _: "true")
    nowhere, _ = search(Range(1, 9, 1, 2), lambda _: "false")
    assert (everywhere.outcome, nowhere.outcome) == ("holds-everywhere", "holds-nowhere")
    assert everywhere.why == "it holds from 1 to 9"


def test_a_border_that_is_none_is_inconclusive() -> None:
    done = decide(Range(1, 9, 1, 1), {1: ["false"], 5: ["true"], 9: ["false"]})
    assert isinstance(done, Done)
    assert done.outcome == "inconclusive"
    assert done.why == "there is no one border: it holds at 5, and fails at 1, 9"


def test_a_value_that_stays_undecided_ends_the_search() -> None:
    done, seen = search(Range(1, 9, 1, 1), lambda value: "unknown" if value == 9 else "false")
    assert (done.outcome, len(seen[9])) == ("inconclusive", 3)


def test_a_value_that_fails_on_confirmation_moves_the_border() -> None:
    outcomes: dict[int, list[Truth]] = {5: ["true", "false"]}

    def holds(value: int) -> Truth:
        return outcomes[value].pop(0) if outcomes.get(value) else "true" if value > 5 else "false"

    done, _ = search(Range(1, 9, 1, 2), holds)
    assert done.found == 6
    assert done.why == "at 5 it held in 1 of 2 runs: the border is not sharp"


def test_an_undecided_run_is_repeated() -> None:
    assert decide(Range(1, 9, 1, 1), {9: ["unknown"]}) == 9
