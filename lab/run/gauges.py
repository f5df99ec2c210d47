"""The live figures of a run: what its clients and its kernels say at this moment, and said in the last seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.evidence.rawfiles import Places
from lab.run.history import History
from lab.run.tail import Tail


@dataclass
class ClientGauge:
    """All clients together; counts since the start of the load.

    Attributes:
        is_known: whether any client has counted something yet; until then its zeros say that its figures are late.
        asking: requests that ended in each second.
        failing: those of them that failed.
    """

    is_known: bool = False
    users: int = 0
    requests: int = 0
    failed: int = 0
    dropped: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    asking: History = field(default_factory=lambda: History(grows=True))
    failing: History = field(default_factory=lambda: History(grows=True))


@dataclass
class ServerGauge:
    """One instance's kernel.

    Attributes:
        depth: connections in the traffic port's accept queue.
        limit: of that queue, which holds one more; None until the server listens. With nginx's `reuseport` each worker
            has a queue of its own, and this, like the depth, is of all together.
        queues: how many they are.
        is_full: whether one of them takes no other connection.
        overflows: ListenOverflows since the namespace began.
        filling: the queue's greatest depth in each second.
        overflowing: how many overflows came in each second.
        waiting: sockets in TIME_WAIT in each second.
    """

    depth: int = 0
    limit: int | None = None
    queues: int = 1
    is_full: bool = False
    time_wait: int = 0
    overflows: int = 0
    filling: History = field(default_factory=History)
    overflowing: History = field(default_factory=lambda: History(grows=True))
    waiting: History = field(default_factory=History)


class Gauges:
    """Reads what has come since the last look."""

    def __init__(self, clients: Iterable[str], ports: Mapping[str, int], places: Places) -> None:
        """Begin with nothing read.

        Args:
            clients: the instances that make the load.
            ports: of every instance, the port on which it takes the traffic.
            places: where each of them writes.
        """
        self._live = {one: Tail(places.role(one, "live.jsonl")) for one in clients}
        self._samples = {one: Tail(places.collector(one, "samples.jsonl")) for one in ports}
        self._last: dict[str, dict[str, Any]] = {}
        self.client = ClientGauge()
        self.kernels = {one: ServerGauge() for one in ports}
        self._ports = ports

    def refresh(self) -> None:
        """Bring the gauges up to date."""
        for instance, tail in self._live.items():
            for line in tail.objects():
                self._grow(self._last.get(instance, {}), line)
                self._last[instance] = line
        self._sum()
        for instance, tail in self._samples.items():
            for line in tail.objects():
                if line.get("kind") == "tick":
                    _take(self.kernels[instance], line, self._ports[instance])

    def _grow(self, before: dict[str, Any], line: dict[str, Any]) -> None:
        for key, history in (("requests", self.client.asking), ("failed", self.client.failing)):
            history.add(line.get("time_us", 0), line.get(key, 0) - before.get(key, 0))

    def _sum(self) -> None:
        lines, client = list(self._last.values()), self.client
        client.is_known |= any(line.get(count) for line in lines for count in ("vus", "requests", "dropped_iterations"))
        client.users = sum(line.get("vus", 0) for line in lines)
        client.requests = sum(line.get("requests", 0) for line in lines)
        client.failed = sum(line.get("failed", 0) for line in lines)
        client.dropped = sum(line.get("dropped_iterations", 0) for line in lines)
        client.errors = Counter()
        for line in lines:
            client.errors.update(line.get("errors", {}))


def _take(gauge: ServerGauge, tick: dict[str, Any], port: int) -> None:
    counters, time_us = tick.get("counters", {}), tick.get("time_us", 0)
    gauge.time_wait = counters.get("sockstat.TCP.tw", gauge.time_wait)
    gauge.waiting.add(time_us, gauge.time_wait)
    overflows = counters.get("TcpExt.ListenOverflows", gauge.overflows)
    gauge.overflowing.add(time_us, overflows - gauge.overflows)
    gauge.overflows = overflows
    traffic = [one for one in tick.get("listen", []) if one.get("port") == port]
    if traffic:
        gauge.depth = sum(one["depth"] for one in traffic)
        gauge.limit = sum(one["limit"] for one in traffic)
        gauge.queues = len(traffic)
        gauge.is_full = any(one["depth"] > one["limit"] for one in traffic)
        gauge.filling.add(time_us, gauge.depth)
