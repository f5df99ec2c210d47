"""The order of a series: from the seed alone, and interleaved."""

from hypothesis import given
from hypothesis import strategies as st

from lab.series.plan import order_runs

CELLS = st.lists(st.text("abc-", min_size=1, max_size=6), unique=True, min_size=1, max_size=12)


@given(CELLS, st.integers(1, 5), st.integers(0, 2**31))
def test_each_repetition_is_a_block_with_every_cell_once(cells: list[str], repetitions: int, seed: int) -> None:
    found = order_runs(cells, repetitions, seed)
    for repetition in range(repetitions):
        block = found[repetition * len(cells) : (repetition + 1) * len(cells)]
        assert sorted(block) == sorted((cell, repetition + 1) for cell in cells)


@given(CELLS, st.randoms(use_true_random=False), st.integers(0, 2**31))
def test_the_order_does_not_depend_on_how_the_cells_are_listed(cells: list[str], random: object, seed: int) -> None:
    shuffled = sorted(cells, key=lambda _: random.random())  # type: ignore[attr-defined] # hypothesis's Random
    assert order_runs(cells, 2, seed) == order_runs(shuffled, 2, seed)


def test_the_order_is_the_same_on_every_machine() -> None:
    assert order_runs(["a", "b", "c"], 2, 1) == [("a", 1), ("c", 1), ("b", 1), ("b", 2), ("c", 2), ("a", 2)]


def test_blocks_and_seeds_differ_in_their_order() -> None:
    cells = [str(number) for number in range(10)]
    blocks = {
        tuple(cell for cell, _ in order_runs(cells, 3, seed)[10 * block :][:10]) for seed in (1, 2) for block in (0, 1)
    }
    assert len(blocks) == 4
