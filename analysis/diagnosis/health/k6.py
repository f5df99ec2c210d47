"""Examines what one k6 instance recorded, and whether it put on the load it was asked for."""

from analysis.diagnosis.health import host, limits
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.evidence.k6_files import Client
from analysis.evidence.rawrun import RawRun
from analysis.evidence.records import Log
from analysis.evidence.window import Window
from analysis.expressions.values import is_number
from analysis.formatting import format_count

# The workloads with so many users, each of whom sends a request at least.
_OF_USERS = ("users", "tcp", "long_polling", "half_open")


def examine(raw: RawRun, instance: str, window: Window | None) -> Report:
    """Report on one k6 instance."""
    client, exit_code = raw.clients[instance], raw.manifest.exits.get(instance)
    report = Report(f"k6/{instance}")
    report.figures = {
        "exit_code": exit_code,
        "ended": None not in (client.events.announced, client.requests.announced, client.dials.announced),
        "requests": client.requests.count,
        "dials": client.dials.count,
        "events": client.events.count,
        "dropped_iterations": client.dropped_iterations,
        "interrupted_iterations": client.interrupted_iterations,
        "log_errors": client.log_errors,
        "cpu_percent": host.cpu_percent(raw, instance, window),
    }
    examine_log(report, "k6", "requests", client.requests, Evidence.REQUESTS)
    examine_log(report, "k6", "dials", client.dials, Evidence.DIALS)
    examine_log(report, "k6", "events", client.events, Evidence.EVENTS)
    _examine_load(report, client, exit_code)
    _examine_arrivals(report, client.requests.count, _due(raw))
    if client.log_errors:
        report.add(f"k6.log has {client.log_errors} errors")
    return report


def examine_users(raw: RawRun) -> Report:
    """Report on whether all users of the load began, of all instances together."""
    begun = raw.records.row("SELECT count(DISTINCT (instance, vu)) AS begun FROM requests")["begun"]
    report = Report("users", {"begun": begun})
    if any(client.requests.announced != client.requests.count for client in raw.clients.values()):
        return report  # some are not known; the file's own report says so
    asked = raw.manifest.integer_of("load.users")
    if asked is not None and raw.manifest.value_of("load.workload") in _OF_USERS and begun < asked:
        report.add(f"{begun} of {asked} users sent a request: the load was smaller than requested", Evidence.LOAD)
    return report


def examine_log(report: Report, program: str, what: str, log: Log, evidence: Evidence) -> None:
    """Report on a file of a program that begins with a header and ends with a count."""
    file = f"{what}.jsonl"
    for message in log.damage.messages(file):
        report.add(message, evidence)
    if log.damage.missing is not None:
        return
    if not log.header:
        report.add(f"{file} has no header of this instance and of a version that this program reads", evidence)
    if log.announced is None:
        report.add(f"{file} has no last line: {program} did not end cleanly, so {what} may be missing", evidence)
    elif log.announced != log.count:
        report.add(f"{file} holds {log.count} {what}, its last line says {log.announced}", evidence)


def _examine_load(report: Report, client: Client, exit_code: int | None) -> None:
    if exit_code is None:
        # The last lines of its files prove an orderly end as well.
        report.add("the manifest does not say how k6 ended")
    elif exit_code not in limits.K6_EXITS_IN_ORDER:
        report.add(f"k6 ended with exit code {exit_code}", Evidence.LOAD)
    if client.requests.announced is None and client.dials.announced is None:
        report.add("k6 did not end cleanly, so the load may have ended early", Evidence.LOAD)
    if client.dropped_iterations is None:
        report.add("k6 did not report its dropped iterations", Evidence.LOAD)
    elif client.dropped_iterations > 0:
        report.add(
            f"k6 dropped {client.dropped_iterations} iterations: the load was smaller than requested", Evidence.LOAD
        )
    if client.interrupted_iterations:
        report.add(
            f"k6 interrupted {format_count(client.interrupted_iterations, 'iteration')} before the end, as it does at"
            " load.max_duration: requests in progress have no record",
            Evidence.LOAD,
        )


def _due(raw: RawRun) -> float | None:
    """Return the requests that each k6 instance had to begin, where their moments are set: those of a spike."""
    manifest = raw.manifest
    rate_per_second, duration_ms = (manifest.value_of(name) for name in ("load.rate_per_second", "load.duration"))
    if manifest.value_of("load.workload") != "spike" or not (is_number(rate_per_second) and is_number(duration_ms)):
        return None
    return rate_per_second * duration_ms / 1000 / len(raw.clients)


def _examine_arrivals(report: Report, begun: int, due: float | None) -> None:
    """Compare the requests with those that were due, whatever the servers did."""
    if due is None:
        return
    percent = round(100 * begun / due, 1)
    report.figures["arrivals_percent"] = percent
    if percent < limits.ARRIVALS_PERCENT_MIN:
        report.add(
            f"k6 began {begun} of the {due:.0f} requests that were due, {percent} % of them (limit"
            f" {limits.ARRIVALS_PERCENT_MIN:g} %): it was too slow for this rate",
            Evidence.LOAD,
        )
