"""The instruments first: what each recorded of itself, what is wrong with it, and which evidence that spoils.

In: a run's raw files, read. Out: a report for each instrument, and problems.
It must not know what the evidence says of the servers.
"""

from __future__ import annotations

from analysis.diagnosis.health import arrivals, generator, host, k6, recordings, sampler
from analysis.diagnosis.health.problems import CLIENT, Evidence, Health, Problem, Report
from analysis.evidence import logs
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown

__all__ = ["CLIENT", "Evidence", "Health", "Problem", "Report", "examine"]


def examine(raw: RawRun) -> Health:
    """Examine every instrument of a run."""
    window = None if isinstance(raw.window, Unknown) else raw.window
    clock = sampler.examine_clock(raw, window)
    # The order of packets cannot be told from times that the clock showed twice.
    ordered = window if not any(Evidence.TIMES in each.spoils for each in clock.problems) else None
    reports = [
        clock,
        host.examine(raw, window),
        *([k6.examine_users(raw)] if raw.clients else []),
        *([_examine_removed(raw)] if raw.manifest.removed else []),
        *filter(None, [arrivals.examine_arrivals(raw, ordered), arrivals.examine_kept_connections(raw, ordered)]),
        *(sampler.examine(instance, samples, window) for instance, samples in raw.samples.items()),
        *(k6.examine(raw, instance, window) for instance in raw.clients),
        *(generator.examine(raw, instance, window) for instance in raw.manifest.clients if instance not in raw.clients),
        *(recordings.examine_scrape(each, window, raw.manifest.recounts_of(each.instance)) for each in raw.scraped),
        *(recordings.examine_dials(instance, log) for instance, log in raw.proxy_dials.items()),
        *(recordings.examine_access(raw, instance, file) for instance, file in recordings.access_logs(raw)),
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


def _examine_removed(raw: RawRun) -> Report:
    """Report on names that the lab removed after the run; the reader of each finds its file missing."""
    report = Report("raw", {"removed": len(raw.manifest.removed)})
    for each in raw.manifest.removed:
        report.add(f"{each.file} was {each.was}, not a file of its own: the lab removed it")
    return report
