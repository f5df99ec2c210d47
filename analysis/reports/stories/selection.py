"""Which requests to tell of: one that a user names, the worst, or those that are typical; and their causes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from analysis.database import over_files, sql
from analysis.diagnosis import attribution
from analysis.evidence.rawfiles import descriptor_path
from analysis.formatting import excerpt
from analysis.reports.stories.timeline import AttributedCause
from formats.safe_open import open_within
from formats.sanitize import visible

if TYPE_CHECKING:
    from analysis.diagnosis.joins import Joined
    from analysis.reports.stories.ladders_file import Kind

CAUSES_FILE = Path("derived") / "requests.parquet"
Key = tuple[str, int]


class UnknownRequest(ValueError):
    """There is no such request; the text says which there are."""


def find_request(joined: Joined, text: str) -> Key:
    """Return the request that a user names: `k6-1/17`, or `17` where there is one instance.

    Raises:
        UnknownRequest: there is none of that name.
    """
    match = re.fullmatch(r"(?:([a-z0-9-]+)/)?([0-9]{1,18})", text)
    if not match:
        raise UnknownRequest(f"'{excerpt(text)}' names no request: write k6-1/17, or 17 where there is one k6 instance")
    number = int(match[2])
    ids = {row["instance"]: row for row in joined.rows(sql(__name__, "ids"), number=number)}
    if not ids:
        raise UnknownRequest("the run has no record of any request")
    instance = match[1] or (next(iter(ids)) if len(ids) == 1 else None)
    if instance is None:
        raise UnknownRequest(f"request {text} may be of {' or '.join(ids)}: write {next(iter(ids))}/{text}")
    if instance not in ids:
        raise UnknownRequest(f"no requests of '{instance}' are recorded; there are those of {' and '.join(ids)}")
    of_instance = ids[instance]
    if of_instance["nearest"] != number:
        raise UnknownRequest(
            f"there is no request {instance}/{number}; its ids go from {of_instance['low']} to {of_instance['high']},"
            f" the nearest is {instance}/{of_instance['nearest']}"
        )
    return instance, number


def find_worst(joined: Joined, number: int) -> list[Key]:
    """Return the worst requests: those that failed first, then the slowest.

    Raises:
        UnknownRequest: there is no request at all.
    """
    found = joined.rows(sql(__name__, "worst"), number=number)
    if not found:
        raise UnknownRequest("the run has no record of any request")
    return [(row["instance"], row["id"]) for row in found]


def load_causes(folder: Path) -> dict[Key, AttributedCause] | None:
    """Return the cause of each request that has one; None if a run was not analysed, or its file cannot be read."""
    try:
        with open_within(folder, CAUSES_FILE) as file, over_files() as database:
            found = database.execute(sql(__name__, "derived_causes"), {"path": descriptor_path(file)}).fetchall()
    except (OSError, duckdb.Error):
        return None
    return {
        (instance, id_): AttributedCause(cause, visible(evidence or "")) for instance, id_, cause, evidence in found
    }


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
    """Return the requests that tell the story of a run, in the order in which they are shown."""
    found = [
        *_typical(joined, "ok", None),
        *(choice for outcome, cause in _causes(joined) for choice in _typical(joined, outcome, cause)),
        *_slowest(joined),
    ]
    first = {choice.key: choice for choice in reversed(found)}
    return [choice for choice in found if first[choice.key] is choice]


def _causes(joined: Joined) -> list[tuple[str, str]]:
    """Return the outcome and the cause of most requests: of those that failed, then of the slow ones."""
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
