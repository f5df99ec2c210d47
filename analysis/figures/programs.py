"""What programs used, and what they say of themselves on the pages that their declarations name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from analysis.diagnosis.health import Evidence
from analysis.evidence import processes, window_readings
from analysis.evidence.jsonl import Record, integer
from analysis.evidence.rawrun import Scraped
from analysis.evidence.window import Window
from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure, over_instances
from analysis.figures.run import Run, greatest, total
from formats.role import Role

_PROCESSES = {Evidence.PROCESSES: "sampler", Evidence.CLOCK: ""}

_figure = partial(Figure, source="collector: samples.jsonl")

_KB_PER_MB = 1024


def _of_processes(
    combine: Callable[[Iterable[Value]], Value], value: Callable[[list[Record], Window], Value]
) -> Compute:
    return over_instances(_PROCESSES, combine, lambda run, each, window, _: value(run.raw.processes[each], window))


def _cpu_mean(series: list[Record], window: Window) -> Value:
    percent = processes.cpu_percent(processes.under_load(series, window))
    return unknown("there are too few readings of the processes") if percent is None else percent


def _cpu_max(series: list[Record], window: Window) -> Value:
    shares = [processes.cpu_percent(pair) for pair in pairwise(processes.under_load(series, window))]
    known = [share for share in shares if share is not None]
    return max(known) if known else unknown("there are too few readings of the processes")


def _most(key: str, unit: int = 1) -> Callable[[list[Record], Window], Value]:
    def value(series: list[Record], window: Window) -> Value:
        totals = [
            processes.total(reading, key)
            for reading in window_readings.readings_from_before_start(series, window.start_us, window.end_us)
        ]
        known = [each for each in totals if each is not None]
        if not known:
            return unknown(f"no reading of the processes has {key}")
        return max(known) if unit == 1 else round(max(known) / unit, 1)

    return value


def _sampler_mean(run: Run, instance: str, window: Window, _found: Mapping[str, str]) -> Value:
    percent = processes.own_cpu_percent(processes.under_load(run.raw.samples[instance].selves, window))
    return unknown("there are too few records of the sampler itself") if percent is None else percent


def _tcpdump_mean(run: Run, instance: str, window: Window, _found: Mapping[str, str]) -> Value:
    capture = run.raw.captures.get(instance)
    if capture is None:
        return 0
    used_ms = integer(capture.report or {}, "cpu_ms")
    if used_ms is None:
        return unknown("no capture.json says what tcpdump used")
    return round(100_000 * used_ms / (window.load_end_us - window.start_us), 2)


FIGURES: tuple[Figure, ...] = (
    _figure(
        "process.<role>.cpu_percent.mean",
        "Processor time of the role's processes under the load; the sum of the instances.",
        _of_processes(total, _cpu_mean),
        unit="% of one processor",
    ),
    _figure(
        "process.<role>.cpu_percent.max",
        "The maximum between two readings, a second apart.",
        _of_processes(greatest, _cpu_max),
        unit="% of one processor",
    ),
    _figure(
        "process.<role>.rss_mb.max",
        "Their greatest resident memory.",
        _of_processes(greatest, _most("rss_kb", _KB_PER_MB)),
        unit="MiB",
    ),
    _figure(
        "process.<role>.threads.max",
        "Their greatest number of threads.",
        _of_processes(greatest, _most("threads")),
        unit="threads",
    ),
    _figure(
        "process.<role>.open_files.max",
        "Their greatest number of open files.",
        _of_processes(greatest, _most("open_files")),
        unit="files",
    ),
    _figure(
        "process.<role>.collector.cpu_percent.mean",
        "Processor time of the collectors beside the role's instances under the load, without tcpdump; the sum of the"
        " instances.",
        over_instances(_PROCESSES, total, _sampler_mean),
        unit="% of one processor",
    ),
    Figure(
        "process.<role>.tcpdump.cpu_percent.mean",
        "Processor time of tcpdump beside the role's instances: all of it, from its start to its end, as if it were"
        " under the load; the sum of the instances. 0 where nothing is captured.",
        over_instances({}, total, _tcpdump_mean),
        "collector: capture.json",
        unit="% of one processor",
    ),
)


def page_figures(path: Mapping[str, Role]) -> tuple[Figure, ...]:
    """Return the figures of all pages of these roles."""
    return tuple(figure for role, declared in path.items() for figure in _of_role(role, declared))


def _of_role(role: str, declared: Role) -> Iterator[Figure]:
    # Several servers may stand beside each other.
    instance = "<backend>." if declared.kind == "server" else ""
    for page, content in declared.pages().items():
        for name, number in content.values.items():
            if number.description is None:
                continue
            compute = partial(_of_page, role=role, page=page, name=name, grows=number.grows)
            yield Figure(
                f"{content.figure_prefix or page}.{instance}{name}" + ("" if number.grows else ".max"),
                f"The {number.description}, over the window; the sum of the instances."
                if number.grows
                else f"The most {number.description} at once, in readings once a second.",
                compute,
                f"collector: {page}.jsonl",
                of_role=role,
            )


def _of_page(run: Run, found: Mapping[str, str], *, role: str, page: str, name: str, grows: bool) -> Value:
    instances = run.instances(found.get("backend", role))
    pages = {each.instance: each for each in run.raw.scraped if each.name == page}
    combine, of_one = (total, _growth) if grows else (greatest, _level)
    if any(each not in pages for each in instances):
        return unknown(f"{' and '.join(instances)} has no page {page}")
    return run.resting_on(
        instances,
        {Evidence.SCRAPES: page, Evidence.TIMES: ""},
        lambda window: combine(of_one(pages[each], name, window) for each in instances),
    )


def _level(scraped: Scraped, name: str, window: Window) -> Value:
    known = [values[name] for values in _inside(scraped, window) if name in values]
    return max(known) if known else unknown(f"no scrape has {name}")


def _growth(scraped: Scraped, name: str, window: Window) -> Value:
    inside = list(_inside(scraped, window))
    if not inside or scraped.scrape.times_us[0] > window.start_us:
        return unknown("there is no scrape before the measurement")
    before, after = inside[0].get(name), inside[-1].get(name)
    if before is None or after is None:
        return unknown(f"no scrape has {name}")
    return after - before if after >= before else unknown(f"{name} went back from {before} to {after}")


def _inside(scraped: Scraped, window: Window) -> Iterable[Mapping[str, int]]:
    times_us = scraped.scrape.times_us
    return (
        scraped.values[index]
        for index in window_readings.indices_from_before_start(times_us, window.start_us, window.end_us)
    )
