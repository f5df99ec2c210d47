"""How long a cell of a series takes besides its load: from its preparation to the moment its containers are gone.

    .venv/bin/python -m tests.bench.cell [runs]

Prints one JSON line. Images must be built and warm.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from rich.console import Console

from formats import manifest
from lab.engines.selection import selected_engine
from lab.runs.run import run
from lab.scenarios.resolve import resolve

SCENARIO = "accept-queue-healthy"
# A load of half a second: what a run takes besides does not depend on it.
SETTINGS = ("load.users=10", "load.handler_delay=100ms")


def spans(folder: Path, whole_s: float) -> dict[str, float]:
    """Give the seconds of each phase of a run, and what it took besides load and drain."""
    phases = manifest.load_manifest(folder).phases
    seconds = {str(phase.name): ((phase.end_us or 0) - phase.start_us) / 1e6 for phase in phases}
    given = seconds["measure"] + seconds["drain"]
    rest = whole_s - sum(seconds.values())
    return {**seconds, "begin_and_end": rest, "overhead": whole_s - given}


def main(runs: int) -> int:
    """Run the scenario some times and print the medians."""
    resolved = resolve(SCENARIO, SETTINGS)
    found = []
    for _ in range(runs):
        began = time.monotonic()
        folder = run(resolved, selected_engine(), sys.argv, Console(stderr=True))
        found.append(spans(folder, time.monotonic() - began))
    medians = {f"{name}_s": round(statistics.median(one[name] for one in found), 2) for name in found[0]}
    each = [round(one["overhead"], 2) for one in found]
    sys.stdout.write(json.dumps({"bench": "cell", "runs": runs, **medians, "each_overhead_s": each}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
