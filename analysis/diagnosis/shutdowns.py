"""What became of the requests at a server that the lab ended in order, or reloaded: a promise of no loss, measured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from analysis.diagnosis.joins import Joined
from analysis.output import Written
from formats.manifest import Manifest


class Ending(Written):
    """One drain, stop, restart or reload, and the requests at its server."""

    instance: str
    do: str
    start_us: Annotated[int, Field(description="When the lab asked for it")]
    lasted_us: Annotated[int | None, Field(description="Until it was done; null where it was not")]
    under_way: Annotated[int, Field(description="Requests that had been sent by then and had no whole answer")]
    under_way_lost: Annotated[int, Field(description="Those of them that failed")]
    came: Annotated[
        int, Field(description="Requests that came to the server from then on, until it served again or had reloaded")
    ]
    came_lost: Annotated[int, Field(description="Those of them that failed")]
    elsewhere: Annotated[int, Field(description="Of both: those that another server answered")]
    causes: Annotated[dict[str, int], Field(description="Cause → lost requests")]

    @property
    def lost(self) -> int:
        """Return how many requests failed."""
        return self.under_way_lost + self.came_lost


def find_endings(joined: Joined, manifest: Manifest) -> list[Ending]:
    """Return each end and reload that was begun, in the order of their beginnings."""
    joined.need("endings")
    rows = joined.execute("SELECT number, came, lost, elsewhere, cause, requests FROM endings").fetchall()
    found = []
    for number, action in enumerate(manifest.actions):
        if not action.is_ending or action.start_us is None:
            continue
        own = [row[1:] for row in rows if row[0] == number]
        causes: dict[str, int] = {}
        for _, lost, _, cause, requests in own:
            if lost:
                causes[cause] = causes.get(cause, 0) + requests
        found.append(
            Ending(
                instance=action.instance,
                do=action.do,
                start_us=action.start_us,
                lasted_us=None if action.end_us is None else action.end_us - action.start_us,
                under_way=sum(requests for came, *_, requests in own if not came),
                under_way_lost=sum(requests for came, lost, *_, requests in own if lost and not came),
                came=sum(requests for came, *_, requests in own if came),
                came_lost=sum(requests for came, lost, *_, requests in own if lost and came),
                elsewhere=sum(requests for _, _, elsewhere, _, requests in own if elsewhere),
                causes=dict(sorted(causes.items(), key=lambda one: (-one[1], one[0]))),
            )
        )
    return sorted(found, key=lambda one: one.start_us)
