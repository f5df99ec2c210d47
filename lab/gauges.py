"""The live figures of a run: what its clients and its kernels say at this moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.tail import Tail
from lab.topology import TRAFFIC_PORT, Topology


@dataclass
class ClientGauge:
    """All clients together; counts since the start of the load."""

    users: int = 0
    requests: int = 0
    failed: int = 0
    dropped: int = 0
    errors: Counter[str] = field(default_factory=Counter)


@dataclass
class ServerGauge:
    """One server's kernel.

    Attributes:
        depth: connections in the traffic port's accept queue.
        limit: of that queue; None until the server listens.
        overflows: ListenOverflows since the namespace began.
    """

    depth: int = 0
    limit: int | None = None
    time_wait: int = 0
    overflows: int = 0


class Gauges:
    """Reads what has come since the last look."""

    def __init__(self, topology: Topology, raw: Path) -> None:
        self._live = {one: Tail(raw / one / "live.jsonl") for one in topology.clients}
        self._samples = {one: Tail(raw / one / "samples.jsonl") for one in topology.all}
        self._last: dict[str, dict[str, Any]] = {}
        self.client = ClientGauge()
        self.kernels = {one: ServerGauge() for one in topology.all}

    def refresh(self) -> None:
        """Bring the gauges up to date."""
        for instance, tail in self._live.items():
            for line in tail.objects():
                self._last[instance] = line
        self.client = _sum(list(self._last.values()))
        for instance, tail in self._samples.items():
            for line in tail.objects():
                if line.get("kind") == "tick":
                    _take(self.kernels[instance], line)


def _sum(lines: list[dict[str, Any]]) -> ClientGauge:
    total = ClientGauge()
    for line in lines:
        total.users += line.get("vus", 0)
        total.requests += line.get("requests", 0)
        total.failed += line.get("failed", 0)
        total.dropped += line.get("dropped_iterations", 0)
        total.errors.update(line.get("errors", {}))
    return total


def _take(gauge: ServerGauge, tick: dict[str, Any]) -> None:
    counters = tick.get("counters", {})
    gauge.time_wait = counters.get("sockstat.TCP.tw", gauge.time_wait)
    gauge.overflows = counters.get("TcpExt.ListenOverflows", gauge.overflows)
    traffic = [one for one in tick.get("listen", []) if one.get("port") == TRAFFIC_PORT]
    if traffic:
        gauge.depth = sum(one["depth"] for one in traffic)
        gauge.limit = sum(one["limit"] for one in traffic)
