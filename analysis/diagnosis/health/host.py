"""Examines the host under the load: whether k6 got the processors when it wanted them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from analysis.diagnosis.health import limits
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence import processes, window_readings
from analysis.evidence.clocks import LAB
from analysis.evidence.jsonl import Record, integer
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import Samples, read_machine_ms
from analysis.evidence.window import Window


def examine(raw: RawRun, window: Window | None) -> Report:
    """Report on the processors under the load."""
    report = Report("host", {"cpu_idle_percent": None, "k6_cpu_share_percent": None, "late_ticks_percent": None})
    if window is None:
        return report
    # Where there are several machines, those that have a k6.
    clients = raw.clocks.together(dict.fromkeys(raw.manifest.clients))
    machines = {
        machine: (_idle_percent(raw, window, instances), _k6_share_percent(raw, window, clients[machine]))
        for machine, instances in raw.clocks.together(raw.samples).items()
        if machine in clients
    } or {LAB: (_idle_percent(raw, window, [*raw.samples]), None)}
    late_percent = _late_percent(raw, window)
    idle, shares = zip(*machines.values(), strict=True)
    report.figures = {
        "cpu_idle_percent": _all(idle, min),
        "k6_cpu_share_percent": _all(shares, max),
        "late_ticks_percent": late_percent,
    }
    for machine, (idle_percent, share_percent) in machines.items():
        _examine_processors(
            report, idle_percent, share_percent, f" of {machine}" if machine else "", raw.manifest.client
        )
    if late_percent is not None and late_percent > limits.LATE_TICKS_PERCENT_MAX:
        report.add(
            f"{late_percent} % of the samples beside k6 were late under load (limit"
            f" {limits.LATE_TICKS_PERCENT_MAX:g} %), and so were its users",
            Evidence.LOAD,
        )
    for instance in raw.clients:
        _examine_stall(report, instance, raw.samples[instance], window)
    return report


def cpu_percent(raw: RawRun, instance: str, window: Window | None) -> float | None:
    """Return what an instance's processes used under the load, in percent of one processor; None if not known."""
    return processes.cpu_percent(processes.under_load(raw.processes[instance], window)) if window else None


def _all(values: Sequence[float | None], worst: Callable[[list[float]], float]) -> float | None:
    known = [each for each in values if each is not None]
    return worst(known) if known and len(known) == len(values) else None


def _examine_processors(
    report: Report, idle_percent: float | None, share_percent: float | None, where: str, who: str
) -> None:
    if idle_percent is None:
        report.add(f"the processor usage{where} under load was not recorded", Evidence.LOAD)
    elif idle_percent < limits.HOST_IDLE_PERCENT_MIN and (
        share_percent is None or share_percent > limits.K6_CPU_SHARE_PERCENT_MAX
    ):
        report.add(
            f"the processors{where} were idle for {idle_percent} % of the load (limit"
            f" {limits.HOST_IDLE_PERCENT_MIN:g} %), and {who} used {_text(share_percent)} of them (limit"
            f" {limits.K6_CPU_SHARE_PERCENT_MAX:g} %): it had to wait",
            Evidence.LOAD,
        )


def _examine_stall(report: Report, instance: str, samples: Samples, window: Window) -> None:
    """Report a hole in the ticks beside k6: what kept the sampler from running kept k6 from it, too."""
    ticks = samples.ticks
    times_us = [tick.time_us for tick in ticks]
    if not ticks or ticks[0].time_us > window.start_us or ticks[-1].time_us < window.load_end_us:
        report.add(
            f"the samples beside {instance} do not cover the load, so it may have been kept waiting", Evidence.LOAD
        )
    under_load = (
        # By the monotonic clock: a wall clock that was set is not a hole.
        (after.mono_us - before.mono_us) / 1000
        for before, after in pairwise(
            ticks[index] for index in window_readings.indices_enclosing(times_us, window.start_us, window.load_end_us)
        )
    )
    stall_ms, limit_ms = max(under_load, default=0.0), limits.gap_ms(samples.rate_hz)
    if stall_ms > limit_ms:
        report.add(
            f"for {stall_ms:.0f} ms of the load nothing ran beside k6 (limit {limit_ms:.0f} ms), so its users may not"
            " have run either",
            Evidence.LOAD,
        )


def _text(percent: float | None) -> str:
    return "an unknown share" if percent is None else f"{percent} %"


def _idle_percent(raw: RawRun, window: Window, instances: list[str]) -> float | None:
    """Return the idle share of a machine's processors; its samplers see the same: the first whole account counts."""
    shares = (_idle_percent_of(raw.samples[each].processes, window) for each in instances)
    return next((share for share in shares if share is not None), None)


def _idle_percent_of(series: list[Record], window: Window) -> float | None:
    times_us = [record["time_us"] for record in series]
    silence_ms = window_readings.longest_silence_ms(times_us, window.start_us, window.load_end_us)
    readings = processes.under_load(series, window)
    if silence_ms > limits.SECONDLY_GAP_MS or not readings:
        return None
    before, after = read_machine_ms(readings[0]), read_machine_ms(readings[-1])
    if before is None or after is None or after[0] <= before[0]:
        return None
    return round(100 * (after[1] - before[1]) / (after[0] - before[0]), 2)


def _k6_share_percent(raw: RawRun, window: Window, clients: list[str]) -> float | None:
    """Return the share of a machine's processors that its instances of k6 took."""
    header = raw.samples[clients[0]].header
    # The manifest's host is the machine on which the lab ran.
    cpus = (integer(header, "cpus") if header else None) if raw.clocks.machines else raw.manifest.host.cpus
    taken = [cpu_percent(raw, instance, window) for instance in clients]
    known = [percent for percent in taken if percent is not None]
    if cpus is None or not known or len(known) < len(taken):
        return None
    return round(sum(known) / cpus, 2)


def _late_percent(raw: RawRun, window: Window) -> float | None:
    """Return the share of ticks under the load that were late by half a period, beside the k6 that had the most."""
    shares = [_late_percent_of(raw.samples[instance], window) for instance in raw.clients]
    return max((share for share in shares if share is not None), default=None)


def _late_percent_of(samples: Samples, window: Window) -> float | None:
    times_us = [tick.time_us for tick in samples.ticks]
    under_load = window_readings.indices_between(times_us, window.start_us, window.load_end_us)
    if not under_load:
        return None
    late = sum(samples.ticks[index].late_us > 500_000 / samples.rate_hz for index in under_load)
    return round(100 * late / len(under_load), 2)
