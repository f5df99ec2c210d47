"""Why requests failed or were slow, in words, and on which hop; and whose next SYN was due too late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.database import composed, sql
from analysis.diagnosis import causes, syn_ladder
from analysis.diagnosis.causes import UNEXPLAINED, Cause
from analysis.diagnosis.causes.cause import FIRST_HOP, LAST_HOP
from analysis.diagnosis.settings import Settings, UndefinedError
from analysis.formatting import counted, spoken
from analysis.reports import time_series
from analysis.reports.run_record import Record
from formats import manifest


@dataclass(frozen=True)
class Reason:
    """Why some requests failed or were slow, and how many.

    Attributes:
        cause: of the closed list.
        count: failed and slow requests.
        failed: of these, those that failed.
        because: the cause's clause, with the roles of the hop.
        where: where on the path it happened.
        hop: the roles of that hop.
    """

    cause: Cause
    count: int
    failed: int
    because: str
    where: str
    hop: tuple[str, str]


def find_reasons(record: Record) -> list[Reason]:
    """Return the causes of a run, the main one first."""
    failed = record.ledger["failed_causes"]
    return [
        _reason(record, causes.cause_named(name), count, failed.get(name, 0))
        for name, count in rank_causes(record.ledger["causes"], record.ledger["unexplained"], failed)
    ]


def rank_causes(
    explained: Mapping[str, int], unexplained: int | None, failed: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Return each cause with its failed and slow requests: that of most failures first, then the most frequent one."""
    counts = {**explained, UNEXPLAINED.name: unexplained or 0}
    found = [(name, count) for name, count in counts.items() if count]
    return sorted(found, key=lambda item: (-failed.get(item[0], 0), -item[1], item[0]))


def _reason(record: Record, cause: Cause, count: int, failed: int) -> Reason:
    client, server = _hop(record, cause)
    ends = {"client": name_role(record, client), "server": name_role(record, server)}
    because, where = cause.because.format(**ends), cause.where.format(**ends)
    return Reason(cause, count, failed, because, where, (client, server))


def name_role(record: Record, role: str) -> str:
    """Return a role within a sentence."""
    declared = record.roles.get(role)
    return (declared.display_name if declared else None) or f"the {role}"


def _hop(record: Record, cause: Cause) -> tuple[str, str]:
    """Return the roles of the hop on which most of a cause's requests were hurt."""
    path = record.request_path if len(record.path) > 1 else ["client", "server"]
    at_the_end = cause.hop == LAST_HOP
    proxied = len(path) > 2  # noqa: PLR2004  client, proxy, server
    if cause.hop not in (FIRST_HOP, LAST_HOP) and proxied and record.has("requests"):
        rows = record.rows(composed(__name__, "share_at_last_hop", at_last_hop=cause.hop), cause=cause.name)
        at_the_end = (rows[0]["share"] or 0) > 0.5  # noqa: PLR2004  most of them
    return (path[-2], path[-1]) if at_the_end else (path[0], path[1])


_WHOLE_SECONDS_FROM = 10


def too_late_sentence(record: Record, main: Reason) -> str | None:
    """Return how many clients failed though the accept queue had a free place from some moment on.

    None if there were none, or the evidence does not say: it takes the flows, the queue's samples, and clients that the
    lab dialled with.
    """
    if main.hop != tuple(record.path[:2]) or not all(map(record.has, ("requests", "flows", "timeline"))):
        return None
    next_ms = _next_syn_ms(record)
    if next_ms is None or record.start_us is None:
        return None
    queues = time_series.queues_per_instance(record, main.hop[1])
    found = record.rows(sql(__name__, "too_late"), queues=queues, cause=main.cause.name)[0]
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
        f" timeout of {spoken(record.knob('load.connect_timeout'))}."
    )


def _second(record: Record, time_us: int) -> str:
    """Return a moment since the measurement began: to a tenth while that tells moments apart."""
    seconds = record.offset_s(time_us)
    return f"{seconds:.0f}" if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f}"


def _next_syn_ms(record: Record) -> int | None:
    """Return when the first SYN would be due that the connect timeout forestalls; None if there is none."""
    timeout_ms = record.knob("load.connect_timeout")
    if not isinstance(timeout_ms, int):
        return None
    try:
        ladder = syn_ladder.ladder_of_users(Settings(manifest.load_manifest(record.folder)))
    except (UndefinedError, manifest.ManifestError):
        return None
    return next((syn.earliest_ms for syn in ladder if syn.earliest_ms >= timeout_ms), None)
