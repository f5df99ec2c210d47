"""Which requests tell the story of a run: a good one, a typical one of each cause, and the slowest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from analysis.account.joins import Joined, Row

Kind = Literal["good", "failed", "slow", "slowest"]

# More than these nobody reads; `connlab explain` tells of any other.
_CAUSES_MAX = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """One request.

    Attributes:
        kind: why it was chosen.
        key: its instance and id.
        cause: why it failed or was slow, None of a good one.
        count: how many are like it.
    """

    kind: Kind
    key: tuple[str, int]
    cause: str | None
    count: int


def of_run(joined: Joined) -> list[Choice]:
    """Choose, in the order in which they are shown."""
    found = [
        *_typical(joined, "good", "outcome = 'ok' AND NOT reused", None),
        *(choice for row in _causes(joined) for choice in _of_cause(joined, row)),
        *_slowest(joined),
    ]
    first = {choice.key: choice for choice in reversed(found)}
    return [choice for choice in found if first[choice.key] is choice]


def _causes(joined: Joined) -> list[Row]:
    return joined.rows(
        """SELECT outcome, cause, count(*) AS count FROM cases JOIN attributed USING (instance, id)
            GROUP BY outcome, cause ORDER BY outcome = 'failed' DESC, count DESC, cause LIMIT $most""",
        most=_CAUSES_MAX,
    )


def _of_cause(joined: Joined, row: Row) -> list[Choice]:
    kind: Kind = "failed" if row["outcome"] == "failed" else "slow"
    return _typical(joined, kind, "outcome = $outcome AND cause = $cause", row["cause"], outcome=row["outcome"])


def _typical(joined: Joined, kind: Kind, condition: str, cause: str | None, **parameters: str) -> list[Choice]:
    """The one that took as long as half of them did; of those whose packets are known, if there are such."""
    if cause is not None:
        parameters["cause"] = cause
    rows = joined.rows(
        f"""WITH alike AS (
                SELECT instance, id, total_us, flow_id IS NOT NULL AS known,
                       max(flow_id IS NOT NULL) OVER () AS any_known, count(*) OVER () AS count
                  FROM cases LEFT JOIN attributed USING (instance, id) WHERE {condition})
            SELECT instance, id, count FROM alike WHERE known OR NOT any_known
             ORDER BY total_us, instance, id
             LIMIT 1 OFFSET (SELECT (count(*) - 1) // 2 FROM alike WHERE known OR NOT any_known)""",  # noqa: S608  conditions of our own
        **parameters,
    )
    return [Choice(kind, (row["instance"], row["id"]), cause, row["count"]) for row in rows]


def _slowest(joined: Joined) -> list[Choice]:
    rows = joined.rows(
        """SELECT instance, id, cause FROM cases LEFT JOIN attributed USING (instance, id)
            WHERE outcome <> 'failed' ORDER BY total_us DESC, instance, id LIMIT 1"""
    )
    return [Choice("slowest", (row["instance"], row["id"]), row["cause"], 1) for row in rows]
