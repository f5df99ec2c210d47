"""What the kernel's counters and queues of one host prove by themselves, and what they leave open.

In: a host's samples, which may be a few dumps that somebody pasted. Out: findings, each with the counters behind it,
and the growth of counters over time, for derived/counters.parquet.
It must not know packets: what became of a connection they alone tell.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from analysis.evidence.samples import Samples
from analysis.evidence.window import Window
from analysis.formatting import format_count
from formats.manifest import PORT_RANGE, SOMAXCONN, port_count

# A backlog that several programs ask for by themselves; the dump may name none of them.
_DEFAULTS: Final = {
    511: "the default of nginx, Apache, Redis and Node.js",
    128: "an older kernel's net.core.somaxconn, and the default of many programs",
    100: "the default of Tomcat",
    50: "the default of Java's ServerSocket",
    5: "the default of Python's socketserver",
    2048: "the default of gunicorn and uvicorn",
}  # fmt: skip
# Below that, processors were not what clients waited for.
_IDLE_PERCENT: Final = 50
_LEVELS: Final = ("Tcp.CurrEstab", "sockstat.", "sockstat6.")
_BETWEEN: Final = "between the first dump and the last"
# How many servers are named that did not answer.
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the evidence proves.

    Attributes:
        name: of its kind.
        says: in words, with what it does not prove.
        counters: what it rests on.
    """

    name: str
    says: str
    counters: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """A host's counters: how much each grew, or all that was counted where there is one reading alone."""

    values: Mapping[str, int]
    since: str

    def __getitem__(self, name: str) -> int:
        return self.values.get(name, 0)

    def has(self, *names: str) -> bool:
        """Return whether all of them are known."""
        return all(name in self.values for name in names)

    def of(self, *names: str) -> dict[str, int | float]:
        """Return those that are known."""
        return {name: self.values[name] for name in names if name in self.values}


def count(samples: Samples, *, anew: bool) -> Counted:
    """Return what a host's samples count; `anew`: each dump says what has grown since the one before."""
    last = len(samples.ticks) - 1
    levels = {n: c.values[-1] for n, c in samples.counters.items() if n.startswith(_LEVELS) and c.values}
    told = [tick for tick, each in enumerate(samples.ticks) if each.counted]
    if len(told) > 1 and told[0] != told[-1]:
        grown = {
            name: of.values[-1] - first
            for name, of in samples.counters.items()
            if (first := of.at(told[0])) is not None and name not in levels
        }
        return Counted(grown | levels, _BETWEEN)
    # `netstat -s | grep` may leave the overflows out; other counters tell of their own growth.
    grown = {n: c.values[-1] - c.values[0] for n, c in samples.counters.items() if n not in levels and c.values[1:]}
    if grown:
        return Counted(grown | levels, _BETWEEN)
    values = {name: of.at(last) or 0 for name, of in samples.counters.items()}
    return Counted(values, "since the last call of nstat" if anew else "since the host or its namespace started")


def find(
    samples: Samples,
    sysctls: Mapping[str, str | None],
    *,
    anew: bool = False,
    idle_percent: float | None = None,
    no_address: int = 0,
) -> list[Finding]:
    """Return what a host's counters and queues prove."""
    counted = count(samples, anew=anew)
    found = [*_queues(samples, sysctls), *_unix_queues(samples)]
    found += _overflows(counted, idle_percent)
    found += _other_drops(counted)
    found += _attempts(counted)
    found += _ports(counted, sysctls, no_address)
    found += _connections(samples)
    return found


def _queues(samples: Samples, sysctls: Mapping[str, str | None]) -> Iterator[Finding]:
    """Yield each listener that was full at a reading."""
    full: dict[tuple[int, int], int] = {}
    for tick in samples.ticks:
        for each in tick.listeners:
            if each.depth > each.limit:
                key = (each.port, each.limit)
                full[key] = max(full.get(key, 0), each.depth)
    somaxconn = _number(sysctls.get(SOMAXCONN))
    for (port, limit), depth in sorted(full.items()):
        says = f"The accept queue of port {port} was full: {depth:,} connections waited, and it holds {limit:,} + 1."
        default = f", {_DEFAULTS[limit]}" if limit in _DEFAULTS else ""
        if somaxconn is not None and somaxconn > limit:
            says += (
                f" The program's own backlog of {limit:,}{default}{',' * bool(default)} is the limit:"
                f" {SOMAXCONN} is {somaxconn:,}, and no sysctl makes the queue longer."
            )
        elif somaxconn is not None and somaxconn == limit:
            says += f" {SOMAXCONN} is {somaxconn:,} too, and cuts a longer backlog of the program down to it."
        else:
            says += f" The program asked for {limit:,}{default}, or {SOMAXCONN} is as low; no dump tells it."
        yield Finding("full-accept-queue", says, {"Recv-Q": depth, "Send-Q": limit})


def _unix_queues(samples: Samples) -> Iterator[Finding]:
    """Yield each unix socket whose queue was full at a reading; no counter of the kernel's tells of it."""
    full: dict[tuple[str, int], int] = {}
    for tick in samples.ticks:
        for each in tick.unix:
            if each.depth > each.limit:
                full[each.path, each.limit] = max(full.get((each.path, each.limit), 0), each.depth)
    for (path, limit), depth in sorted(full.items()):
        says = (
            f"The queue of the unix socket {path} was full: {depth:,} connections waited, and it holds {limit:,} + 1."
        )
        says += " Who connects then is refused at once (EAGAIN), and a server in front answers 502 or 503; no counter"
        says += " tells of it."
        yield Finding("full-unix-socket", says, {"Recv-Q": depth, "Send-Q": limit})


_OVERFLOWS, _DROPS = "TcpExt.ListenOverflows", "TcpExt.ListenDrops"
_REQUESTS_DROPPED, _REQUESTS_COOKIES = "TcpExt.TCPReqQFullDrop", "TcpExt.TCPReqQFullDoCookies"
_COOKIES, _PASSIVE, _FAILED = "TcpExt.SyncookiesSent", "Tcp.PassiveOpens", "Tcp.AttemptFails"
_EMBRYONIC, _TIME_WAITS = "TcpExt.EmbryonicRsts", "TcpExt.TCPTimeWaitOverflow"


def _overflows(counted: Counted, idle_percent: float | None) -> Iterator[Finding]:
    overflows = counted[_OVERFLOWS]
    if overflows <= 0:
        return
    says = f"{overflows:,} SYNs or last ACKs of a handshake met a full accept queue {counted.since}."
    if passive := counted[_PASSIVE]:
        says += f" {passive:,} connections came in meanwhile."
    says += " A client sends its SYN again, so fewer connections failed: `connlab estimate` bounds how many."
    if idle_percent is not None and idle_percent >= _IDLE_PERCENT:
        says += (
            f" The processors were {idle_percent:g} % idle: a limit on connections or workers kept the program from"
            " accepting, not the processors."
        )
    rests = counted.of(_OVERFLOWS, _PASSIVE) | ({} if idle_percent is None else {"idle_percent": idle_percent})
    yield Finding("accept-queue-overflows", says, rests)


def _other_drops(counted: Counted) -> Iterator[Finding]:
    others = counted[_DROPS] - counted[_OVERFLOWS]
    full, cookies = counted[_REQUESTS_DROPPED], max(counted[_REQUESTS_COOKIES], counted[_COOKIES])
    rests = counted.of(_DROPS, _OVERFLOWS, _REQUESTS_DROPPED, _REQUESTS_COOKIES, _COOKIES)
    untold = counted[_DROPS] > 0 and not counted.has(_OVERFLOWS)
    if others > 0 and not untold:
        says = f"{others:,} of {format_count(counted[_DROPS], 'drop')} {counted.since} are no overflows"
        if full > 0:
            says += f": {min(full, others):,} SYNs met a full SYN queue, and no cookie was sent (TCPReqQFullDrop)."
        elif _REQUESTS_DROPPED in counted.values:
            says += ", and none met a full SYN queue: no memory, or no route for the answer. Counters tell no more."
        else:
            says += ": a full SYN queue or no memory. `nstat -az TcpExtTCPReqQFullDrop` would tell which."
        if full <= 0 and counted[_COOKIES] >= others:
            says += (
                " Linux up to 4.6 counts a SYN that a cookie answered as a drop, too: there, none of these was lost."
            )
        elif counted[_OVERFLOWS] == 0:
            says += " Each dropped SYN is sent again after 1 s; without a capture nobody knows whose it was."
        yield Finding("drops-without-overflow", says, rests)
    elif untold:
        says = (
            f"{counted[_DROPS]:,} SYNs or last ACKs of a handshake were dropped {counted.since}. How many of them met a"
        )
        says += " full accept queue, no dump tells: `nstat -az TcpExtListenOverflows` does. netstat, and nstat without"
        says += " -z, leave out what is 0: if nothing was cut off their output, none did."
        yield Finding("drops-untold", says, rests)
    elif full > 0:
        says = f"{format_count(full, 'SYN')} met a full SYN queue {counted.since}, and no cookie was sent."
        yield Finding("syn-queue-drops", says, rests)
    if cookies > 0:
        says = f"The SYN queue was full at times: {format_count(cookies, 'cookie')} answered SYNs {counted.since}."
        says += " A SYN that a cookie answers is not lost"
        says += ": nobody failed for it." if full <= 0 and counted[_OVERFLOWS] <= 0 and not untold else "."
        yield Finding("syn-cookies", says, rests)


def _attempts(counted: Counted) -> Iterator[Finding]:
    failed, embryonic = counted[_FAILED], counted[_EMBRYONIC]
    if failed > 0:
        rests = counted.of(_FAILED, _EMBRYONIC, _OVERFLOWS)
        says = f"{format_count(failed, 'connection attempt')} failed {counted.since}"
        if embryonic > 0:
            says += (
                f"; {min(embryonic, failed):,} of these were half-open connections that a RST of the client ended:"
                " scans, health checks, or clients that gave up. That is not the accept queue."
            )
        elif counted.has(_EMBRYONIC):
            says += ": connections of this host's own that were refused or given up. Incoming ones are not among them."
        else:
            says += ": this host's own that were refused or given up, or half-open ones that a RST ended."
            says += " TcpExtEmbryonicRsts would tell which."
        yield Finding("attempts-failed", says, rests)
    if (again := counted["TcpExt.TCPSynRetrans"]) > 0:
        says = f"This host sent {again:,} SYNs or SYN-ACKs again {counted.since}:"
        says += " servers that it called, or its clients, did not answer in time. A capture tells which."
        yield Finding("syns-sent-again", says, counted.of("TcpExt.TCPSynRetrans"))
    if (ended := counted[_TIME_WAITS]) > 0:
        says = f"{format_count(ended, 'connection')} left TIME_WAIT early {counted.since}, because"
        says += " net.ipv4.tcp_max_tw_buckets were full. That fails no client's connection."
        yield Finding("time-wait-overflow", says, counted.of(_TIME_WAITS))


def _ports(counted: Counted, sysctls: Mapping[str, str | None], no_address: int) -> Iterator[Finding]:
    size = port_count(sysctls.get(PORT_RANGE))
    open_, waiting = counted["sockstat.TCP.inuse"] or counted["Tcp.CurrEstab"], counted["sockstat.TCP.tw"]
    if not no_address and (size is None or open_ + waiting <= size):
        return
    if not open_ + waiting:
        says = "A program found no local port (EADDRNOTAVAIL). `cat /proc/net/sockstat` tells what holds them."
    else:
        holds = "established connections hold" if open_ > waiting else "connections in TIME_WAIT hold"
        of = f"the {size:,} that there are to each server" if size is not None else "the range to each server"
        said = "A program found no local port (EADDRNOTAVAIL)" if no_address else "Local ports may run out"
        says = (
            f"{said}: {open_:,} connections are open and {waiting:,} in TIME_WAIT, so {holds} the ports, {of}."
            " More server addresses, local addresses or fewer connections help"
            f"{', and a shorter TIME_WAIT does not' if open_ > waiting else ''}."
        )
    rests: dict[str, int | float] = {"EADDRNOTAVAIL": no_address} if no_address else {}
    rests |= counted.of("sockstat.TCP.inuse", "sockstat.TCP.tw", "Tcp.CurrEstab")
    yield Finding("no-local-port", says, rests | ({} if size is None else {PORT_RANGE: size}))


_SYN_SENT: Final = "SYN_SENT"
# What a state says of a connection in it: the finding's name, and in words.
_STATES: Final = {
    _SYN_SENT: ("syns-unanswered", "This host's SYN had no answer by then."),
    "SYN_RECV": (
        "half-open",
        "The client had not acknowledged the SYN-ACK, or its ACK met a full accept queue.",
    ),
    "CLOSE_WAIT": ("close-wait", "The other end had closed, and this host's program had not."),
}


def _connections(samples: Samples) -> Iterator[Finding]:
    """Yield what the states of connections say, each at the moment that has most of it."""
    moments: dict[int, dict[str, Counter[str]]] = {}
    for record in (*samples.sockets, *samples.time_waits):
        states = moments.setdefault(record["time_us"], {})
        for group in record["groups"]:
            peer, port = str(group.get("peer")), group.get("port")
            to = f"to [{peer}]:{port}" if ":" in peer else f"to {peer}:{port}"
            end = to if group.get("side") == "client" else f"at port {port}"
            states.setdefault(str(group.get("state")), Counter())[end] += group["count"]
    most: dict[str, Counter[str]] = {}
    for states in moments.values():
        for state, ends in states.items():
            most[state] = max(most.get(state, Counter()), ends, key=Counter.total)
    if most:
        counts = {state: ends.total() for state, ends in sorted(most.items())}
        words = ", ".join(f"{count:,} {state}" for state, count in counts.items())
        of = "the most of each state in one dump" if len(moments) > 1 else "by their state"
        yield Finding("connections-by-state", f"Connections, {of}: {words}.", counts)
    for state, (name, means) in _STATES.items():
        ends = most.get(state, Counter())
        if ends:
            named = ", ".join(f"{count:,} {end}" for end, count in ends.most_common(_NAMED_MAX))
            more = f", {ends.total() - sum(c for _, c in ends.most_common(_NAMED_MAX)):,} elsewhere"
            more = more if len(ends) > _NAMED_MAX else ""
            says = f"{format_count(ends.total(), 'connection')} in {state}: {named}{more}. {means}"
            yield Finding(name, says, {state: ends.total()})


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None  # noqa: PLR2004  63 bits


def counter_growth(
    samples: Samples, window: Window, counters: Sequence[str], steps: int
) -> Iterator[tuple[str, int, int, int | None]]:
    """Yield each counter that grew: its name, from when to when (µs since the window began), and its growth.

    Of the readings in a step of the window the last counts. Growth is None where a counter was not told or fell.
    """
    readings = _last_of_steps(samples, window, steps)
    for name in counters:
        counter = samples.counters.get(name)
        if counter is None:
            continue
        values = [(time_us, counter.at(tick)) for tick, time_us in readings]
        grown = [
            (name, earlier_us, later_us, None if before is None or after is None or after < before else after - before)
            for (earlier_us, before), (later_us, after) in pairwise(values)
        ]
        if any(growth for *_, growth in grown):
            yield from grown


def _last_of_steps(samples: Samples, window: Window, steps: int) -> list[tuple[int, int]]:
    """Return tick and time of the reading at the window's start, and of the last that counts in each step."""
    width_us = max(window.end_us - window.start_us, 1)
    found: dict[int, tuple[int, int]] = {}
    for number, tick in enumerate(samples.ticks):
        # A dump of sockets alone says nothing of counters.
        if tick.counted and tick.time_us <= window.end_us:
            offset_us = max(tick.time_us - window.start_us, 0)
            step = -1 if tick.time_us <= window.start_us else min(steps * offset_us // width_us, steps - 1)
            found[step] = (number, offset_us)
    return sorted(found.values(), key=lambda each: each[1])
