"""A place that was free while users still waited: they failed because their next SYN was due too late."""

from __future__ import annotations

from analysis.database import sql
from analysis.diagnosis import syn_ladder
from analysis.diagnosis.settings import Settings, UndefinedError
from analysis.formatting import counted, spoken
from analysis.reports import queues, time_series
from analysis.reports.reasons import Reason
from analysis.reports.run_record import Record
from formats import manifest

_WHOLE_SECONDS_FROM = 10


def sentence(record: Record, main: Reason) -> str | None:
    """Say how many clients failed though the accept queue had a free place from some moment on.

    Args:
        record: the run's.
        main: its main cause.

    Returns:
        None if there were none, or the evidence does not say: it takes the flows, the queue's samples, and clients
        that the lab dialled with.
    """
    if main.hop != tuple(record.path[:2]) or not all(map(record.has, ("requests", "flows", "timeline"))):
        return None
    role = main.hop[1]
    next_ms = _next_syn_ms(record)
    if next_ms is None or record.start_us is None:
        return None
    rows = record.rows(
        sql(__name__, "too_late"),
        queues=queues.of_instance(record, role),
        cause=main.cause.name,
    )
    found = rows[0]
    if not found["count"]:
        return None
    since, first, last = (_second(record, found[name]) for name in ("since_us", "first_end_us", "last_end_us"))
    ends = f"{first} s" if first == last else f"{first} to {last} s"
    each, most = ("its", "") if found["count"] == 1 else ("each one's", "at most ")
    last_ms = found["last_us"] / 1000
    syns = f"last SYN had left {most}{spoken(last_ms)} after its first" if last_ms else "only SYN had left"
    return (
        f"From {since} s on the queue had a free place, and {counted(found['count'], 'client')} failed all the same,"
        f" at {ends}: {each} {syns}, and the next was due {spoken(next_ms)} after it, too late for the connect"
        f" time-out of {spoken(record.knob('load.connect_timeout'))}."
    )


def _second(record: Record, time_us: int) -> str:
    """A moment since the measurement began: to a tenth while that tells moments apart."""
    seconds = time_series.seconds(record, time_us)
    return f"{seconds:.0f}" if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f}"


def _next_syn_ms(record: Record) -> int | None:
    """When the first SYN would be due that the connect time-out forestalls; None if there is none, or nobody knows."""
    timeout_ms = record.knob("load.connect_timeout")
    if not isinstance(timeout_ms, int):
        return None
    try:
        ladder = syn_ladder.ladder_of_users(Settings(manifest.load_manifest(record.folder)))
    except (UndefinedError, manifest.ManifestError):
        return None
    return next((syn.earliest_ms for syn in ladder if syn.earliest_ms >= timeout_ms), None)
