"""Real runs of tests and benches lie in a folder of their own: the user's results/ and its index are the user's."""

import os
import shutil
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / ".cache" / "tests" / "results"


def begin() -> None:
    """Let the lab and what it starts write there; the runs of the tests before are removed, those of these stay.

    A session of tests does this before it imports `lab`, which learns the folder once.
    """
    shutil.rmtree(RESULTS, ignore_errors=True)
    os.environ["CONNLAB_RESULTS"] = str(RESULTS)
