"""What the kernel counted in a role's network namespace: counters, listen queues, sockets. And the settings it has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise

from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins.load_tables import count_drops
from analysis.evidence import window_readings
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.samples import Counter, InnerQueue, Listener, Samples
from analysis.evidence.window import Window
from analysis.evidence.window_readings import Span
from analysis.expressions.values import Unknown, Value, unknown
from analysis.figures.declaration import Compute, Figure, over_instances
from analysis.figures.run import Run, greatest, total

_figure = partial(Figure, source="collector: samples.jsonl")
_AT_EDGES = {Evidence.COUNTERS: "sampler", Evidence.CLOCK: ""}
_ALL_TICKS = {Evidence.COUNTERS: "sampler", Evidence.TICKS: "sampler", Evidence.CLOCK: ""}
_ALL_SOCKETS = {Evidence.SOCKETS: "sampler", Evidence.CLOCK: ""}

# The total of TIME_WAIT sockets is read with each tick, at no cost.
_TIME_WAIT = "sockstat.TCP.tw"

# Figure name of a state → the kernel's, for all that are counted by state.
STATES = {
    "established": "ESTABLISHED",
    "syn_sent": "SYN_SENT",
    "syn_recv": "SYN_RECV",
    "fin_wait1": "FIN_WAIT1",
    "fin_wait2": "FIN_WAIT2",
    "close": "CLOSE",
    "close_wait": "CLOSE_WAIT",
    "last_ack": "LAST_ACK",
    "closing": "CLOSING",
}


def _over_ticks(
    evidence: dict[Evidence, str],
    combine: Callable[[Iterable[Value]], Value],
    value: Callable[[Samples, Span, Mapping[str, str]], Value],
) -> Compute:
    """Return a value from the ticks that enclose the window, combined over the instances of a role."""

    def of_instance(run: Run, instance: str, _window: Window, found: Mapping[str, str]) -> Value:
        span = run.spans[instance]
        return span if isinstance(span, Unknown) else value(run.raw.samples[instance], span, found)

    return over_instances(evidence, combine, of_instance)


def _over_readings(value: Callable[[Samples, Window, Mapping[str, str]], Value]) -> Compute:
    """Return the greatest over the instances of a role of a value from the sockets read now and then."""
    return over_instances(
        _ALL_SOCKETS, greatest, lambda run, each, window, found: value(run.raw.samples[each], window, found)
    )


def _difference(samples: Samples, span: Span, found: Mapping[str, str]) -> Value:
    name = found["Counter"]
    counter = samples.counters.get(name)
    after = counter.at(span.last) if counter else None
    if counter is None or after is None:
        return unknown(f"this kernel has no counter {name}")
    # The kernel begins to show some counters, as those of ICMP by type, only when they are no longer zero.
    before = counter.at(span.first) or 0
    return after - before if after >= before else unknown(f"the counter {name} went back from {before} to {after}")


def _scrapes(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
    after = samples.scrapes.at(span.last)
    # Without a metrics port there is none to connect to.
    return 0 if after is None else after - (samples.scrapes.at(span.first) or 0)


def _greatest_of_listeners(key: Callable[[Listener], int]) -> Callable[[Samples, Span, Mapping[str, str]], Value]:
    def value(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
        ticks = range(span.first, span.last + 1)
        values = [key(listener) for tick in ticks for listener in samples.traffic(tick)]
        return max(values) if values else unknown(f"nothing listened on port {samples.port}")

    return value


def _listener_drops(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
    ticks = [samples.traffic(tick) for tick in range(span.first, span.last + 1)]
    if not ticks[0] or any(len(each) != len(ticks[0]) for each in ticks):
        return unknown(f"the listeners on port {samples.port} changed in the window")
    drops = [sum(listener.drops or 0 for listener in each) for each in ticks]
    if any(after < before for before, after in pairwise(drops)):
        return unknown(f"the listener on port {samples.port} was opened again")
    return drops[-1] - drops[0]


def count_queues(samples: Samples) -> int:
    """Return how many accept queues the traffic port has that the samples tell apart; 0 where it has one."""
    ticks = range(len(samples.ticks))
    return max((sum(each.inode is not None for each in samples.traffic(tick)) for tick in ticks), default=0)


def _full_beside_empty(samples: Samples, span: Span, found: Mapping[str, str]) -> Value:
    """Return at how many ticks a queue was full while another was empty: any, or the one of this place, from 1 on."""
    place = int(found["queue"]) - 1 if "queue" in found else None
    count = 0
    for tick in range(span.first, span.last + 1):
        # A queue that was made later has the greater inode.
        queues = sorted(samples.traffic(tick), key=lambda each: each.inode or 0)
        if place is not None and len(queues) > 1 and any(each.inode is None for each in queues):
            return unknown("the samples do not tell the queues of a port apart")
        full = [each.depth > each.limit for each in (queues if place is None else queues[place : place + 1])]
        count += any(full) and any(each.depth == 0 for each in queues)
    return count


def _inner(of: Callable[[InnerQueue], int]) -> Callable[[Samples, Span, Mapping[str, str]], Value]:
    """Return a value of the queue inside that was the fullest at a tick."""

    def value(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
        queues = [queue for tick in range(span.first, span.last + 1) for queue in samples.inner_queues(tick)]
        fullest = max(queues, key=lambda each: (each.depth - each.limit, each.depth), default=None)
        return unknown("no other socket listened") if fullest is None else of(fullest)

    return value


def _inner_full(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
    return sum(any(queue.is_full for queue in samples.inner_queues(tick)) for tick in range(span.first, span.last + 1))


def _inner_drops(bound: Callable[[int], int]) -> Callable[[Samples, Span, Mapping[str, str]], Value]:
    def value(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
        counts = count_drops(samples, inner=True)
        return bound(int(counts[span.last] - counts[span.first]))

    return value


def _closed_ms(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
    ticks = range(span.first, span.last + 1)
    if not samples.traffic(span.first):
        return unknown(f"nothing listened on port {samples.port} at the beginning")
    closed = [
        window_readings.hole_between_ms(samples.ticks, at, at + 1) for at in ticks[:-1] if not samples.traffic(at)
    ]
    return round(sum(closed))


def _time_wait(read: Callable[[Counter, Span], int | None]) -> Callable[[Samples, Span, Mapping[str, str]], Value]:
    def value(samples: Samples, span: Span, _found: Mapping[str, str]) -> Value:
        counter = samples.counters.get(_TIME_WAIT)
        found = read(counter, span) if counter else None
        return unknown("the samples have no count of TIME_WAIT") if found is None else found

    return value


def _time_wait_loopback(samples: Samples, window: Window, _found: Mapping[str, str]) -> Value:
    readings = window_readings.readings_enclosing(samples.time_waits, window.end_us, window.end_us)
    counts = [_count_inside(reading) for reading in readings]
    if not counts:
        return unknown("there is no reading of the sockets in TIME_WAIT")
    more = _opened_between(samples, readings[0]["time_us"], window.end_us) if counts[0] else 0
    # The kernel counts one that waits for the other side's FIN, once no process holds it, as it counts TIME_WAIT.
    open_ = window_readings.readings_enclosing(samples.sockets, window.end_us, window.end_us)
    halves = [_count_inside(reading, STATES["fin_wait2"]) for reading in open_]
    return max(*counts, counts[0] + more) + max(halves, default=0)


def _count_inside(reading: Record, state: str | None = None) -> int:
    groups = [group for group in records(reading, "groups") if _is_inside(group) and group.get("state") == state]
    return sum(integer(group, "count") or 0 for group in groups)


def _opened_between(samples: Samples, start_us: int, end_us: int) -> int:
    """Return how many connections the namespace opened between two times, by the ticks around both."""
    times_us = [tick.time_us for tick in samples.ticks]
    first, last = max(bisect_right(times_us, start_us) - 1, 0), min(bisect_left(times_us, end_us), len(times_us) - 1)
    opened = samples.series("Tcp.ActiveOpens")
    return int(opened[last] - opened[first])


def _is_inside(group: Record) -> bool:
    """Return whether both ends of a connection are in one namespace: then it never left the loopback device."""
    local, peer = (str(group.get(end)) for end in ("local", "peer"))
    return local == peer or all(each.startswith("127.") or each == "::1" for each in (local, peer))


def _in_state(reading: Record, state: str) -> int:
    groups = [group for group in records(reading, "groups") if group.get("state") == STATES[state]]
    return sum(integer(group, "count") or 0 for group in groups)


def _of_state(choose: Callable[[list[int]], int]) -> Callable[[Samples, Window, Mapping[str, str]], Value]:
    def value(samples: Samples, window: Window, found: Mapping[str, str]) -> Value:
        readings = window_readings.readings_from_before_start(samples.sockets, window.start_us, window.end_us)
        counts = [_in_state(reading, found["state"]) for reading in readings]
        return choose(counts) if counts else unknown("there is no reading of the sockets")

    return value


def _exists(run: Run, found: Mapping[str, str]) -> Value:
    name, sysctls = found["sysctl"], run.raw.manifest.sysctls
    read = [sysctls.get(instance, {}) for instance in run.instances(found["role"])]
    if not read:
        return unknown("the manifest names no such instance")
    if not all(name in each for each in read):
        return unknown(f"{name} was not read back")
    return int(all(each[name] is not None for each in read))


FIGURES: tuple[Figure, ...] = (
    _figure(
        "kernel.<role>.<Counter>",
        "How much a counter of /proc/net/netstat or /proc/net/snmp grew over the window; the sum of the instances.",
        _over_ticks(_AT_EDGES, total, _difference),
    ),
    _figure(
        "metrics.<role>.connections",
        "Connections from outside that the metrics ports of the role's collectors took over the window."
        " Tcp.PassiveOpens counts them too. 0 without --metrics.",
        _over_ticks(_AT_EDGES, total, _scrapes),
        unit="connections",
    ),
    _figure(
        "listen.<role>.depth.max",
        "The most connections that waited at the traffic port to be accepted.",
        _over_ticks(_ALL_TICKS, greatest, _greatest_of_listeners(lambda each: each.depth)),
        unit="connections",
    ),
    _figure(
        "listen.<role>.limit",
        "The accept queue's limit in the kernel. It holds one connection more.",
        _over_ticks(_AT_EDGES, greatest, _greatest_of_listeners(lambda each: each.limit)),
        unit="connections",
    ),
    _figure(
        "listen.<role>.drops",
        "What the listening socket itself counted as dropped over the window; the sum of the instances.",
        _over_ticks(_ALL_TICKS, total, _listener_drops),
    ),
    _figure(
        "listen.<role>.full_beside_empty",
        "Ticks at which one accept queue of an instance was full and another of it empty; with one queue, 0."
        " Programs with SO_REUSEPORT, such as nginx with reuseport, have several.",
        _over_ticks(_ALL_TICKS, total, _full_beside_empty),
    ),
    _figure(
        "listen.<role>.queue.<queue>.full_beside_empty",
        "The same of one queue, from 1 on, in the order in which the program made them: nginx makes that of its first"
        " worker first. The sum of the instances.",
        _over_ticks(_ALL_TICKS, total, _full_beside_empty),
    ),
    _figure(
        "listen.<role>.closed_ms",
        "How long nothing listened on the traffic port, from the first tick without a listener to the next with one;"
        " the sum of the instances.",
        _over_ticks(_ALL_TICKS, total, _closed_ms),
        unit="ms",
    ),
    _figure(
        "inner.<role>.depth.max",
        "The most connections that waited at another listening socket than that of the traffic: a unix socket, or a"
        " port that a program behind the first one listens on. That of the fullest.",
        _over_ticks(_ALL_TICKS, greatest, _inner(lambda each: each.depth)),
        unit="connections",
    ),
    _figure(
        "inner.<role>.limit",
        "The limit of that socket's queue. It holds one connection more.",
        _over_ticks(_ALL_TICKS, greatest, _inner(lambda each: each.limit)),
        unit="connections",
    ),
    _figure(
        "inner.<role>.full_ticks",
        "Ticks at which the queue of such a socket was full; the sum of the instances.",
        _over_ticks(_ALL_TICKS, total, _inner_full),
    ),
    _figure(
        "inner.<role>.drops.min",
        "How much of TcpExt.ListenDrops over the window may be of TCP sockets that listen on other ports than the"
        " traffic's, by their own counters: the lower bound, because a socket counts a packet after the SYN twice. No"
        " capture of the traffic has these packets. The sum of the instances.",
        _over_ticks(_ALL_TICKS, total, _inner_drops(lambda count: (count + 1) // 2)),
    ),
    _figure(
        "inner.<role>.drops.max",
        "The same: the upper bound.",
        _over_ticks(_ALL_TICKS, total, _inner_drops(lambda count: count)),
    ),
    _figure(
        "sockets.<role>.time_wait.max",
        "The most sockets in TIME_WAIT at once.",
        _over_ticks(_ALL_TICKS, greatest, _time_wait(lambda count, span: count.maximum(span.first, span.last))),
        unit="sockets",
    ),
    _figure(
        "sockets.<role>.time_wait.end",
        "Sockets in TIME_WAIT at the window's end, at the instance with the most.",
        _over_ticks(_AT_EDGES, greatest, _time_wait(lambda count, span: count.at(span.last))),
        unit="sockets",
    ),
    _figure(
        "sockets.<role>.time_wait.loopback",
        "The most sockets in TIME_WAIT that there can be at the window's end whose connection never left the instance's"
        " namespace, at the instance with the most: the most in the two readings around it, one every five seconds;"
        " where the first has some, also as many more as the namespace opened connections since; and those in"
        " FIN_WAIT2, which the kernel counts with them.",
        _over_readings(_time_wait_loopback),
        unit="sockets",
    ),
    _figure(
        "sockets.<role>.<state>.max",
        "The most sockets in a state at once, in readings once a second.",
        _over_readings(_of_state(max)),
        unit="sockets",
    ),
    _figure(
        "sockets.<role>.<state>.end",
        "Sockets in a state in the last reading at or before the window's end, at the instance with the most.",
        _over_readings(_of_state(lambda counts: counts[-1])),
        unit="sockets",
    ),
    Figure(
        "sysctl.<role>.exists.<sysctl>",
        "1 if the kernel has this setting in the network namespace of each instance, else 0.",
        _exists,
        "manifest.json: sysctls",
    ),
)
