"""Real runs of tests and benches lie in a folder of their own: the user's results/ and its index are the user's."""

import os
import shutil
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1] / ".cache" / "tests" / "results"
# Each process of pytest-xdist has a folder of its own: what is new or newest there is its own, too.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER")
RESULTS = _ROOT / _WORKER if _WORKER else _ROOT


def begin() -> None:
    """Let the lab and what it starts write there; the runs of the tests before are removed, those of these stay.

    A session of tests does this before it imports `lab`, which learns the folder once.
    """
    if _WORKER is None:
        shutil.rmtree(_ROOT, ignore_errors=True)
    os.environ["CONNLAB_RESULTS"] = str(RESULTS)
