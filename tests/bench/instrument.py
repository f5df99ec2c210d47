"""Measures what the instrument costs a run. One JSON line.

    .venv/bin/python -m tests.bench.instrument [REPETITIONS]
    .venv/bin/python -m tests.bench.instrument events|events-kept|loop|loop-kept [REPETITIONS]

The first compares a run with sampler, scrapes and captures to one without, under both loads. The others compare four
kinds of run under one load. `events`: without instrument, with the headers of every packet, with handshakes alone, and
with handshakes and the kernel's events. `loop`: without instrument, with what a user would take instead (loop.sh, in
the server's namespace), with the headers of every packet, and with handshakes and the kernel's events. The runs of all
kinds come in turn.

Two closed loops, as fast as they go: each request on a new connection, which is the worst case for a capture and for
the sampler, and connections that are kept. Without means that the collectors stand still from the load's begin to its
end, and that there is no capture. k6 writes its records in all; `make bench-k6` has their cost.
"""

import json
import statistics
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from lab import parallel
from lab.engines.compose.containers import container_name
from lab.engines.protocol import Engine, Watch
from lab.runs import phases
from lab.runs.live_display import Display
from lab.runs.run_context import RunContext
from lab.scenarios.topology import collector_of
from tests.bench.loop import Loop, loop_beside
from tests.bench.passing import passing_run
from tests.bench.processor_time import ProcessorTime, measured_processor_time

_SCENARIO = "connection-per-request"
_FREE = ("load.users=20", "load.think_time=0s", "load.arrival_gap=0s")
# What each load lasts about ten seconds with, on two processors.
_LOADS = {
    "new_connections": ("load.keep_alive=false", "load.calls=2000"),
    "kept_connections": ("load.keep_alive=true", "load.calls=5000"),
}
_OFF, _LOOP = "off", "loop"
# Settings by the kind of run; the collectors stand still in those without a capture.
_NO_CAPTURE = ("capture.mode=off",)
_KINDS = {
    _OFF: _NO_CAPTURE,
    _LOOP: _NO_CAPTURE,
    "headers": (),
    "handshakes": ("capture.mode=handshakes",),
    "events": ("capture.mode=handshakes", "capture.events=kernel"),
}
_EVENTS_AND_OTHERS = (_OFF, "headers", "handshakes", "events")
_LOOP_AND_OTHERS = (_OFF, _LOOP, "headers", "events")
_BENCHES = {
    "events": ("new_connections", _EVENTS_AND_OTHERS),
    "events-kept": ("kept_connections", _EVENTS_AND_OTHERS),
    "loop": ("new_connections", _LOOP_AND_OTHERS),
    "loop-kept": ("kept_connections", _LOOP_AND_OTHERS),
}
_REPETITIONS = 7


@dataclass(frozen=True)
class _Seen:
    """What k6 says of one run, and the processor time of the programs in its containers.

    Where other programs share the processors, that time changes far less than what k6 says.

    Attributes:
        cpu_us: of all programs, for each request.
        own_share: of the instrument's own programs, as a share of one processor. The kernel's part is not in it: it
            charges the copy of a packet, or an event, to the program that sends or receives.
        rounds_per_second: how often the loop looked; None without it.
    """

    per_second: float
    p99_ms: float
    cpu_us: float
    own_share: float
    rounds_per_second: float | None


def main() -> int:
    """Measure the bench that the command line names."""
    name, numbers = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] and sys.argv[1] in _BENCHES else ("", sys.argv[1:])
    repetitions = int(numbers[0]) if numbers else _REPETITIONS
    if name:
        load, kinds = _BENCHES[name]
        found = _compare_kinds(_run_in_turn(_LOADS[load], kinds, repetitions))
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


def _compare_kinds(seen: Mapping[str, Sequence[_Seen]]) -> dict[str, object]:
    """Return each kind beside no instrument, and beside the loop or, of events, beside the same capture alone."""
    kinds = {
        kind: {
            "per_second": round(_median_rate(runs)),
            "p99_ms": round(_median_p99_ms(runs), 2),
            "cpu_us": round(statistics.median(one.cpu_us for one in runs), 1),
            "own_share": round(statistics.median(one.own_share for one in runs), 4),
        }
        | (_loss(runs, seen[_OFF]) if kind != _OFF else {})
        for kind, runs in seen.items()
    }
    if _LOOP not in seen:
        return {**kinds, "events_alone": _loss(seen["events"], seen["handshakes"])}
    rounds = statistics.median(one.rounds_per_second or 0 for one in seen[_LOOP])
    of_loop = {
        figure: _ratio(kinds["headers"][figure], kinds[_LOOP][figure])
        for figure in ("throughput_lost", "p99_gained", "cpu_gained", "own_share")
    }
    return {**kinds, "of_loop": of_loop, "rounds_per_second": round(rounds, 1)}


def _ratio(cost: float, of: float) -> float | None:
    """Return the one cost as a share of the other; None where the other cost nothing that could be measured."""
    return round(cost / of, 2) if of > 0 else None


def _run_in_turn(settings: Sequence[str], kinds: Sequence[str], repetitions: int) -> Mapping[str, list[_Seen]]:
    seen: dict[str, list[_Seen]] = {kind: [] for kind in kinds}
    for number in range(repetitions):
        # Each goes first as often as the others.
        first = number % len(kinds)
        for kind in (*kinds[first:], *kinds[:first]):
            found = _run((*_FREE, *settings, *_KINDS[kind]), kind)
            sys.stderr.write(f"{number + 1} of {repetitions}: {kind}: {found}\n")
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


def _run(settings: Sequence[str], kind: str) -> _Seen:
    measured: list[tuple[ProcessorTime, Loop | None, Collection[str]]] = []

    def load(context: RunContext, watch: Watch, display: Display) -> str | None:
        run_load = _without_collectors if _KINDS[kind] == _NO_CAPTURE else _load
        with (
            loop_beside(context.topology.servers[0]) if kind == _LOOP else nullcontext() as loop,
            measured_processor_time() as processor_time,
        ):
            ended = run_load(context, watch, display)
        measured.append((processor_time, loop, [container_name(one) for one in context.topology.all]))
        return ended

    phases.run_load = load
    try:
        with passing_run(_SCENARIO, settings) as folder:
            return _said(folder, *measured[0])
    finally:
        phases.run_load = _load


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


def _said(folder: Path, processor_time: ProcessorTime, loop: Loop | None, path: Collection[str]) -> _Seen:
    (summary,) = folder.glob("raw/*/role/summary.json")
    metrics = json.loads(summary.read_text())["metrics"]
    requests, times_ms = metrics["http_reqs"]["values"], metrics["http_req_duration"]["values"]
    taken_s = processor_time.by_container
    return _Seen(
        per_second=requests["rate"],
        p99_ms=times_ms["p(99)"],
        cpu_us=1e6 * sum(taken_s.values()) / requests["count"],
        own_share=sum(taken_s[name] for name in taken_s if name not in path) / processor_time.elapsed_s,
        rounds_per_second=loop.rounds_per_second if loop else None,
    )


if __name__ == "__main__":
    sys.exit(main())
