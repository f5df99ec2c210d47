"""Watches one run of an hour: whether the memory of any part grows, a file goes out of bounds, or the sampler drifts.

    .venv/bin/python -m tests.bench.hour [MINUTES]

k6 through nginx to the backend: 20 users on kept connections, about 100 requests a second, for each of which nginx
opens a connection; all of it is captured. Every ten seconds it reads how much memory each program has, the lab itself
and the engine with it. One JSON line.
"""

import json
import statistics
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from lab.runs import run_results
from tests.bench.passing import passing_run

_SCENARIO = "keep-alive-to-servers"
_USERS, _THINK_MS = 20, 200
_LOOK_S = 10.0
# The programs of a run by the names in their command lines, and what they are of it.
_PARTS = {
    "k6": "k6", "nginx": "nginx", "java": "backend", "collector": "collectors", "tcpdump": "tcpdump",
    "dockerd": "Docker Engine", "containerd": "containerd",
}  # fmt: skip
_LAB = "the lab"


class _Memory(threading.Thread):
    """Looks at the memory of every part until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, list[float]] = defaultdict(list)
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            for part, mb in _resident_mb().items():
                self.seen[part].append(mb)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _resident_mb() -> dict[str, float]:
    """Give the resident memory of each part, its processes together."""
    found: dict[str, float] = defaultdict(float)
    found[_LAB] = _rss_mb(Path("/proc/self"))
    for process in Path("/proc").glob("[0-9]*"):
        try:
            part = _PARTS.get(_program(process))
            if part:
                found[part] += _rss_mb(process)
        except OSError:
            continue  # it has ended
    return found


def _program(process: Path) -> str:
    """Give the name of a process's program: the collector starts itself by /proc/self/exe, nginx writes `nginx: …`."""
    command = (process / "cmdline").read_text(errors="replace").split("\0")[0]
    return Path(command.split(":")[0]).name


def _rss_mb(process: Path) -> float:
    (line,) = (line for line in (process / "status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Run, watch and say what was seen."""
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    calls = round(minutes * 60_000 / _THINK_MS)
    settings = (
        "load.instances=1", f"load.users={_USERS}", f"load.calls={calls}", f"load.think_time={_THINK_MS}ms",
        "load.arrival_gap=10ms", "load.keep_alive=true", f"load.max_duration={minutes + 30}m", "capture.max_mb=4000",
    )  # fmt: skip
    memory = _Memory()
    memory.start()
    with passing_run(_SCENARIO, settings) as folder:
        memory.stop()
        verdict = run_results.analyse_run(folder)
        line = {"bench": "hour", "minutes": minutes, **_of_samplers(folder), **_of_files(folder)}
    line |= {"memory": _growth(memory.seen), "ledger": verdict["ledger"], "problems": verdict["problems"]}
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


def _growth(seen: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Give each part's memory in the second sixth of the time and in the last, as medians; none may be missing."""
    found = {}
    for part, looks in seen.items():
        if sixth := len(looks) // 6:
            early, late = (round(statistics.median(some), 1) for some in (looks[sixth : 2 * sixth], looks[-sixth:]))
            found[part] = {"early_mb": early, "late_mb": late}
    if unseen := {_LAB, *_PARTS.values()} - found.keys():
        raise SystemExit(f"the memory of {', '.join(sorted(unseen))} was not seen often enough")
    return found


def _of_samplers(folder: Path) -> dict[str, Any]:
    """Give how far the ticks are from where they are due, by the monotonic clock, and how many are missing."""
    drifts_ms, gaps = [], 0
    for file in folder.glob("raw/*/collector/samples.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        ticks = [record for record in records if record["kind"] == "tick"][:-1]  # the last is outside the schedule
        period_us = 1_000_000 / records[0]["rate_hz"]
        due = [tick["mono_us"] - tick["late_us"] - ticks[0]["mono_us"] + ticks[0]["late_us"] for tick in ticks]
        drifts_ms.append(max(abs(at_us - round(at_us / period_us) * period_us) for at_us in due) / 1000)
        gaps += next(record["gaps"] for record in records if record["kind"] == "end")
    return {"drift_ms": round(max(drifts_ms), 2), "gaps": gaps}


def _of_files(folder: Path) -> dict[str, float]:
    """Give how much the raw files take, all together and the largest."""
    sizes = [file.stat().st_size for file in (folder / "raw").rglob("*") if file.is_file()]
    return {"raw_mb": round(sum(sizes) / 1e6), "largest_mb": round(max(sizes) / 1e6)}


if __name__ == "__main__":
    sys.exit(main())
