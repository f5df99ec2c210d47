"""Measures what the instrument costs a run. One JSON line.

    .venv/bin/python -m tests.bench.instrument [REPETITIONS]
    .venv/bin/python -m tests.bench.instrument events|events-kept [REPETITIONS]

The first compares a run with sampler, scrapes and captures to one without, under both loads. The others compare four
kinds of run under one load: without instrument, with the headers of every packet, with handshakes alone, and with
handshakes and the kernel's events. The runs of all kinds come in turn.

Two closed loops, as fast as they go: each request on a new connection, which is the worst case for a capture and for
the sampler, and connections that are kept. Without means that the collectors stand still from the load's begin to its
end, and that there is no capture. k6 writes its records in all; `make bench-k6` has their cost.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import parallel
from lab.engines.protocol import Engine, Watch
from lab.runs import phases
from lab.runs.live_display import Display
from lab.runs.run_context import RunContext
from lab.scenarios.topology import collector_of
from tests.bench.passing import passing_run

_SCENARIO = "connection-per-request"
_FREE = ("load.users=20", "load.think_time=0s", "load.arrival_gap=0s")
# What each load lasts about ten seconds with, on two processors.
_LOADS = {
    "new_connections": ("load.keep_alive=false", "load.calls=2000"),
    "kept_connections": ("load.keep_alive=true", "load.calls=5000"),
}
_OFF = "off"
# Settings by the kind of run.
_KINDS = {
    _OFF: ("capture.mode=off",),
    "headers": (),
    "handshakes": ("capture.mode=handshakes",),
    "events": ("capture.mode=handshakes", "capture.events=kernel"),
}
_BENCHES = {"events": "new_connections", "events-kept": "kept_connections"}
_REPETITIONS = 7


@dataclass(frozen=True)
class _Seen:
    """What k6 says of one run, and the processor time that its containers took for each request.

    Where other programs share the processors, that time changes far less than the other two.
    """

    per_second: float
    p99_ms: float
    cpu_us: float


def main() -> int:
    """Measure the bench that the command line names."""
    name, numbers = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] and sys.argv[1] in _BENCHES else ("", sys.argv[1:])
    repetitions = int(numbers[0]) if numbers else _REPETITIONS
    if name:
        found = _compare_kinds(_LOADS[_BENCHES[name]], repetitions)
    else:
        found = {load: _compare_with_off(settings, repetitions) for load, settings in _LOADS.items()}
    sys.stdout.write(json.dumps({"bench": name or "instrument", "repetitions": repetitions, **found}) + "\n")
    return 0


def _compare_with_off(settings: Sequence[str], repetitions: int) -> dict[str, float]:
    seen = _run_in_turn(settings, ("headers", _OFF), repetitions)
    on, off = seen["headers"], seen[_OFF]
    return {
        "per_second_on": round(_median_rate(on)),
        "per_second_off": round(_median_rate(off)),
        "p99_ms_on": round(_median_p99_ms(on), 2),
        "p99_ms_off": round(_median_p99_ms(off), 2),
        **_loss(on, off),
    }


def _compare_kinds(settings: Sequence[str], repetitions: int) -> dict[str, object]:
    """Return each kind beside no instrument, and the events beside the same capture without them."""
    seen = _run_in_turn(settings, tuple(_KINDS), repetitions)
    found: dict[str, object] = {
        kind: {
            "per_second": round(_median_rate(runs)),
            "p99_ms": round(_median_p99_ms(runs), 2),
            "cpu_us": round(statistics.median(one.cpu_us for one in runs), 1),
        }
        | (_loss(runs, seen[_OFF]) if kind != _OFF else {})
        for kind, runs in seen.items()
    }
    return found | {"events_alone": _loss(seen["events"], seen["handshakes"])}


def _run_in_turn(settings: Sequence[str], kinds: Sequence[str], repetitions: int) -> Mapping[str, list[_Seen]]:
    seen: dict[str, list[_Seen]] = {kind: [] for kind in kinds}
    for number in range(repetitions):
        # Each goes first as often as the others.
        first = number % len(kinds)
        for kind in (*kinds[first:], *kinds[:first]):
            found = _run((*_FREE, *settings, *_KINDS[kind]), with_instrument=kind != _OFF)
            told = f"{found.per_second:.0f} requests a second, {found.cpu_us:.1f} µs of processor time for each"
            sys.stderr.write(f"{number + 1} of {repetitions}: {kind}: {told}\n")
            seen[kind].append(found)
    return seen


def _median_rate(runs: Sequence[_Seen]) -> float:
    return statistics.median(one.per_second for one in runs)


def _median_p99_ms(runs: Sequence[_Seen]) -> float:
    return statistics.median(one.p99_ms for one in runs)


def _loss(on: Sequence[_Seen], off: Sequence[_Seen]) -> dict[str, float]:
    """Return the medians of the ratios of runs that came one after the other."""
    pairs = list(zip(on, off, strict=True))
    return {
        "throughput_lost": round(1 - statistics.median(a.per_second / b.per_second for a, b in pairs), 3),
        "p99_gained": round(statistics.median(a.p99_ms / b.p99_ms for a, b in pairs) - 1, 3),
        "cpu_gained": round(statistics.median(a.cpu_us / b.cpu_us for a, b in pairs) - 1, 3),
    }


_load, _resume = phases.run_load, phases.release_clients


def _run(settings: Sequence[str], *, with_instrument: bool) -> _Seen:
    spent_s: list[float] = []

    def load(context: RunContext, watch: Watch, display: Display) -> str | None:
        before_s = _processor_s()
        ended = (_load if with_instrument else _without_collectors)(context, watch, display)
        spent_s.append(_processor_s() - before_s)
        return ended

    phases.run_load = load
    try:
        with passing_run(_SCENARIO, settings) as folder:
            return _said(folder, spent_s[0])
    finally:
        phases.run_load = _load


def _processor_s() -> float:
    """Return the processor time that the programs in the run's containers have taken so far."""
    containers = _lines_of("ps", "--quiet", "--filter", "label=connlab.run")
    pids = [pid for each in containers for pid in _lines_of("top", each, "-eo", "pid")[1:]]
    # The fields behind the name, which may hold blanks: proc_pid_stat(5).
    fields = [Path(f"/proc/{pid.strip()}/stat").read_text().rpartition(") ")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _lines_of(*arguments: str) -> list[str]:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def _without_collectors(context: RunContext, watch: Watch, display: Display) -> str | None:
    """Let every collector stand still from the moment the load is let go, which takes one of them, to its end."""
    collectors = [collector_of(instance) for instance in context.topology.all]

    def resume(engine: Engine, instances: list[str], generators: Sequence[str] = ()) -> None:
        _resume(engine, instances, generators)
        parallel.each(engine.pause, collectors)

    phases.release_clients = resume
    try:
        return _load(context, watch, display)
    finally:
        phases.release_clients = _resume
        parallel.each(context.engine.resume, collectors)


def _said(folder: Path, spent_s: float) -> _Seen:
    (summary,) = folder.glob("raw/*/role/summary.json")
    metrics = json.loads(summary.read_text())["metrics"]
    requests, times_ms = metrics["http_reqs"]["values"], metrics["http_req_duration"]["values"]
    return _Seen(requests["rate"], times_ms["p(99)"], 1e6 * spent_s / requests["count"])


if __name__ == "__main__":
    sys.exit(main())
