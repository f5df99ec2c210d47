"""The order of a series: repetition after repetition, each with all cells, shuffled by the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def order(cells: Iterable[str], repetitions: int, seed: int) -> list[tuple[str, int]]:
    """Give each cell and repetition (from 1) in the order in which they are run.

    Each repetition is a block with every cell once, so that a drift of the machine meets all cells alike. Within it
    the cells stand in the order of SHA-256 of `seed:repetition:cell`: the same on every machine, for every version of
    every library.
    """
    named = list(cells)
    places: list[tuple[str, int]] = []
    for repetition in range(1, repetitions + 1):
        ranks = {cell: hashlib.sha256(f"{seed}:{repetition}:{cell}".encode()).digest() for cell in named}
        places += [(cell, repetition) for cell in sorted(named, key=ranks.__getitem__)]
    return places
