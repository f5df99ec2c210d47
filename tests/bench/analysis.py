"""Measures what the analysis of a large run takes: time, memory, and the page's size. One JSON line.

    .venv/bin/python -m tests.bench.analysis [REQUESTS [CALLS]]

The run is made by tests/bench/synthetic.py: REQUESTS (1,000,000), CALLS (10) on each connection, with a capture. The
verdict must be `reproduced`: everything that was made has to be found again.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import synthetic

_PORTS = 50_000
# By which a run is analysed and its report written; what each takes is that of a process of its own.
_ANALYSE = (
    "import sys, pathlib; from analysis.derivation import analyse; print(analyse(pathlib.Path(sys.argv[1])).verdict)"
)
_REPORT = (
    "import sys, pathlib; from analysis.reports import run_report; print(run_report.write(pathlib.Path(sys.argv[1])))"
)


def main() -> int:
    """Measure; the exit code is 1 where the run was not found again as it was made."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    parser.add_argument("calls", nargs="?", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="connlab-bench-", dir="/var/tmp") as name:
        folder = Path(name) / "run"
        load = synthetic.Load(
            arguments.requests, arguments.calls, -(-arguments.requests // arguments.calls // _PORTS) or 1
        )
        synthetic.write(folder, load)
        raw_bytes = sum(file.stat().st_size for file in (folder / "raw").rglob("*") if file.is_file())
        found = {"analysis": _run(_ANALYSE, folder), "report": _run(_REPORT, folder)}
        verdict = found["analysis"].pop("said")
        page_bytes = Path(str(found["report"].pop("said"))).stat().st_size
    line = {
        "bench": "analysis", "requests": load.requests, "connections": load.connections, "instances": load.instances,
        "raw_mb": round(raw_bytes / 1e6), **found,
        "seconds": round(sum(float(part["seconds"]) for part in found.values()), 1),
        "peak_gb": max(float(part["peak_gb"]) for part in found.values()),
        "page_mb": round(page_bytes / 1e6, 2), "verdict": verdict,
    }  # fmt: skip
    sys.stdout.write(json.dumps(line) + "\n")
    return 0 if verdict == "reproduced" else 1


def _run(program: str, folder: Path) -> dict[str, float | str]:
    began_s = time.monotonic()
    # The child measures its own memory, and that of `flows`; to this process only the greatest of all would be known.
    of_each = "resource.getrusage(each).ru_maxrss for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)"
    measured = f"{program}\nimport resource; print(max({of_each}))"
    done = subprocess.run([sys.executable, "-c", measured, str(folder)], stdout=subprocess.PIPE, text=True, check=True)
    said, kib = done.stdout.split()[-2:]
    return {"seconds": round(time.monotonic() - began_s, 1), "peak_gb": round(int(kib) * 1024 / 1e9, 2), "said": said}


if __name__ == "__main__":
    sys.exit(main())
