"""Examines a load generator that is not k6: what it leaves of its requests; what it lacks is said once."""

from __future__ import annotations

from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence.records import Log


def examine(
    role: str, instance: str, exit_code: int | None, cpu_percent: float | None, results: tuple[str, Log] | None
) -> Report:
    """Report on one instance of a generator; its packets and its kernel have reports of their own.

    Args:
        role: its name on the path.
        instance: its own.
        exit_code: None if the manifest does not say.
        cpu_percent: of its processes under the load.
        results: its file of results and what that holds; None if it has none that the lab reads.
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
    if exit_code:
        report.add(f"{role} ended with exit code {exit_code}: its own output says why (container.log)")
    return report
