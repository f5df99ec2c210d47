"""Examines a load generator that is not k6: what it leaves of its requests; what it lacks is said once."""

from __future__ import annotations

from pathlib import Path

from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence.records import Log
from analysis.formatting import excerpt, format_ms
from formats.safe_files import open_regular


def examine(
    role: str,
    instance: str,
    exit_code: int | None,
    cpu_percent: float | None,
    results: tuple[str, Log] | None,
    *,
    said: str = "",
    ended_after_ms: int | None = None,
) -> Report:
    """Report on one instance of a generator; its packets and its kernel have reports of their own.

    Args:
        role: its name on the path.
        instance: its own.
        exit_code: None if the manifest does not say.
        cpu_percent: of its processes under the load.
        results: its file of results and what that holds; None if it has none that the lab reads.
        said: what it said of why it ended, as `own_words` finds it.
        ended_after_ms: when the lab ended it, by load.max_duration; None if the load was over before.
    """
    report = Report(f"{role}/{instance}", {"exit_code": exit_code, "cpu_percent": cpu_percent})
    if results is None:
        what = f"{role} leaves no record of its requests that the lab reads; packets and kernels tell of connections"
        report.add(what, Evidence.REQUESTS, Evidence.DIALS, Evidence.EVENTS)
    else:
        file, log = results
        report.figures["requests"] = log.count
        for message in log.damage.messages(file):
            report.add(message, Evidence.REQUESTS)
        if not log.count and log.damage.missing is None:
            report.add(f"{file} has no request", Evidence.REQUESTS)
        report.add(f"{file} does not tell of each connection, nor of its port", Evidence.DIALS, Evidence.EVENTS)
    if exit_code and ended_after_ms is not None:
        limit = f"load.max_duration ({format_ms(ended_after_ms)})"
        report.add(f"the lab ended {role} at {limit}, before it was done: raise that, or give {role} less to do")
    elif exit_code:
        words = f": {excerpt(said)}" if said else ""
        report.add(f"{role} ended with exit code {exit_code}{words} (container.log has all that it said)")
    return report


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
