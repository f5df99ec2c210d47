"""The catalogue of the drill's faults: what each is called, where it lies, and how its knobs are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

LEVELS = (1, 2, 3)
# What the users were promised, which who is on call knows: half a minute of patience would hide what only makes slow.
_PROMISE_MS = 4000
# Where clients are slow themselves, or wait their turn after the remedy, the promise leaves room for that.
_LONG_PROMISE_MS = 12_000

Settings = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """One fault of the catalogue.

    Attributes:
        name: the cause, as the participant names it.
        says: the same in words.
        place: the role where it lies.
        path: the roles of the path that it needs.
        draw: draws its knobs, by their full names.
        promise_ms: how long an answer may take.
    """

    name: str
    says: str
    place: str
    path: tuple[str, ...]
    draw: Callable[[Random], Settings]
    promise_ms: int = _PROMISE_MS


@dataclass(frozen=True)
class Drill:
    """A drill that was drawn.

    Attributes:
        knobs: what the scenario sets.
        harmless: what else looks alarming in the evidence and is not the cause; None below level 3.
    """

    seed: int
    level: int
    fault: Fault
    knobs: Mapping[str, Any]
    harmless: str | None = None
    path: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """Its folder's name, which says nothing of the fault."""
        return f"drill-{self.seed}-level-{self.level}"


def _users(random: Random, users: int, **load: Any) -> Settings:  # noqa: ANN401 # knobs of any type
    """The load that most faults share: users who come one after the other and keep their connections."""
    knobs = {"workload": "users", "users": users, "arrival_gap": f"{random.choice((10, 15, 20))}ms", **load}
    return {f"load.{name}": value for name, value in knobs.items()}


def _patience(random: Random) -> Settings:
    """Clients that give up before any place becomes free."""
    return {
        "load.connect_timeout": f"{random.choice((2500, 2800))}ms",
        "load.request_timeout": "1m",
        "kernel.k6.net.ipv4.tcp_syn_linear_timeouts": random.choice((0, 4)),
    }


def _accept_queue(random: Random) -> Settings:
    places, queue = random.randint(4, 9), random.randint(2, 3)
    return {
        "backend.max_connections": places,
        "backend.accept_count": queue,
        "backend.keep_alive_timeout": "5s",
        **_users(random, places + queue + 1 + random.randint(10, 40), handler_delay="500ms"),
        **_patience(random),
    }


def _somaxconn(random: Random) -> Settings:
    places, queue = random.randint(6, 9), random.randint(2, 4)
    return {
        **_accept_queue(random),
        "backend.max_connections": places,
        "backend.accept_count": 200,
        "kernel.backend.net.core.somaxconn": queue,
        "load.users": places + queue + 1 + random.randint(8, 16),
    }


def _idle(random: Random) -> Settings:
    places = random.randint(5, 10)
    waiting = random.randint(2, places)
    return {
        "backend.max_connections": places,
        "backend.accept_count": 100,
        "backend.keep_alive_timeout": f"{random.choice((6, 8))}s",
        **_users(random, places + waiting, handler_delay="500ms", request_timeout="1m"),
    }


def _slow_clients(random: Random) -> Settings:
    places, queue = random.randint(5, 12), random.randint(4, 9)
    return {
        "backend.max_connections": places,
        "backend.accept_count": queue,
        "load.workload": "slow_clients",
        "load.slow_users": places + queue + 1,
        "load.header_interval": "500ms",
        "load.header_duration": "8s",
        "load.users": random.randint(10, 30),
        "load.arrival_gap": "50ms",
        "load.connect_timeout": "2500ms",
        "load.keep_alive": False,
    }


def _syn_queue(random: Random) -> Settings:
    queue = random.randint(10, 30)
    return {
        "backend.accept_count": queue,
        "load.workload": "half_open",
        "load.half_open": queue + 1,
        "load.half_open_duration": "6s",
        "load.users": random.randint(6, 14),
        "load.arrival_gap": "100ms",
        "load.connect_timeout": "2500ms",
        "kernel.k6.net.ipv4.tcp_syn_linear_timeouts": 0,
        "kernel.backend.net.ipv4.tcp_max_syn_backlog": 4096,
        "kernel.backend.net.ipv4.tcp_syncookies": 0,
    }


def _threads(random: Random) -> Settings:
    threads = random.randint(3, 8)
    return {
        "backend.threads_max": threads,
        "backend.threads_min_spare": threads,
        "backend.accept_count": 200,
        **_users(random, threads * random.randint(8, 12), handler_delay="1s", request_timeout="1m"),
    }


def _behind_nginx(random: Random) -> Settings:
    places, queue = random.randint(4, 9), random.randint(2, 3)
    return {
        "backend.max_connections": places,
        "backend.accept_count": queue,
        "nginx.proxy_connect_timeout": "2500ms",
        "nginx.proxy_next_upstream": "off",
        "nginx.max_fails": 0,
        "kernel.nginx.net.ipv4.tcp_syn_linear_timeouts": 0,
        **_users(random, places + queue + 1 + random.randint(10, 30), handler_delay="3500ms", request_timeout="1m"),
    }


def _worker_connections(random: Random) -> Settings:
    connections = random.choice((48, 64, 96))
    return {
        "nginx.worker_processes": 1,
        "nginx.worker_connections": connections,
        "backend.accept_count": 500,
        **_users(random, connections // 2 + random.randint(20, 60), handler_delay="2500ms", request_timeout="1m"),
    }


def _read_timeout(random: Random) -> Settings:
    return {
        "nginx.proxy_read_timeout": f"{random.choice((700, 900, 1100))}ms",
        "nginx.proxy_next_upstream": "off",
        "nginx.max_fails": 0,
        "backend.accept_count": 200,
        **_users(random, random.randint(10, 40), handler_delay=f"{random.choice((1600, 2000))}ms"),
    }


def _proxy_queue(random: Random) -> Settings:
    at_once = random.randint(3, 8)
    return {
        "haproxy.server_maxconn": at_once,
        "haproxy.timeout_queue": f"{random.choice((500, 700))}ms",
        "haproxy.retries": 0,
        "backend.accept_count": 200,
        **_users(random, at_once * random.randint(4, 6), handler_delay="1500ms", request_timeout="1m"),
    }


_DIRECT, _NGINX, _HAPROXY = ("k6", "backend"), ("k6", "nginx", "backend"), ("k6", "haproxy", "backend")

FAULTS = (
    Fault(
        "accept-queue-full",
        "more clients than the server and its accept queue have places",
        "backend",
        _DIRECT,
        _accept_queue,
        _LONG_PROMISE_MS,
    ),
    Fault(
        "accept-queue-full",
        "the same, behind a proxy that gives up",
        "backend",
        _NGINX,
        _behind_nginx,
        _LONG_PROMISE_MS,
    ),
    Fault(
        "somaxconn-caps-the-queue",
        "the kernel gives the server a shorter accept queue than it asks for",
        "backend",
        _DIRECT,
        _somaxconn,
        _LONG_PROMISE_MS,
    ),
    Fault(
        "idle-connections-hold-places",
        "clients that are done hold the connections that others wait for",
        "backend",
        _DIRECT,
        _idle,
    ),
    Fault(
        "slow-clients-hold-places",
        "clients that take long over their requests hold every place",
        "backend",
        _DIRECT,
        _slow_clients,
        _LONG_PROMISE_MS,
    ),
    Fault(
        "syn-queue-full",
        "half-open connections fill the queue of handshakes",
        "backend",
        _DIRECT,
        _syn_queue,
        _LONG_PROMISE_MS,
    ),
    Fault("threads-exhausted", "requests wait for one of the server's threads", "backend", _DIRECT, _threads),
    Fault(
        "proxy-out-of-connections", "the proxy's worker has no connection left", "nginx", _NGINX, _worker_connections
    ),
    Fault(
        "proxy-gives-up-on-answers",
        "the proxy waits for an answer for less time than it takes",
        "nginx",
        _NGINX,
        _read_timeout,
    ),
    Fault(
        "proxy-queue-times-out",
        "requests wait in the proxy's own queue, and it gives up on them",
        "haproxy",
        _HAPROXY,
        _proxy_queue,
    ),
)
CAUSES: Mapping[str, str] = {fault.name: fault.says for fault in reversed(FAULTS)}
PLACES = ("k6", "nginx", "haproxy", "backend")

HARMLESS = "the client's kernel drops connections out of TIME_WAIT (TCPTimeWaitOverflow): no request depends on them"


def draw(seed: int, level: int) -> Drill:
    """Draw a drill; the same seed and level give the same one.

    Args:
        seed: any whole number.
        level: 1 has no proxy, 2 may have one, 3 has something harmless besides that looks alarming.
    """
    random = Random(f"{seed}/{level}")  # noqa: S311 # drawn for a lesson
    fault = random.choice([one for one in FAULTS if level > 1 or len(one.path) == len(_DIRECT)])
    knobs = fault.draw(random)
    harmless = level == max(LEVELS)
    if harmless:
        knobs["kernel.k6.net.ipv4.tcp_max_tw_buckets"] = 1
    return Drill(seed, level, fault, knobs, harmless=HARMLESS if harmless else None, path=fault.path)
