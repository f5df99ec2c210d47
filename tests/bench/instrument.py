"""Measures what the instrument costs a run: sampler, scrapes and captures on and off, in turn. One JSON line.

    .venv/bin/python -m tests.bench.instrument [REPETITIONS]
    .venv/bin/python -m tests.bench.instrument events [REPETITIONS]

With `events` it measures what the kernel's events cost beside all that: on and off, in turn.

Two closed loops, as fast as they go: each request on a new connection, which is the worst case for a capture and for
the sampler, and connections that are kept. Off means that the collectors stand still from the load's begin to its end,
and that there is no capture. k6 writes its records in both; `make bench-k6` has their cost.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
_OFF = ("capture.mode=off",)
_EVENTS = "events"
_WITH_EVENTS = ("capture.events=kernel",)


@dataclass(frozen=True)
class _Seen:
    """What k6 says of one run."""

    per_second: float
    p99_ms: float


def main() -> int:
    """Measure each load with the instrument and without, in turn."""
    of_events = sys.argv[1:2] == [_EVENTS]
    numbers = sys.argv[1 + of_events :]
    repetitions = int(numbers[0]) if numbers else 7
    measure = _run_with_events if of_events else _run
    found = {name: _compared(settings, repetitions, measure) for name, settings in _LOADS.items()}
    name = _EVENTS if of_events else "instrument"
    sys.stdout.write(json.dumps({"bench": name, "repetitions": repetitions, **found}) + "\n")
    return 0


class _Measure(Protocol):
    def __call__(self, settings: tuple[str, ...], *, with_instrument: bool) -> _Seen: ...


def _compared(settings: tuple[str, ...], repetitions: int, measure: _Measure) -> dict[str, float]:
    on: list[_Seen] = []
    off: list[_Seen] = []
    for number in range(repetitions):
        # Each goes first as often as the other.
        for with_instrument in (True, False) if number % 2 else (False, True):
            (on if with_instrument else off).append(measure(settings, with_instrument=with_instrument))
    return {
        "per_second_on": round(statistics.median(one.per_second for one in on)),
        "per_second_off": round(statistics.median(one.per_second for one in off)),
        "p99_ms_on": round(statistics.median(one.p99_ms for one in on), 2),
        "p99_ms_off": round(statistics.median(one.p99_ms for one in off), 2),
        "throughput_lost": round(1 - _ratio([one.per_second for one in on], [one.per_second for one in off]), 3),
        "p99_gained": round(_ratio([one.p99_ms for one in on], [one.p99_ms for one in off]) - 1, 3),
    }


def _ratio(on: list[float], off: list[float]) -> float:
    """Give the median of the pairs' ratios: the runs of a pair come one after the other."""
    return statistics.median(a / b for a, b in zip(on, off, strict=True))


def _run(settings: tuple[str, ...], *, with_instrument: bool) -> _Seen:
    overrides = (*_FREE, *settings, *(() if with_instrument else _OFF))
    phases.run_load = _load if with_instrument else _without_collectors
    try:
        with passing_run(_SCENARIO, overrides) as folder:
            return _said(folder)
    finally:
        phases.run_load = _load


def _run_with_events(settings: tuple[str, ...], *, with_instrument: bool) -> _Seen:
    """Run with sampler, scrapes and captures, and with the kernel's events if asked."""
    return _run((*settings, *(_WITH_EVENTS if with_instrument else ())), with_instrument=True)


_load, _resume = phases.run_load, phases.release_clients


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


def _said(folder: Path) -> _Seen:
    (summary,) = folder.glob("raw/*/role/summary.json")
    metrics = json.loads(summary.read_text())["metrics"]
    return _Seen(metrics["http_reqs"]["values"]["rate"], metrics["http_req_duration"]["values"]["p(99)"])


if __name__ == "__main__":
    sys.exit(main())
