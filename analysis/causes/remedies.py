"""Remedies: the knob that helps against a cause, and its value, computed from what a run had set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_MARGIN_MS = 1000
NO_KNOB = "no one knob heals it; 'connlab explain' (make explain) tells the story of a request"


@dataclass(frozen=True)
class Remedy:
    """A knob, its value and how that was computed; `besides`: what has to go with it, as knobs and values."""

    knob: str
    value: str
    why: str
    besides: Mapping[str, str] = field(default_factory=dict)


class Recorded:
    """What of a run's record the remedies read: the contents of manifest.json and derived/ledger.json."""

    def __init__(self, manifest: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.ledger = ledger

    def knob(self, name: str) -> Any:  # noqa: ANN401  whatever a knob may be
        """A knob's value; durations in ms."""
        return self.manifest["knobs"][name]["value"]

    def integer(self, name: str) -> int:
        """The value of a knob that is a number; durations in ms."""
        return int(self.knob(name))

    def has(self, knob: str) -> bool:
        """Whether the path has the role that a knob is of."""
        first, second = knob.split(".")[:2]
        return (second if first == "kernel" else first) in self.manifest["path"]

    @property
    def server(self) -> str:
        """The last server of the path; the backend where there is none, or nothing is declared."""
        roles = self.manifest.get("roles") or {}
        servers = [name for name in self.manifest["path"] if roles.get(name, {}).get("kind") == "server"]
        return servers[-1] if servers else "backend"

    @property
    def backends(self) -> int:
        """How many instances the last server has."""
        return len(self.manifest["instances"].get(self.server, [])) or 1

    def limits(self, role: str) -> dict[str, str]:
        """Give the knobs that bound a role by what they bound, without those that its program has fixed."""
        declared = self.manifest["roles"][role]
        return {
            what: f"{declared['group']}.{knob}"
            for what, knob in declared.get("limits", {}).items()
            if not declared["knobs"][knob].get("fixed")
        }

    @property
    def at_once(self) -> int:
        """Requests, or connections, that the load has under way at the same time at most."""
        workload = self.knob("load.workload")
        if workload == "sequential":
            return 1
        if workload == "spike":
            arriving = self.integer("load.rate_per_second") * (self.integer("load.duration") / 1000)
            # Without a delay of the handler's nothing says how long a request lasts.
            lasting = self.integer("load.rate_per_second") * self.integer("load.handler_delay") / 1000 or arriving
            return math.ceil(min(arriving, lasting, self.integer("load.max_users")))
        beside = {"slow_clients": "load.slow_users", "half_open": "load.half_open"}.get(str(workload))
        return self.integer("load.users") + (self.integer(beside) if beside else 0)

    @property
    def keeps_connections(self) -> bool:
        """Whether the clients keep their connections for further requests."""
        return self.knob("load.workload") != "tcp" and self.knob("load.keep_alive") is True

    @property
    def backlog(self) -> int:
        """The accept queue's limit, as the kernel has it."""
        somaxconn = self.manifest.get("sysctls", {}).get("backend-1", {}).get("net.core.somaxconn")
        asked = self.integer("backend.accept_count")
        return min(asked, int(somaxconn)) if somaxconn else asked

    @property
    def drops_at_nginx(self) -> bool:
        """Whether SYNs were dropped before nginx, and not before the server."""
        dropped: dict[str, int] = {
            hop["to"]: sum(filter(None, hop["dropped_syns"].values())) for hop in self.ledger["hops"]
        }
        return dropped.get("nginx", 0) > dropped.get(self.server, 0)


def more(run: Recorded, knob: str, value: int, why: str, shown: Callable[[int], str] = str) -> Remedy | None:
    """A greater value; None where the path has no such knob, or the value is no greater."""
    return Remedy(knob, shown(value), why) if run.has(knob) and run.integer(knob) < value else None


def other(run: Recorded, knob: str, value: str, why: str) -> Remedy | None:
    """A value of a sysctl; None where the path has nobody to set it for, or has set it."""
    now = run.manifest["knobs"].get(knob, {}).get("value")
    return Remedy(knob, value, why) if run.has(knob) and now != value else None
