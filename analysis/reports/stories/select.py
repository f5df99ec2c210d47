"""Which requests to explain: a named one, or the worst."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.database import sql
from analysis.formatting import excerpt

if TYPE_CHECKING:
    from analysis.diagnosis.joins import Joined

Key = tuple[str, int]


class UnknownRequest(ValueError):
    """There is no such request; the text says which there are."""


def find_request(joined: Joined, text: str) -> list[Key]:
    """The request that a user names: `k6-1/17`, or `17` where there is one instance.

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
    return [(instance, number)]


def find_worst(joined: Joined, number: int) -> list[Key]:
    """The worst requests: those that failed first, then the slowest.

    Raises:
        UnknownRequest: there is no request at all.
    """
    found = joined.rows(sql(__name__, "worst"), number=number)
    if not found:
        raise UnknownRequest("the run has no record of any request")
    return [(row["instance"], row["id"]) for row in found]
