"""The instruments first: what each recorded of itself, what is wrong with it, and which evidence that spoils.

In: a run's raw files, read. Out: a report for each instrument, and problems.
It must not know what the evidence says of the servers.
"""

from __future__ import annotations

from analysis.diagnosis.health import arrivals, generator, host, k6, recordings, sampler
from analysis.diagnosis.health.problems import CLIENT, Evidence, Health, Problem, Report
from analysis.evidence import logs, processes, result_files
from analysis.evidence.rawrun import RawRun, Scraped
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown, is_number
from formats.role import CONTAINER_LOG

__all__ = ["CLIENT", "Evidence", "Health", "Problem", "Report", "examine"]


def examine(raw: RawRun) -> Health:
    """Examine every instrument of a run."""
    window = None if isinstance(raw.window, Unknown) else raw.window
    exits = raw.manifest.exits
    clock = sampler.examine_clock(raw, window)
    # The order of packets cannot be told from times that the clock showed twice.
    ordered = window if not any(Evidence.TIMES in each.spoils for each in clock.problems) else None
    results = {
        instance: (file, raw.records.requests[instance])
        for instance, file, _ in raw.manifest.logged(result_files.FORMATS)
    }
    reports = [
        clock,
        host.examine(raw, window),
        *([k6.examine_users(raw)] if raw.clients else []),
        *([_examine_removed(raw)] if raw.manifest.removed else []),
        *filter(None, [arrivals.examine_arrivals(raw, ordered), arrivals.examine_kept_connections(raw, ordered)]),
        *(sampler.examine(instance, samples, window) for instance, samples in raw.samples.items()),
        *(
            k6.examine(instance, client, exits.get(instance), _cpu_percent(raw, instance, window), _due(raw))
            for instance, client in raw.clients.items()
        ),
        *(
            generator.examine(
                raw.manifest.client,
                instance,
                exits.get(instance),
                _cpu_percent(raw, instance, window),
                results.get(instance),
                said=generator.own_words(raw.places.log(instance, CONTAINER_LOG)),
                ended_after_ms=_ended_after_ms(raw),
            )
            for instance in raw.manifest.clients
            if instance not in raw.clients
        ),
        *(recordings.examine_scrape(each, window, raw.manifest.recounts_of(each.instance)) for each in raw.scraped),
        *(recordings.examine_dials(instance, log) for instance, log in raw.proxy_dials.items()),
        *(
            recordings.examine_access(
                raw.records,
                instance,
                file,
                exit_codes=_exits(raw, instance),
                counted=_counted(raw, instance),
                answers=_answers(raw, instance),
            )
            for instance, file in _access_logs(raw)
        ),
        *(
            recordings.examine_errors(instance, raw.places.role(instance, file))
            for instance, file, _ in raw.manifest.logged(logs.ERRORS)
        ),
        *(
            recordings.examine_capture(instance, capture, raw.reductions[instance])
            for instance, capture in raw.captures.items()
        ),
        *(recordings.examine_kernel_events(each, found) for each, found in raw.records.kernel_events.items()),
    ]
    return Health({report.instrument: report for report in reports})


def _access_logs(raw: RawRun) -> list[tuple[str, str]]:
    """Return the proxies' access logs, whose lines the account needs: each instance, and its file."""
    known = [(instance, file) for instance, file, _ in raw.manifest.logged(logs.ACCESS)]
    declared = [(instance, file) for instance, file, _ in raw.manifest.declared_logs()]
    return [one for one in (*known, *declared) if one[0] in raw.records.access]


def _examine_removed(raw: RawRun) -> Report:
    """Report on names that the lab removed after the run; the reader of each finds its file missing."""
    report = Report("raw", {"removed": len(raw.manifest.removed)})
    for each in raw.manifest.removed:
        report.add(f"{each.file} was {each.was}, not a file of its own: the lab removed it")
    return report


def _exits(raw: RawRun, instance: str) -> list[int | None]:
    """Return the exit codes of a server's processes; one that was stopped has ended once."""
    ends = raw.manifest.ends_of(instance)
    started = any(each.instance == instance and each.do == "start" for each in raw.manifest.actions)
    before = [each.exit_code for each in ends if each.do == "restart" or started]
    return [*before, raw.manifest.exits.get(instance)]


def _counted(raw: RawRun, instance: str) -> Scraped | None:
    """Return a page on which the program counts the lines of its log, as far as it can be one count of them all."""
    if raw.manifest.recounts_of(instance):
        return None
    pages = (each for each in raw.scraped if each.instance == instance)
    return next((each for each in pages if any(value.log for value in each.page.values.values())), None)


def _answers(raw: RawRun, proxy: str) -> int:
    """Return the answers that the clients read, whatever their status; 0 of a proxy that does not carry the requests.

    On a path with a proxy all are the proxy's. One behind a service has requests of that service's own.
    """
    if not any(proxy in raw.manifest.of_role(role) for role in raw.manifest.request_path):
        return 0
    count: int = raw.records.row("SELECT count(*) FILTER (status > 0) AS answered FROM requests")["answered"]
    return count


def _due(raw: RawRun) -> float | None:
    """Return the requests that each k6 instance had to begin, where their moments are set: those of a spike."""
    knobs = {name: knob.value for name, knob in raw.manifest.knobs.items()}
    rate_per_second, duration_ms = knobs.get("load.rate_per_second"), knobs.get("load.duration")
    if knobs.get("load.workload") != "spike" or not (is_number(rate_per_second) and is_number(duration_ms)):
        return None
    return rate_per_second * duration_ms / 1000 / len(raw.clients)


def _ended_after_ms(raw: RawRun) -> int | None:
    """Return load.max_duration, if the load lasted as long: then the lab ended it."""
    knob = raw.manifest.knobs.get("load.max_duration")
    measured = next((one for one in raw.manifest.phases if one.name == "measure"), None)
    if knob is None or not isinstance(knob.value, int) or measured is None or measured.end_us is None:
        return None
    return knob.value if measured.end_us - measured.start_us >= 1000 * knob.value else None


def _cpu_percent(raw: RawRun, instance: str, window: Window | None) -> float | None:
    if window is None:
        return None
    return processes.cpu_percent(processes.under_load(raw.processes[instance], window))
