"""Why requests failed or were slow, in words, and on which hop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.pages.report import lessons
from analysis.pages.report.record import Record, Row

UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Cause:
    """One cause, and how many requests it has.

    Attributes:
        name: as in the ledger.
        count: failed and slow requests.
        failed: of these, those that failed.
        lesson: in words.
        because: the lesson's clause, with the roles of the hop.
        where: where on the path it happened.
        hop: the roles of that hop.
    """

    name: str
    count: int
    failed: int
    lesson: lessons.Lesson
    because: str
    where: str
    hop: tuple[str, str]


def of_run(record: Record) -> list[Cause]:
    """The causes of a run, the main one first."""
    failed = _failed_by_cause(record)
    return [_cause(record, name, count, failed.get(name, 0)) for name, count in ranked(record.ledger, failed)]


def ranked(ledger: Row, failed: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each cause with its failed and slow requests: that of most failures first, then the most frequent one.

    Args:
        ledger: the content of ledger.json; empty if it cannot be read.
        failed: how many requests failed for each cause.
    """
    counts = {**ledger.get("causes", {}), UNEXPLAINED: ledger.get("unexplained") or 0}
    found = [(name, count) for name, count in counts.items() if count]
    return sorted(found, key=lambda item: (-failed.get(item[0], 0), -item[1], item[0]))


def _failed_by_cause(record: Record) -> dict[str, int]:
    if "failed_causes" in record.ledger:
        return dict(record.ledger["failed_causes"])
    # An older ledger does not have them.
    if not record.has("requests"):
        return {}
    rows = record.rows("SELECT cause, count(*) AS count FROM requests WHERE outcome = 'failed' GROUP BY cause")
    return {row["cause"]: row["count"] for row in rows}


def _cause(record: Record, name: str, count: int, failed: int) -> Cause:
    lesson = lessons.of_cause(name)
    client, server = _hop(record, name)
    ends = {"client": named(client), "server": named(server)}
    because, where = lesson.because.format(**ends), lesson.where.format(**ends)
    return Cause(name, count, failed, lesson, because, where, (client, server))


def named(role: str) -> str:
    """A role within a sentence."""
    return {"k6": "the client", "nginx": "nginx"}.get(role, f"the {role}")


# Causes that a proxy can meet as well as the client does, and what of a request tells that it was the proxy.
_CONNECTING = "dial_error_kind IS NULL AND access_line IS NOT NULL"
_OF_PROXY = {
    "ephemeral-ports-exhausted": _CONNECTING,
    "connection-refused": _CONNECTING,
    "accept-queue-drop": _CONNECTING,
    "accept-queue-reset": _CONNECTING,
    "syn-queue-drop": _CONNECTING,
    "connect-timeout": _CONNECTING,
    "stale-keepalive": "status > 0",
    "waited-for-a-connection": "coalesce(up_pool_us, 0) > coalesce(pool_us, 0)",
    "waited-for-syn-retry": "coalesce(up_syn_us, 0) > coalesce(syn_us, 0)",
    "waited-for-ack-retry": "coalesce(up_ack_us, 0) > coalesce(ack_us, 0)",
    "waited-in-accept-queue": "coalesce(up_queue_us, 0) > coalesce(queue_us, 0)",
}
_AT_THE_END = frozenset(
    {"upstream-timeout", "upstream-failed", "no-live-upstream", "waited-for-a-thread", "slow-handler"}
)


def _hop(record: Record, cause: str) -> tuple[str, str]:
    """The roles of the hop on which most of a cause's requests were hurt."""
    roles = record.path if len(record.path) > 1 else ["client", "server"]
    at_the_end = cause in _AT_THE_END
    if cause in _OF_PROXY and len(roles) > 2 and record.has("requests"):  # noqa: PLR2004  client, proxy, backend
        rows = record.rows(
            f"SELECT avg(({_OF_PROXY[cause]})::INTEGER) AS share FROM requests WHERE cause = $cause",  # noqa: S608  above
            cause=cause,
        )
        at_the_end = (rows[0]["share"] or 0) > 0.5  # noqa: PLR2004  most of them
    return (roles[-2], roles[-1]) if at_the_end else (roles[0], roles[1])
