"""The live figures of a run: what its clients and kernels say now, and said in the last seconds."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.evidence import jsonl
from analysis.evidence.rawfiles import Places
from formats.safe_files import open_regular

SECONDS_KEPT = 60
_US_PER_S = 1_000_000
_BARS = "▁▂▃▄▅▆▇█"
_READ_MAX_BYTES = 4 << 20
# Holds the last lines of samples.jsonl; a tick with all counters has about 10 KB.
_END_BYTES = 256 << 10


class History:
    """One value for each second, by the writer's clock; a second in which nothing was written has none.

    Levels keep their greatest value in a second, what grows is summed up in it.
    """

    def __init__(self, *, grows: bool = False) -> None:
        self._grows = grows
        self._seconds: dict[int, float] = {}

    def add(self, time_us: int, value: float) -> None:
        """Take in a level, or by how much something grew, and when that was read (Unix epoch)."""
        second = time_us // _US_PER_S
        before = self._seconds.get(second, 0)
        self._seconds[second] = before + value if self._grows else max(before, value)
        for old in [one for one in self._seconds if one <= second - SECONDS_KEPT]:
            del self._seconds[old]

    @property
    def newest(self) -> int:
        """Return the last second of which there is a reading, Unix epoch; 0 if there is none."""
        return max(self._seconds, default=0)

    def last(self, count: int, until: int) -> list[float | None]:
        """Return so many seconds, up to one of them; None where there was no reading."""
        return [self._seconds.get(second) for second in range(until - count + 1, until + 1)]

    @property
    def per_second(self) -> float:
        """Return what the last full second came to; the newest is still being written."""
        return self._seconds.get(self.newest - 1, 0)


def bars(values: Sequence[float | None], most: float) -> str:
    """Draw values as bars in a line, the highest for `most`; nothing for none, the lowest for 0 alone."""
    steps = len(_BARS) - 1
    return "".join(
        " " if value is None else _BARS[0 if value <= 0 else max(1, min(steps, round(steps * value / max(most, 1e-9))))]
        for value in values
    )


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
    """Reads what has come since the last look; `ports` has the port of each instance's traffic."""

    def __init__(self, clients: Iterable[str], ports: Mapping[str, int], places: Places) -> None:
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
                before, self._last[instance] = self._last.get(instance, {}), line
                for key, history in (("requests", self.client.asking), ("failed", self.client.failing)):
                    history.add(line.get("time_us", 0), line.get(key, 0) - before.get(key, 0))
        self._sum()
        for instance, tail in self._samples.items():
            for line in tail.objects():
                if line.get("kind") == "tick":
                    _take(self.kernels[instance], line, self._ports[instance])

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


class Tail:
    """The lines of a JSON Lines file since the last look; a file that is not there yet has none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def objects(self) -> list[dict[str, Any]]:
        """Return the whole new lines; what is not a JSON object is passed over, for a display must not stop a run."""
        try:
            with open_regular(self._file) as stream:
                stream.seek(self._offset)
                data = stream.read(_READ_MAX_BYTES)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [found for line in whole.splitlines() if (found := jsonl.parse(line)) is not None]


def last_tick_us(samples: Path) -> int:
    """Return the time of the last whole tick in a samples.jsonl, in microseconds since 1970; 0 where there is none."""
    try:
        with open_regular(samples) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END_BYTES))
            data = stream.read()
    except OSError:
        return 0
    for line in reversed(data[: data.rfind(b"\n") + 1].splitlines()):
        found = jsonl.parse(line)
        if found is not None and found.get("kind") == "tick":
            return int(found.get("time_us", 0))
    return 0
