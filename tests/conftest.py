"""What all tests share."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine is no failure of the code. `make fuzz` asks for more examples.
settings.register_profile("connlab", deadline=None, max_examples=int(os.environ.get("CONNLAB_FUZZ_EXAMPLES", "100")))
settings.load_profile("connlab")

_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _signals_stay() -> Iterator[None]:
    """A command ignores signals from its end on, which is its process's end but here."""
    before = {number: signal.getsignal(number) for number in _HEEDED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_collection_finish() -> None:
    # What was imported and collected stays to the end: the garbage collector need not go through it again and again.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
