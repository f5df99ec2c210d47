"""Examines a load generator that is not k6: what it leaves of its requests; what it lacks is said once."""

from __future__ import annotations

from pathlib import Path

from analysis.diagnosis.health import host
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence import result_files
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.formatting import excerpt, format_ms
from formats.role import CONTAINER_LOG
from formats.safe_files import open_regular


def examine(raw: RawRun, instance: str, window: Window | None) -> Report:
    """Report on one instance of a generator; its packets and its kernel have reports of their own."""
    role, exit_code = raw.manifest.client, raw.manifest.exits.get(instance)
    cpu_percent = host.cpu_percent(raw, instance, window)
    report = Report(f"{role}/{instance}", {"exit_code": exit_code, "cpu_percent": cpu_percent})
    results = [file for each, file, _ in raw.manifest.logged(result_files.FORMATS) if each == instance]
    if not results:
        what = f"{role} leaves no record of its requests that the lab reads; packets and kernels tell of connections"
        report.add(what, Evidence.REQUESTS, Evidence.DIALS, Evidence.EVENTS)
    else:
        file, log = results[-1], raw.records.requests[instance]
        report.figures["requests"] = log.count
        for message in log.damage.messages(file):
            report.add(message, Evidence.REQUESTS)
        if not log.count and log.damage.missing is None:
            report.add(f"{file} has no request", Evidence.REQUESTS)
        report.add(f"{file} does not tell of each connection, nor of its port", Evidence.DIALS, Evidence.EVENTS)
    ended_after_ms = _ended_after_ms(raw)
    if exit_code and ended_after_ms is not None:
        limit = f"load.max_duration ({format_ms(ended_after_ms)})"
        report.add(f"the lab ended {role} at {limit}, before it was done: raise that, or give {role} less to do")
    elif exit_code:
        said = own_words(raw.places.log(instance, CONTAINER_LOG))
        words = f": {excerpt(said)}" if said else ""
        report.add(f"{role} ended with exit code {exit_code}{words} (container.log has all that it said)")
    return report


def _ended_after_ms(raw: RawRun) -> int | None:
    """Return load.max_duration, if the load lasted as long: then the lab ended it."""
    most_ms, measured = raw.manifest.integer_of("load.max_duration"), raw.manifest.phase("measure")
    if most_ms is None or measured is None or measured.end_us is None:
        return None
    return most_ms if measured.end_us - measured.start_us >= 1000 * most_ms else None


# How much of a log's beginning and end is looked at.
_READ_BYTES = 8192


def own_words(log: Path) -> str:
    """Return the line of a program's log that says why it ended: the last, or the one before it explains its options.

    It is empty where the log has none, or cannot be read.
    """
    try:
        with open_regular(log) as file:
            head = file.read(_READ_BYTES)
            file.seek(0, 2)
            file.seek(max(len(head), file.tell() - _READ_BYTES))
            text = (head + file.read()).decode(errors="replace")
    except (OSError, ValueError):
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    usage = next((place for place, line in enumerate(lines) if line.lower().startswith("usage")), len(lines))
    return next(reversed(lines[:usage] or lines[:1]), "")
