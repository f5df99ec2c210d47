"""The machine of its own that faults are tried in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.world import Engine, docker


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine of this machine, with the lab's images."""
    if "CONNLAB_FAULTS_ENGINE" not in os.environ:
        pytest.skip("a machine of its own is needed: make test-faults")
    own = Engine()
    own.start()
    docker("load", "--quiet", "--input", os.environ["CONNLAB_FAULTS_IMAGES"])
    yield own
    own.end()


@pytest.fixture(scope="session")
def records() -> Path:
    """The file that takes what was seen of each cell, a line each."""
    return Path(os.environ["CONNLAB_FAULTS_RECORDS"])
