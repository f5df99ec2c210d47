"""The hops of a run's path, and whose capture counts the connections of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.diagnosis.health import Evidence

if TYPE_CHECKING:
    from analysis.diagnosis.health import Health
    from analysis.evidence.rawrun import RawRun


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop.

    Attributes:
        number: its place on the path, from 1.
        client: the role that connects.
        server: the role that it connects to.
        observers: the instances whose captures count its connections, all of one end; none if nothing captured it.
    """

    number: int
    client: str
    server: str
    observers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client} → {self.server}"


def of_run(raw: RawRun, health: Health) -> tuple[Hop, ...]:
    """The hops of a run, from the client to the backend."""
    pairs = pairwise(raw.manifest.path)
    return tuple(
        Hop(number, client, server, _observers(raw, health, client, server))
        for number, (client, server) in enumerate(pairs, start=1)
    )


def _observers(raw: RawRun, health: Health, client: str, server: str) -> tuple[str, ...]:
    """The server's end, where dropped SYNs arrive, if its captures are as good as those of the client's end."""
    ends = [tuple(raw.manifest.of_role(role)) for role in (server, client)]
    captured = [end for end in ends if end and all(instance in raw.captures for instance in end)]
    sound = [
        end for end in captured if not any(health.spoilt(Evidence.PACKETS, f"capture/{instance}") for instance in end)
    ]
    return next(iter([*sound, *captured]), ())
