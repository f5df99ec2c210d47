"""Examines one collector's samples, and what all of them say of the clock."""

from analysis.diagnosis.health import limits
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence import clock, processes, window_readings
from analysis.evidence.clock import Clock
from analysis.evidence.jsonl import Record, integer
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import Samples
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown
from analysis.formatting import format_count

_ALL = (Evidence.COUNTERS, Evidence.TICKS, Evidence.SOCKETS, Evidence.PROCESSES)


def examine(instance: str, samples: Samples, window: Window | None) -> Report:
    """Report on the samples of one instance; without a window only on what does not need one."""
    report = Report(f"sampler/{instance}")
    own = samples.end or (samples.selves[-1] if samples.selves else {})
    report.figures = {
        "rate_hz": samples.rate_hz,
        "ticks": len(samples.ticks),
        "late_ticks": integer(own, "late_ticks"),
        "gaps": integer(own, "gaps"),
        "late_ms_max": _ms(integer(own, "late_us_max")),
        "longest_gap_ms": None,
        "cpu_percent": processes.own_cpu_percent(samples.selves),
        "ended": samples.end is not None,
    }
    for message in samples.lines.damage.messages("samples.jsonl"):
        report.add(message)
    if samples.header is None:
        report.add("samples.jsonl has no header of this instance and of a version that this program reads", *_ALL)
    _examine_end(report, samples)
    cpu_percent = report.figures["cpu_percent"]
    if isinstance(cpu_percent, float) and cpu_percent > limits.SAMPLER_CPU_PERCENT_MAX:
        report.add(f"took {cpu_percent} % of a processor (limit {limits.SAMPLER_CPU_PERCENT_MAX:g} %)")
    if window is not None:
        _examine_ticks(report, samples, window)
        _examine_series(report, "sockets", samples.sockets, window, Evidence.SOCKETS)
        _examine_series(report, "processes", samples.processes, window, Evidence.PROCESSES)
    return report


def _examine_end(report: Report, samples: Samples) -> None:
    """Report a disorderly end; what was recorded up to it still counts, as far as it covers the window."""
    if samples.end is None:
        report.add("the sampler did not end cleanly")
    elif samples.end.get("reason") != "signal":
        report.add(f"the sampler ended by itself: {samples.end.get('reason')}")
    # A tick has what changed since the one before it: one that is lost makes those after it wrong.
    if (samples.lost_ticks or 0) > 0:
        report.add(
            f"samples.jsonl lacks {format_count(samples.lost_ticks or 0, 'tick')} of those that its last line counts",
            Evidence.COUNTERS,
            Evidence.TICKS,
        )


def _examine_ticks(report: Report, samples: Samples, window: Window) -> None:
    span = window_readings.find_enclosing_ticks(samples.ticks, window, limits.edge_gap_ms(samples.rate_hz))
    if isinstance(span, Unknown):
        report.add(f"the samples do not cover the window: {span.why}", Evidence.COUNTERS, Evidence.TICKS)
        return
    longest_ms = window_readings.longest_hole_ms(samples.ticks, span)
    limit_ms = limits.gap_ms(samples.rate_hz)
    report.figures["longest_gap_ms"] = round(longest_ms, 3)
    if longest_ms > limit_ms:
        report.add(f"no samples for {longest_ms:.0f} ms (limit {limit_ms:.0f} ms)", Evidence.TICKS)


def _examine_series(report: Report, what: str, series: list[Record], window: Window, evidence: Evidence) -> None:
    times_us = [record["time_us"] for record in series]
    silence_ms = window_readings.longest_silence_ms(times_us, window.start_us, window.end_us)
    if silence_ms > limits.SECONDLY_GAP_MS:
        report.add(f"no reading of the {what} for {silence_ms:.0f} ms (limit {limits.SECONDLY_GAP_MS} ms)", evidence)


def examine_clock(raw: RawRun, window: Window | None) -> Report:
    """Report on the wall clock, which every sampler compares with the monotonic one."""
    report = Report("clock", {"longest_step_ms": None})
    if window is None:
        return report
    spans = [
        (each, window_readings.find_enclosing_ticks(each.ticks, window, limits.edge_gap_ms(each.rate_hz)))
        for each in raw.samples.values()
    ]
    # What is left where no step is known: the two clocks are not read at quite the same moment.
    apart_ms = [window_readings.longest_step_ms(each, span) for each, span in spans if not isinstance(span, Unknown)]
    steps = [step for each in raw.clocks.all for step in each.steps]
    steps_ms = [abs(by_us) / 1000 for at_us, by_us in steps if window.start_us <= at_us <= window.end_us]
    if apart_ms:
        report.figures["longest_step_ms"] = round(max(*apart_ms, *steps_ms, 0.0), 3)
    else:
        report.add("no sampler compared the clocks over the whole window", Evidence.CLOCK, Evidence.TIMES)
    if any(each.stretches is None for each in raw.clocks.all):
        report.add("was set too often to be followed, or the samplers contradict each other", *_OF_TIME)
    elif clock.edges_in_doubt(raw.written, raw.clocks.lab):
        report.add("was set back: which ticks enclose the window is in doubt", *_OF_TIME)
    elif twice_ms := max(_twice_ms(each, window) for each in raw.clocks.all):
        report.add(
            f"was set back, and showed {twice_ms:.0f} ms of the window twice: when something happened that has no"
            " other clock's time is in doubt",
            Evidence.TIMES,
        )
    if raw.clocks.apart_us is None:
        report.add("nothing bounds the difference of the machines' clocks from both sides", *_OF_TIME)
    elif raw.clocks.lab_apart_us is None:
        report.add("nothing bounds the difference of the lab's clock and those of the instances", *_OF_TIME)
    return report


# Neither is it known which ticks tell whether the load was put on in time.
_OF_TIME = (Evidence.CLOCK, Evidence.TIMES, Evidence.LOAD)


def _twice_ms(of_run: Clock, window: Window) -> float:
    """Return how much of the window has times that the clock showed twice, the first or the second time."""
    found = [each for first, until, again, over in of_run.twice() for each in ((first, until), (again, over))]
    inside = [min(until, window.end_us) - max(first, window.start_us) for first, until in found]
    return max([0, *inside]) / 1000


def _ms(value_us: int | None) -> float | None:
    return None if value_us is None else value_us / 1000
