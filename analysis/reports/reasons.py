"""Why requests failed or were slow, in words, and on which hop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.database import composed
from analysis.diagnosis import causes
from analysis.diagnosis.causes import UNEXPLAINED, Cause
from analysis.diagnosis.causes.cause import FIRST_HOP, LAST_HOP
from analysis.reports.run_record import Record
from formats.manifest import declared_roles


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


def of_run(record: Record) -> list[Reason]:
    """The causes of a run, the main one first."""
    failed = record.ledger["failed_causes"]
    return [
        _reason(record, causes.cause_named(name), count, failed.get(name, 0))
        for name, count in ranked(record.ledger["causes"], record.ledger["unexplained"], failed)
    ]


def ranked(explained: Mapping[str, int], unexplained: int | None, failed: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each cause with its failed and slow requests: that of most failures first, then the most frequent one.

    Args:
        explained: the ledger's `causes`.
        unexplained: the ledger's.
        failed: how many requests failed for each cause.
    """
    counts = {**explained, UNEXPLAINED.name: unexplained or 0}
    found = [(name, count) for name, count in counts.items() if count]
    return sorted(found, key=lambda item: (-failed.get(item[0], 0), -item[1], item[0]))


def _reason(record: Record, cause: Cause, count: int, failed: int) -> Reason:
    client, server = _hop(record, cause)
    ends = {"client": named(record, client), "server": named(record, server)}
    because, where = cause.because.format(**ends), cause.where.format(**ends)
    return Reason(cause, count, failed, because, where, (client, server))


def named(record: Record, role: str) -> str:
    """A role within a sentence."""
    declared = declared_roles(record.manifest).get(role)
    return (declared.called if declared else None) or f"the {role}"


def _hop(record: Record, cause: Cause) -> tuple[str, str]:
    """The roles of the hop on which most of a cause's requests were hurt."""
    path = record.request_path if len(record.path) > 1 else ["client", "server"]
    at_the_end = cause.hop == LAST_HOP
    proxied = len(path) > 2  # noqa: PLR2004  client, proxy, server
    if cause.hop not in (FIRST_HOP, LAST_HOP) and proxied and record.has("requests"):
        rows = record.rows(composed(__name__, "share_at_last_hop", at_last_hop=cause.hop), cause=cause.name)
        at_the_end = (rows[0]["share"] or 0) > 0.5  # noqa: PLR2004  most of them
    return (path[-2], path[-1]) if at_the_end else (path[0], path[1])
