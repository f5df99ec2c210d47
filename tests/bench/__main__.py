"""`make bench`: measures what the lab itself costs and how fast it is, and writes the table of docs/performance.md.

    .venv/bin/python -m tests.bench [NAME …]

Each bench prints what it measured as one JSON line, its last. docs/performance.jsonl keeps the newest of each, with
what the machine was. Speed fails nothing: the table says which goal was met. On a machine that does something else, a
bench is repeated; in the end its line says that it was measured on a busy one.
"""

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.goals import BENCHES, Bench
from tests.bench.table import keep, write
from tests.own_results import RESULTS

_TRIES = 3
_LOOK_S = 3.0
# Before and after a bench a machine that does nothing else is idle for nearly all of the time.
_IDLE_MIN = 0.9


def main(names: Sequence[str]) -> int:
    """Run the benches named, or all that do not take long; the exit code is 1 where one of them broke."""
    known = {bench.name: bench for bench in BENCHES}
    if unknown := [name for name in names if name not in known]:
        sys.stderr.write(f"bench: no bench has the name {unknown[0]}; there are {', '.join(known)}\n")
        return 2
    chosen = [bench for bench in BENCHES if (bench.name in names if names else not bench.asked_for)]
    broke = [bench.name for bench in chosen if not _measured(bench)]
    write()
    for name in broke:
        sys.stderr.write(f"bench: {name} broke off, and its row is the one before\n")
    return int(bool(broke))


def _measured(bench: Bench) -> bool:
    """Measure, and keep the line."""
    for _ in range(_TRIES):
        before = _idle_share()
        line = _line(bench)
        if line is None:
            return False
        idle = min(before, _idle_share())
        quiet = not bench.timed or idle >= _IDLE_MIN
        keep(line | {"idle": round(idle, 2), "quiet": quiet, **_machine()})
        if quiet:
            return True
        sys.stderr.write(f"bench: the machine was busy with something else, and only {idle:.0%} idle\n")
    sys.stderr.write(f"bench: warning: busy in all {_TRIES} measurements of {bench.name}; the table says so\n")
    return True


def _line(bench: Bench) -> dict[str, Any] | None:
    """Run a bench, show what it prints, and give its last line."""
    sys.stdout.write(f"--- {bench.name}: {bench.measures}\n")
    sys.stdout.flush()
    last = ""
    environment = os.environ | {"CONNLAB_RESULTS": str(RESULTS)}
    with subprocess.Popen(shlex.split(bench.command), stdout=subprocess.PIPE, text=True, env=environment) as process:
        for printed in process.stdout or ():
            sys.stdout.write(printed)
            sys.stdout.flush()
            last = printed
    try:
        found = json.loads(last)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and found.get("bench") == bench.name else None


def _machine() -> dict[str, Any]:
    return {"when": time.strftime("%Y-%m-%d", time.gmtime()), "kernel": platform.release(), "cpus": os.cpu_count()}


def _idle_share() -> float:
    began = _clock()
    time.sleep(_LOOK_S)
    ended = _clock()
    return (ended[1] - began[1]) / max(ended[0] - began[0], 1)


def _clock() -> tuple[int, int]:
    """Give what all processors together have run, and how much of it they were idle (proc_stat(5))."""
    ticks = [int(text) for text in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[3]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
