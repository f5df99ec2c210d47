"""What all tests share."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    # What was imported and collected stays to the end: the garbage collector need not go through it again and again.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
