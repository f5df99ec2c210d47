"""Which requests to explain: a named one, or the worst."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.story.phrases import shown

if TYPE_CHECKING:
    from analysis.account.joins import Joined

Key = tuple[str, int]


class UnknownRequest(ValueError):
    """There is no such request; the text says which there are."""


def named(joined: Joined, text: str) -> list[Key]:
    """The request that a user names: `k6-1/17`, or `17` where there is one instance.

    Raises:
        UnknownRequest: there is none of that name.
    """
    match = re.fullmatch(r"(?:([a-z0-9-]+)/)?([0-9]{1,18})", text)
    if not match:
        raise UnknownRequest(f"'{shown(text)}' names no request: write k6-1/17, or 17 where there is one k6 instance")
    ids = _ids(joined)
    if not ids:
        raise UnknownRequest("the run has no record of any request")
    instance = match[1] or (next(iter(ids)) if len(ids) == 1 else None)
    if instance is None:
        raise UnknownRequest(f"request {text} may be of {' or '.join(ids)}: write {next(iter(ids))}/{text}")
    if instance not in ids:
        raise UnknownRequest(f"no requests of '{instance}' are recorded; there are those of {' and '.join(ids)}")
    number = int(match[2])
    nearest = _nearest(joined, instance, number)
    if nearest != number:
        low, high = ids[instance]
        raise UnknownRequest(
            f"there is no request {instance}/{number}; its ids go from {low} to {high}, the nearest is"
            f" {instance}/{nearest}"
        )
    return [(instance, number)]


def _ids(joined: Joined) -> dict[str, tuple[int, int]]:
    """The instances that recorded requests, and their lowest and highest ids."""
    found = joined.rows(
        "SELECT instance, min(id) AS low, max(id) AS high FROM requests GROUP BY instance ORDER BY instance"
    )
    return {row["instance"]: (row["low"], row["high"]) for row in found}


def _nearest(joined: Joined, instance: str, number: int) -> int:
    found = joined.rows(
        "SELECT id FROM requests WHERE instance = $instance ORDER BY abs(id - $number), id LIMIT 1",
        instance=instance,
        number=number,
    )
    return int(found[0]["id"])


def worst(joined: Joined, number: int) -> list[Key]:
    """The worst requests: those that failed first, then the slowest.

    Raises:
        UnknownRequest: there is no request at all.
    """
    found = joined.rows(
        """SELECT instance, id FROM cases
            ORDER BY outcome = 'failed' DESC, total_us DESC, instance, id LIMIT $number""",
        number=number,
    )
    if not found:
        raise UnknownRequest("the run has no record of any request")
    return [(row["instance"], row["id"]) for row in found]
