"""Which requests tell the story of a run: a good one, a typical one of each cause, and the slowest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analysis.database import sql
from analysis.diagnosis import attribution

if TYPE_CHECKING:
    from analysis.diagnosis.joins import Joined

Kind = Literal["good", "failed", "slow", "slowest"]

# More than these nobody reads; `connlab explain` tells of any other.
_CAUSES_MAX = 6


@dataclass(frozen=True, slots=True)
class ChosenRequest:
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


def choose_typical(joined: Joined) -> list[ChosenRequest]:
    """Choose, in the order in which they are shown."""
    found = [
        *_typical(joined, "ok", None),
        *(choice for outcome, cause in _causes(joined) for choice in _typical(joined, outcome, cause)),
        *_slowest(joined),
    ]
    first = {choice.key: choice for choice in reversed(found)}
    return [choice for choice in found if first[choice.key] is choice]


def _causes(joined: Joined) -> list[tuple[str, str]]:
    """The outcome and the cause of most requests: of those that failed, then of the slow ones."""
    counts = attribution.count_causes(joined)
    found = [
        (outcome, cause)
        for outcome in ("failed", "slow")
        for cause, _ in sorted(counts[outcome].items(), key=lambda each: (-each[1], each[0]))
    ]
    return found[:_CAUSES_MAX]


_KINDS: dict[str, Kind] = {"ok": "good", "failed": "failed", "slow": "slow"}


def _typical(joined: Joined, outcome: str, cause: str | None) -> list[ChosenRequest]:
    rows = joined.rows(sql(__name__, "typical"), outcome=outcome, cause=cause)
    return [ChosenRequest(_KINDS[outcome], (row["instance"], row["id"]), cause, row["count"]) for row in rows]


def _slowest(joined: Joined) -> list[ChosenRequest]:
    rows = joined.rows(sql(__name__, "slowest"))
    return [ChosenRequest("slowest", (row["instance"], row["id"]), row["cause"], 1) for row in rows]
