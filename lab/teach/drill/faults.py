"""The catalogue of the drill's faults: what each is called, where it lies, and how its knobs are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from lab.teach.drill import drawings
from lab.teach.drill.drawings import Settings

LEVELS = (1, 2, 3)
# What the users were promised, which who is on call knows: half a minute of patience would hide what only makes slow.
_PROMISE_MS = 4000
# Where clients are slow themselves, or wait their turn after the remedy, the promise leaves room for that.
_LONG_PROMISE_MS = 12_000


@dataclass(frozen=True)
class Fault:
    """One fault of the catalogue.

    Attributes:
        name: the cause, as the participant names it.
        says: the same in words.
        place: the role where it lies.
        path: the roles of the path that it needs.
        draw: draws its knobs, by their full names.
        cause: the same as the ledger and the map call it.
        proof: what in the given evidence shows it, in a sentence or two.
        heals: knobs that heal it, each with a value that does for every drawing; the most fitting first.
        promise_ms: how long an answer may take.
    """

    name: str
    says: str
    place: str
    path: tuple[str, ...]
    draw: Callable[[Random], Settings]
    cause: str
    proof: str
    heals: Mapping[str, Any]
    promise_ms: int = _PROMISE_MS


@dataclass(frozen=True)
class Alarm:
    """What looks alarming in the evidence, and no request depends on it.

    Attributes:
        says: what it is, and why it harms nobody.
        knob: what brings it about, and its value.
    """

    says: str
    knob: str
    value: Any


@dataclass(frozen=True)
class Drill:
    """A drill that was drawn.

    Attributes:
        knobs: what the scenario sets.
        alarm: what else looks alarming in the evidence and is not the cause; None below level 3.
    """

    seed: int
    level: int
    fault: Fault
    knobs: Mapping[str, Any]
    alarm: Alarm | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The roles of its path."""
        return self.fault.path

    @property
    def name(self) -> str:
        """Its folder's name, which says nothing of the fault."""
        return f"drill-{self.seed}-level-{self.level}"


_DIRECT, _NGINX, _HAPROXY = ("k6", "backend"), ("k6", "nginx", "backend"), ("k6", "haproxy", "backend")

FAULTS = (
    Fault(
        name="accept-queue-full",
        says="more clients than the server and its accept queue have places",
        place="backend",
        path=_DIRECT,
        draw=drawings.accept_queue,
        cause="accept-queue-drop",
        proof="At the server, Recv-Q is above Send-Q, and netstat counts overflows of the listen queue. As many threads"
        " are busy as there are connections, so each place works.",
        heals={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="accept-queue-full",
        says="the same, behind a proxy that gives up",
        place="backend",
        path=_NGINX,
        draw=drawings.behind_nginx,
        cause="accept-queue-drop",
        proof="nginx's error log says that it timed out while connecting. At the server, Recv-Q is above Send-Q, and"
        " netstat counts overflows of the listen queue.",
        heals={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="somaxconn-caps-the-queue",
        says="the kernel gives the server a shorter accept queue than it asks for",
        place="backend",
        path=_DIRECT,
        draw=drawings.somaxconn,
        cause="accept-queue-drop",
        proof="Send-Q is below accept_count: net.core.somaxconn is smaller, and the kernel cut the queue silently."
        " Recv-Q is above Send-Q, and netstat counts overflows of the listen queue.",
        heals={"kernel.backend.net.core.somaxconn": 4096, "backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="idle-connections-hold-places",
        says="clients that are done hold the connections that others wait for",
        place="backend",
        path=_DIRECT,
        draw=drawings.idle,
        cause="waited-in-accept-queue",
        proof="Nobody fails, and no queue overflows. The connections are at their limit; the slow answers took a"
        " little longer than keep_alive_timeout, which is how long an idle connection holds its place.",
        heals={"backend.keep_alive_timeout": "100ms", "backend.max_connections": 200},
    ),
    Fault(
        name="slow-clients-hold-places",
        says="clients that take long over their requests hold every place",
        place="backend",
        path=_DIRECT,
        draw=drawings.slow_clients,
        cause="accept-queue-drop",
        proof="The connections are at their limit, and hardly a thread is busy: the server waits for the rest of the"
        " requests. Recv-Q is above Send-Q, and netstat counts overflows of the listen queue.",
        heals={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="syn-queue-full",
        says="half-open connections fill the queue of handshakes",
        place="backend",
        path=_DIRECT,
        draw=drawings.syn_queue,
        cause="syn-queue-drop",
        proof="netstat at the server counts TCPReqQFullDrop and dropped SYNs, but no overflow of the listen queue, and"
        " Recv-Q is 0. tcp_syncookies is 0, so a full SYN queue has no way out.",
        heals={"kernel.backend.net.ipv4.tcp_syncookies": 1, "backend.accept_count": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="threads-exhausted",
        says="requests wait for one of the server's threads",
        place="backend",
        path=_DIRECT,
        draw=drawings.threads,
        cause="waited-for-a-thread",
        proof="All threads are busy, and the connections are far below their limit. The answers come in rounds of a"
        " second, one for each thread.",
        heals={"backend.threads_max": 200, "backend.virtual_threads": True},
    ),
    Fault(
        name="proxy-out-of-connections",
        says="the proxy's worker has no connection left",
        place="nginx",
        path=_NGINX,
        draw=drawings.worker_connections,
        cause="proxy-connections-exhausted",
        proof="nginx's error log says that its worker_connections are not enough.",
        heals={"nginx.worker_connections": 1024},
    ),
    Fault(
        name="proxy-gives-up-on-answers",
        says="the proxy waits for an answer for less time than it takes",
        place="nginx",
        path=_NGINX,
        draw=drawings.read_timeout,
        cause="upstream-timeout",
        proof="Every 504 comes after proxy_read_timeout, and nginx's error log says that it timed out while reading the"
        " response header.",
        heals={"nginx.proxy_read_timeout": "10s"},
    ),
    Fault(
        name="proxy-queue-times-out",
        says="requests wait in the proxy's own queue, and it gives up on them",
        place="haproxy",
        path=_HAPROXY,
        draw=drawings.proxy_queue,
        cause="proxy-queue-timeout",
        proof="HAProxy's access log says sQ, and queue_ms is timeout_queue: the request waited in HAProxy's own queue,"
        " and no server was asked.",
        heals={"haproxy.server_maxconn": 200},
    ),
)
CAUSES: Mapping[str, Fault] = {fault.name: fault for fault in reversed(FAULTS)}
PLACES = ("k6", "nginx", "haproxy", "backend")

ALARMS = (
    Alarm(
        "the client's kernel drops connections out of TIME_WAIT (TCPTimeWaitOverflow): no request depends on them",
        "kernel.k6.net.ipv4.tcp_max_tw_buckets",
        1,
    ),
    Alarm(
        "the server's kernel sends SYN cookies though no queue is full (tcp_syncookies is 2): every client that answers"
        " one is connected",
        "kernel.backend.net.ipv4.tcp_syncookies",
        2,
    ),
)


def draw(seed: int, level: int) -> Drill:
    """Draw a drill; the same seed and level give the same one.

    Args:
        seed: any whole number.
        level: 1 has no proxy, 2 may have one, 3 has something harmless besides that looks alarming.
    """
    random = Random(f"{seed}/{level}")  # noqa: S311 # drawn for a lesson
    fault = random.choice([one for one in FAULTS if level > 1 or len(one.path) == len(_DIRECT)])
    knobs = fault.draw(random)
    if level < max(LEVELS):
        return Drill(seed, level, fault, knobs)
    alarm = random.choice([one for one in ALARMS if one.knob not in knobs])
    return Drill(seed, level, fault, {**knobs, alarm.knob: alarm.value}, alarm)
