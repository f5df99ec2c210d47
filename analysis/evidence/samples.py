"""Reads samples.jsonl, what a collector saw of one network namespace, and puts its delta-encoded counters together."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.database import Integers
from analysis.evidence.jsonl import JsonLines, Record, integer, kind_of, moment, records
from formats.manifest import listeners_of_traffic
from formats.role import TRAFFIC_PORT

SCHEMA = "connlab.samples/1"

# A sampler reads the clock, and may have to wait for a processor before it reads the counters: what happened shortly
# before or after a tick may be on either side of it. Ticks are 100 ms apart by default.
TICK_SLACK_US = 50_000

OVERFLOWS = "TcpExt.ListenOverflows"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket at one tick: connections waiting, the most that may, and SYNs it has dropped so far.

    A dump that somebody made with `ss` alone does not say what a socket has dropped: None. Of several sockets at one
    address and port, the one that was made later has the greater inode.
    """

    port: int
    depth: int
    limit: int
    drops: int | None
    address: str = ""
    inode: int | None = None


@dataclass(frozen=True, slots=True)
class UnixListener:
    """A listening unix socket at one tick: its path, connections waiting, and its limit."""

    path: str
    depth: int
    limit: int


@dataclass(frozen=True, slots=True)
class InnerQueue:
    """A queue at one tick besides that of the traffic: how a person names it, how many wait there, and its limit."""

    name: str
    depth: int
    limit: int

    @property
    def is_full(self) -> bool:
        """Whether it takes nobody more: it holds one more than its limit."""
        return self.depth > self.limit


@dataclass(slots=True)
class Counter:
    """The values of one counter, where it changed: tick numbers, ascending, and the values from there on."""

    ticks: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def set(self, tick: int, value: int) -> None:
        """Note the value at a tick, which is later than all before."""
        if not self.values or self.values[-1] != value:
            self.ticks.append(tick)
            self.values.append(value)

    def at(self, tick: int) -> int | None:
        """Return the value at a tick, None before the first."""
        position = bisect_right(self.ticks, tick)
        return self.values[position - 1] if position else None

    def maximum(self, first: int, last: int) -> int | None:
        """Return the greatest value from one tick to another, both included; None if it begins later."""
        start = max(bisect_right(self.ticks, first) - 1, 0)
        values = self.values[start : bisect_right(self.ticks, last)]
        return max(values, default=None)


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick: when by both clocks, how long after it was due, and the listening sockets.

    `counted`: whether the kernel's overflows are known then; the dump of `ss` alone says nothing of them. `unix`: the
    unix sockets on which somebody waits, and with a full tick the others, too. `machine_ms`: what `read_machine_ms`
    returns; None in earlier runs.
    """

    time_us: int
    mono_us: int
    late_us: int
    listeners: tuple[Listener, ...]
    counted: bool = True
    unix: tuple[UnixListener, ...] = ()
    machine_ms: tuple[int, int] | None = None


@dataclass(slots=True)
class Samples:
    """All of one samples.jsonl.

    Attributes:
        port: where the role takes its traffic.
        ipv6: whether clients come over IPv6.
        header: its first record, None if there is none of this version.
        ticks: in the order of the file, which is that of the monotonic clock.
        sockets, time_waits, processes, selves: the records of those kinds, each with its `time_us`, and the `mono_us`
            of the last tick before it.
        scrapes: how many connections the collector's metrics port had taken from outside; empty if it has none.
        end: the last record, None if the sampler did not end cleanly.
        left_out: the ticks after a corrupt line that are not among `ticks`.
    """

    lines: JsonLines
    port: int = TRAFFIC_PORT
    header: Record | None = None
    ipv6: bool = False
    ticks: list[Tick] = field(default_factory=list)
    counters: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    sockets: list[Record] = field(default_factory=list)
    time_waits: list[Record] = field(default_factory=list)
    processes: list[Record] = field(default_factory=list)
    selves: list[Record] = field(default_factory=list)
    scrapes: Counter = field(default_factory=Counter)
    end: Record | None = None
    left_out: int = 0

    @property
    def lost_ticks(self) -> int | None:
        """How many ticks the last record counts that no tick and no corrupt line can be; None if there is none."""
        written = integer(self.end, "ticks") if self.end else None
        return None if written is None else written - len(self.ticks) - self.left_out - self.lines.damage.bad_lines

    @property
    def rate_hz(self) -> int:
        """Ticks in a second, as the header says; 10, the lab's default, without a usable header."""
        return (integer(self.header, "rate_hz") or 10) if self.header else 10

    def traffic(self, tick: int) -> list[Listener]:
        """Return the listening sockets of the traffic port at a tick."""
        return listeners_of_traffic(self.ticks[tick].listeners, self.port, ipv6=self.ipv6)

    def inner_queues(self, tick: int) -> Iterator[InnerQueue]:
        """Yield each queue besides that of the traffic; of unix sockets those alone that the tick tells of."""
        for socket in self.ticks[tick].unix:
            yield InnerQueue(f"unix:{socket.path}", socket.depth, socket.limit)
        for listener in self.ticks[tick].listeners:
            if listener.port != self.port:
                yield InnerQueue(f"port {listener.port}", listener.depth, listener.limit)

    def series(self, name: str) -> Integers:
        """Return a counter's value at each tick; 0 before its first, and for one that there is not."""
        counter = self.counters.get(name)
        if counter is None:
            return np.zeros(len(self.ticks), dtype=np.int64)
        positions = np.searchsorted(counter.ticks, np.arange(len(self.ticks)), side="right")
        return np.array([0, *counter.values], dtype=np.int64)[positions]


def read(path: Path, port: int = TRAFFIC_PORT, instance: str | None = None, *, ipv6: bool = False) -> Samples:
    """Return what the samples.jsonl of a role with this traffic port holds; damage stands in `lines.damage`.

    With an instance's name, the header of another instance's file is none.

    It never raises. A corrupt line may have held changes of counters, and a tick with one bad value is a corrupt line:
    the value before it would pass for its own. From there on the ticks are left out, until one gives all values again:
    the damage then shows as what it is, a hole in the samples.
    """
    samples = Samples(JsonLines(path), port, ipv6=ipv6)
    whole, mono_us = True, 0
    for number, record in samples.lines:
        kind = None if record is None or moment(record, "time_us") is None else kind_of(record)
        if record is None or kind is None or (kind in _WHOLE and not _WHOLE[kind](record)):
            whole = False
            if record is not None:
                samples.lines.damage.add_bad_line(number)
        elif kind == "tick":
            mono_us = record["mono_us"]
            whole = whole or record.get("full") is True
            if whole:
                _add_tick(samples, record)
            else:
                samples.left_out += 1
        elif kind == "header":
            _add_header(samples, record, instance)
        elif kind == "end":
            samples.end = record
        elif kind in _LISTS:
            getattr(samples, _LISTS[kind]).append(record | {"mono_us": mono_us})
    samples.counters = dict(samples.counters)
    return samples


def read_machine_ms(record: Record) -> tuple[int, int] | None:
    """Return the time that all processors had so far, and their idle time; None where a record lacks one."""
    host = record.get("host")
    if not isinstance(host, dict):
        return None
    total_ms, idle_ms = integer(host, "cpu_total_ms"), integer(host, "cpu_idle_ms")
    return None if total_ms is None or idle_ms is None else (total_ms, idle_ms)


_LISTS = {"sockets": "sockets", "time_wait": "time_waits", "processes": "processes", "self": "selves"}


def _add_header(samples: Samples, record: Record, instance: str | None) -> None:
    if record.get("schema") == SCHEMA and instance in (None, record.get("role")):
        samples.header = record


def _is_tick(record: Record) -> bool:
    counters, listeners = record.get("counters"), record.get("listen")
    return (
        moment(record, "mono_us") is not None
        and isinstance(counters, dict)
        and all(map(_is_value, counters.values()))
        and isinstance(listeners, list)
        and all(isinstance(each, dict) and _listener(each) is not None for each in listeners)
    )


def _is_value(value: object) -> bool:
    """Return whether a counter can have it; Tcp.MaxConn is -1 for no bound."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _has_groups(record: Record) -> bool:
    groups = record.get("groups")
    return isinstance(groups, list) and all(
        isinstance(group, dict) and integer(group, "count") is not None for group in groups
    )


# What a record of a kind must be to be one.
_WHOLE = {"tick": _is_tick, "sockets": _has_groups, "time_wait": _has_groups}


def _add_tick(samples: Samples, record: Record) -> None:
    tick = len(samples.ticks)
    counters = record["counters"]
    for name, value in counters.items():
        samples.counters[name].set(tick, value)
    if (scrapes := integer(record, "metrics_connections")) is not None:
        samples.scrapes.set(tick, scrapes)
    listeners = tuple(filter(None, map(_listener, records(record, "listen"))))
    counted = record.get("full") is not True or OVERFLOWS in counters
    late_us = integer(record, "late_us") or 0
    unix = tuple(filter(None, map(_unix_listener, records(record, "unix"))))
    samples.ticks.append(
        Tick(record["time_us"], record["mono_us"], late_us, listeners, counted, unix, read_machine_ms(record))
    )


def _unix_listener(record: Record) -> UnixListener | None:
    path, depth, limit = record.get("path"), integer(record, "depth"), integer(record, "limit")
    return (
        UnixListener(path, depth, limit) if isinstance(path, str) and depth is not None and limit is not None else None
    )


def _listener(record: Record) -> Listener | None:
    port, depth = integer(record, "port"), integer(record, "depth")
    limit, drops = integer(record, "limit"), integer(record, "drops")
    if port is None or depth is None or limit is None or (drops is None and record.get("drops") is not None):
        return None
    address = record.get("address")
    inode = integer(record, "inode")
    return Listener(port, depth, limit, drops, address if isinstance(address, str) else "", inode)
