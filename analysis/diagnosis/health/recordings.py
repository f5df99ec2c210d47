"""Examines scrapes, access logs and captures."""

from itertools import pairwise
from pathlib import Path

from analysis.database import sql
from analysis.diagnosis.health import k6, limits
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence import logs, window_readings
from analysis.evidence.captures import Capture
from analysis.evidence.flows import Reduction
from analysis.evidence.jsonl import Record, integer, why_unreadable
from analysis.evidence.kernel_events import KernelEvents
from analysis.evidence.rawrun import RawRun, Scraped
from analysis.evidence.records import Log, Records
from analysis.evidence.window import Window
from analysis.formatting import format_count
from formats.safe_files import open_regular

# What a capture's account says where nobody counted what the kernel dropped.
UNTOLD = ("nothing says how many packets the kernel dropped",)

# 128 and the signal's number: a program that does not handle the signal by which the lab ends it.
_BY_SIGTERM = 143

# A proxy may read its clock once in each turn of its event loop.
_TURN_US = 100_000


def examine_scrape(scraped: Scraped, window: Window | None, ends: int) -> Report:
    """Report on the scrapes of one page; `ends`: how often the lab ended or reloaded what counted, in the window."""
    instance, page, scrape = scraped.instance, scraped.name, scraped.scrape
    report = Report(f"{page}/{instance}")
    report.figures = {"readings": len(scrape.times_us), "errors": len(scrape.errors_us), "longest_gap_ms": None}
    for message in scrape.damage.messages(f"{page}.jsonl"):
        report.add(message)
    if ends:
        report.add(f"{instance} was ended by the lab, or reloaded, and what it had counted with it", Evidence.SCRAPES)
    if window is None:
        return report
    if any(later < earlier for earlier, later in pairwise(scrape.times_us)):
        report.add(f"{page}.jsonl has readings that go back in time", Evidence.SCRAPES)
    # Those before and after are of a server that starts or stops.
    errors = sum(window.start_us <= time_us <= window.end_us for time_us in scrape.errors_us)
    if errors:
        report.add(f"{errors} scrapes failed in the window")
    silence_ms = window_readings.longest_silence_ms(scrape.times_us, window.start_us, window.end_us)
    report.figures["longest_gap_ms"] = round(silence_ms, 3)
    if silence_ms > limits.SECONDLY_GAP_MS:
        report.add(f"no scrape for {silence_ms:.0f} ms (limit {limits.SECONDLY_GAP_MS} ms)", Evidence.SCRAPES)
    return report


def access_logs(raw: RawRun) -> list[tuple[str, str]]:
    """Return the proxies' access logs, whose lines the account needs: each instance, and its file."""
    known = [(instance, file) for instance, file, _ in raw.manifest.logged(logs.ACCESS)]
    declared = [(instance, file) for instance, file, _ in raw.manifest.declared_logs()]
    return [one for one in (*known, *declared) if one[0] in raw.records.access]


def examine_access(raw: RawRun, instance: str, file: str) -> Report:
    """Report on a proxy's access log; the proxy writes its last lines as it ends.

    The log has no end of its own, so others must say how many lines it should have.
    """
    log, exit_codes = raw.records.access[instance], _exits(raw, instance)
    report = Report(f"access/{instance}", {"lines": log.count, "exit_code": exit_codes[-1]})
    for message in log.damage.messages(file):
        report.add(message, Evidence.ACCESS)
    for exit_code in filter(None, exit_codes):
        advice = ": let it write them on SIGTERM, and end with 0" if exit_code == _BY_SIGTERM else ""
        what = f"{instance} ended with exit code {exit_code}, so its last lines may be missing{advice}"
        report.add(what, Evidence.ACCESS)
    if log.damage.missing is not None:
        return report
    answers = _answers(raw, instance)
    if log.count < answers:
        report.add(f"{file} has {log.count} lines, and the clients read {answers} answers", Evidence.ACCESS)
    counted = _counted(raw, instance)
    if counted is not None:
        _compare_with_count(report, raw.records, counted)
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


def _compare_with_count(report: Report, records: Records, counted: Scraped) -> None:
    """Report lines that are missing of the requests that the proxy counted between its first and its last page."""
    name, value = next((name, value) for name, value in counted.page.values.items() if value.log)
    scrape = counted.scrape
    counts = [
        (time_us, values[name])
        for time_us, values in zip(scrape.times_us, counted.values, strict=True)
        if name in values
    ]
    if len(counts) < 2:  # noqa: PLR2004  two make a difference
        report.add(f"no two pages of {counted.name} say how many lines {value.log} should have", Evidence.ACCESS)
        return
    (first_us, first), (last_us, last) = counts[0], counts[-1]
    read_us = (*scrape.times_us, *scrape.errors_us) if value.own else ()
    pages = sum(first_us < time_us <= last_us for time_us in read_us)
    begun = last - first - pages
    # One that began before the first page, or as the last was read, may be in either count.
    around = {"first_us": first_us - _TURN_US, "last_us": last_us + _TURN_US}
    lines = records.row(sql(__name__, "begun"), instance=counted.instance, **around)["count"]
    if lines < begun:
        report.add(
            f"{value.log} has {lines} lines of requests for which {counted.name} counted {begun}: some are missing",
            Evidence.ACCESS,
        )


def examine_errors(instance: str, error_log: Path) -> Report:
    """Report on a proxy's error log: it is there from the proxy's start on, also if it has no line."""
    report = Report(f"errors/{instance}")
    try:
        open_regular(error_log).close()
    except OSError as error:
        report.add(f"error.log: {why_unreadable(error)}", Evidence.ERRORS)
    return report


def examine_dials(instance: str, log: Log) -> Report:
    """Report on a proxy's own record of its dials."""
    report = Report(f"dials/{instance}", {"dials": log.count, "ended": log.announced is not None})
    k6.examine_log(report, instance, "dials", log, Evidence.DIALS)
    return report


def examine_capture(instance: str, capture: Capture, reduction: Reduction) -> Report:
    """Report on one instance's capture: its own account, and what could be read of its packets."""
    report = Report(f"capture/{instance}")
    account = capture.report or {}
    report.figures = {
        "packets": integer(account, "packets_captured"),
        "packets_dropped": capture.dropped_packets,
        "bytes": integer(account, "bytes"),
        "truncated": capture.truncated if capture.report is not None else None,
    }
    if not capture.packets:
        report.add("capture.pcap: missing", Evidence.PACKETS)
    for loss in reduction.losses:
        report.add(loss, Evidence.PACKETS)
    if capture.report is None:
        report.add("capture.json: missing or broken: the capture did not end cleanly", Evidence.PACKETS)
        return report
    if capture.reason is not None:
        report.add(capture.reason, Evidence.PACKETS)
    if capture.truncated:
        report.add("ended at its size limit, before the run did", Evidence.PACKETS)
    if capture.dropped_packets is None:
        report.add(UNTOLD[0], Evidence.PACKETS)
    elif capture.dropped_packets > 0:
        report.add(f"the kernel dropped {capture.dropped_packets} packets", Evidence.PACKETS)
    _compare_accounts(report, account, reduction)
    return report


def _compare_accounts(report: Report, account: Record, reduction: Reduction) -> None:
    """Report a file that is not the one that its account is about."""
    written = integer(account, "packets_captured")
    if written is not None and reduction.packets not in (None, written) and not reduction.losses:
        report.add(f"capture.pcap holds {reduction.packets} packets, capture.json says {written}", Evidence.PACKETS)
    started_us, ended_us = integer(account, "started_us"), integer(account, "ended_us")
    slack_us = 1000 * limits.CLOCK_STEP_MS
    early = started_us is not None and (reduction.first_us or started_us) < started_us - slack_us
    late = ended_us is not None and (reduction.last_us or ended_us) > ended_us + slack_us
    if early or late:
        report.add("capture.pcap has packets of another time than capture.json", Evidence.PACKETS)


def examine_kernel_events(instance: str, found: KernelEvents) -> Report:
    """Report on what the kernel of an instance told of its connections."""
    report = Report(f"events/{instance}", {"events": found.count, "lost": found.lost, "missed_max": found.missed_max})
    for message in found.damage.messages("events.jsonl"):
        report.add(message, Evidence.KERNEL_EVENTS)
    if found.damage.missing is not None:
        return report
    if not found.header:
        report.add("events.jsonl has no header of this instance and of a version that is read", Evidence.KERNEL_EVENTS)
    if not found.ended:
        report.add("events.jsonl has no last line: the collector was killed", Evidence.KERNEL_EVENTS)
    elif found.reason is not None:
        report.add(f"the kernel gave no events, or no more: {found.reason}", Evidence.KERNEL_EVENTS)
    elif found.announced != found.count:
        what = f"events.jsonl has {found.count} events, and its last line says {found.announced}"
        report.add(what, Evidence.KERNEL_EVENTS)
    if found.lost:
        report.add(f"{format_count(found.lost, 'event')} found no room", Evidence.KERNEL_EVENTS)
    return report
