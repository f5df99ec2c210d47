"""What the processes of a role used, and what the logs of a proxy say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from analysis.database import sql
from analysis.diagnosis.health import Evidence
from analysis.evidence import processes
from analysis.evidence.jsonl import integer
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.declaration import Compute, Figure
from analysis.figures.run import Run, greatest, status_bounds, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.evidence.bulk import Log
    from analysis.evidence.captures import Capture
    from analysis.evidence.jsonl import Record
    from analysis.evidence.window import Window

_PROCESSES = {Evidence.PROCESSES: "sampler", Evidence.CLOCK: ""}
_ACCESS = {Evidence.ACCESS: "access", Evidence.TIMES: ""}
_ERRORS = {Evidence.ERRORS: "errors", Evidence.TIMES: ""}

_SAMPLES_FILE = "collector: samples.jsonl"
_ACCESS_FILE = "the proxy: access.jsonl"

_KB_PER_MB = 1024


def _of_processes(
    combine: Callable[[Iterable[Value]], Value], value: Callable[[list[Record], Window], Value]
) -> Compute:
    def compute(run: Run, found: Mapping[str, str]) -> Value:
        instances = run.instances(found["role"])
        readings = run.raw.processes
        return run.resting_on(
            instances, _PROCESSES, lambda window: combine(value(readings[each], window) for each in instances)
        )

    return compute


def _cpu_mean(series: list[Record], window: Window) -> Value:
    percent = processes.cpu_percent(processes.under_load(series, window))
    return unknown("there are too few readings of the processes") if percent is None else percent


def _cpu_max(series: list[Record], window: Window) -> Value:
    shares = [processes.cpu_percent(pair) for pair in pairwise(processes.under_load(series, window))]
    known = [share for share in shares if share is not None]
    return max(known) if known else unknown("there are too few readings of the processes")


def _most(key: str, unit: int = 1) -> Callable[[list[Record], Window], Value]:
    def value(series: list[Record], window: Window) -> Value:
        totals = [processes.total(reading, key) for reading in processes.in_window(series, window)]
        known = [each for each in totals if each is not None]
        if not known:
            return unknown(f"no reading of the processes has {key}")
        return max(known) if unit == 1 else round(max(known) / unit, 1)

    return value


def _samplers(run: Run, found: Mapping[str, str]) -> Value:
    instances, samples = run.instances(found["role"]), run.raw.samples
    return run.resting_on(
        instances, _PROCESSES, lambda window: total(_sampler_mean(samples[each].selves, window) for each in instances)
    )


def _sampler_mean(selves: list[Record], window: Window) -> Value:
    percent = processes.own_cpu_percent(processes.under_load(selves, window))
    return unknown("there are too few records of the sampler itself") if percent is None else percent


def _captures(run: Run, found: Mapping[str, str]) -> Value:
    instances, captures = run.instances(found["role"]), run.raw.captures
    return run.resting_on(
        instances,
        {},
        lambda window: total(_tcpdump_mean(captures[each], window) if each in captures else 0 for each in instances),
    )


def _tcpdump_mean(capture: Capture, window: Window) -> Value:
    used_ms = integer(capture.report or {}, "cpu_ms")
    if used_ms is None:
        return unknown("no capture.json says what tcpdump used")
    return round(100_000 * used_ms / (window.load_end_us - window.start_us), 2)


def _lines(count: Callable[[Log, Window, Mapping[str, str]], int]) -> Compute:
    def compute(run: Run, found: Mapping[str, str]) -> Value:
        access = run.raw.access
        return run.resting_on(
            list(access), _ACCESS, lambda window: total(count(log, window, found) for log in access.values())
        )

    return compute


def _in_window(query: str, column: str, evidence: dict[Evidence, str] = _ACCESS) -> Compute:
    """A count of the window: a column of a query, whose further parameters are those of the figure's name."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        if isinstance(joined, Unknown):
            return joined

        def count(window: Window) -> Value:
            named = {name: value for name, value in found.items() if name != "proxy"}
            edges = {"start_us": window.start_us, "end_us": window.end_us}
            return int(joined.row(sql(__name__, query), **edges, **named)[column])

        return run.resting_on(list(run.raw.access), evidence, count)

    return compute


def _count_lines(log: Log, window: Window, found: Mapping[str, str]) -> int:
    times_ms, statuses = log.columns["time_ms"], log.columns["status"]
    inside = (times_ms >= window.start_us // 1000) & (times_ms <= -(-window.end_us // 1000))
    if "status" in found:
        low, high = status_bounds(found["status"])
        inside &= (statuses >= low) & (statuses <= high)
    return int(np.count_nonzero(inside))


_TRIES = {
    "total": "Servers that the proxy tried for its requests.",
    "connected": "Tries that had a connection, new or kept.",
    "connect_timeout": "Tries that timed out before they were connected.",
    "connect_failed": "Tries that failed before they were connected.",
    "aborted": (
        "Tries that ended before they were connected: the client left, or the proxy tried again and told no more."
    ),
    "retried": "Tries in vain, after which the proxy tried again.",
}

FIGURES: tuple[Figure, ...] = (
    Figure(
        "process.<role>.cpu_percent.mean",
        Kind.NUMBER,
        "% of one processor",
        "Processor time of the role's processes under the load; the sum of the instances.",
        _SAMPLES_FILE,
        _of_processes(total, _cpu_mean),
    ),
    Figure(
        "process.<role>.cpu_percent.max",
        Kind.NUMBER,
        "% of one processor",
        "The maximum between two readings, a second apart.",
        _SAMPLES_FILE,
        _of_processes(greatest, _cpu_max),
    ),
    Figure(
        "process.<role>.rss_mb.max",
        Kind.NUMBER,
        "MiB",
        "Their greatest resident memory.",
        _SAMPLES_FILE,
        _of_processes(greatest, _most("rss_kb", _KB_PER_MB)),
    ),
    Figure(
        "process.<role>.threads.max",
        Kind.NUMBER,
        "threads",
        "Their greatest number of threads.",
        _SAMPLES_FILE,
        _of_processes(greatest, _most("threads")),
    ),
    Figure(
        "process.<role>.open_files.max",
        Kind.NUMBER,
        "files",
        "Their greatest number of open files.",
        _SAMPLES_FILE,
        _of_processes(greatest, _most("open_files")),
    ),
    Figure(
        "process.<role>.collector.cpu_percent.mean",
        Kind.NUMBER,
        "% of one processor",
        "Processor time of the collectors beside the role's instances under the load, without tcpdump; the sum of the"
        " instances.",
        _SAMPLES_FILE,
        _samplers,
    ),
    Figure(
        "process.<role>.tcpdump.cpu_percent.mean",
        Kind.NUMBER,
        "% of one processor",
        "Processor time of tcpdump beside the role's instances: all of it, from its start to its end, as if it were"
        " under the load; the sum of the instances. 0 where nothing is captured.",
        "collector: capture.json",
        _captures,
    ),
    Figure(
        "access.<proxy>.requests",
        Kind.NUMBER,
        "",
        "Requests that ended at the proxy in the window.",
        _ACCESS_FILE,
        _lines(_count_lines),
    ),
    Figure(
        "access.<proxy>.status.<status>",
        Kind.NUMBER,
        "",
        "Requests that the proxy answered with this status, or with one of this class.",
        _ACCESS_FILE,
        _lines(_count_lines),
    ),
    *(
        Figure(
            f"access.<proxy>.tries.{name}",
            Kind.NUMBER,
            "",
            meaning,
            _ACCESS_FILE,
            _in_window("at_proxies", f"tries_{name}"),
        )
        for name, meaning in _TRIES.items()
    ),
    *(
        Figure(
            f"access.nginx.connection.{name}",
            Kind.NUMBER,
            "",
            f"Requests that nginx answered with `Connection: {header}`: it {then} the client's connection after them.",
            _ACCESS_FILE,
            _in_window("at_proxies", f"connection_{name}"),
            of_role="nginx",
        )
        for name, header, then in (("close", "close", "closes"), ("keep_alive", "keep-alive", "keeps"))
    ),
    Figure(
        "access.<proxy>.errors.<code>",
        Kind.NUMBER,
        "",
        "Lines of the error log with this system error number, such as 111 for a refused connection.",
        "the proxy: error.log",
        _in_window("errors_with", "count", _ERRORS),
    ),
)
