"""The catalogue of the drill's faults: what each is called, where it lies, and how its knobs are drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Settings = dict[str, Any]

# Every place works, and is free as soon as it has answered: it is not idle connections that hold the places.
_BUSY = {"handler_delay": "3500ms", "keep_alive": False}


def _users(random: Random, users: int, **load: Any) -> Settings:  # noqa: ANN401 # knobs of any type
    """Return the load that most faults share: users who come one after the other and keep their connections."""
    knobs = {"workload": "users", "users": users, "arrival_gap": f"{random.choice((10, 15, 20))}ms", **load}
    return {f"load.{name}": value for name, value in knobs.items()}


def _patience(random: Random) -> Settings:
    """Clients that give up before any place becomes free."""
    return {
        "load.connect_timeout": f"{random.choice((2500, 2800))}ms",
        "load.request_timeout": "1m",
        "kernel.k6.net.ipv4.tcp_syn_linear_timeouts": random.choice((0, 4)),
    }


def accept_queue(random: Random) -> Settings:
    """More clients than places and queue."""
    places, queue = random.randint(4, 9), random.randint(2, 3)
    return {
        "backend.max_connections": places,
        "backend.accept_count": queue,
        **_users(random, places + queue + 1 + random.randint(10, 40), **_BUSY),
        **_patience(random),
    }


def somaxconn(random: Random) -> Settings:
    """A long queue that the kernel cuts."""
    places, queue = random.randint(6, 9), random.randint(2, 4)
    return {
        **accept_queue(random),
        "backend.max_connections": places,
        "backend.accept_count": 200,
        "kernel.backend.net.core.somaxconn": queue,
        # With a longer queue the last of them is served in the third round, within the promise.
        "load.users": 3 * places - random.randint(0, 3),
    }


def idle(random: Random) -> Settings:
    """Places that idle connections hold."""
    places = random.randint(5, 10)
    waiting = random.randint(2, places)
    return {
        "backend.max_connections": places,
        "backend.accept_count": 100,
        "backend.keep_alive_timeout": f"{random.choice((6, 8))}s",
        **_users(random, places + waiting, handler_delay="500ms", request_timeout="1m"),
    }


def slow_clients(random: Random) -> Settings:
    """Places that slow requests hold."""
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


def syn_queue(random: Random) -> Settings:
    """A SYN queue full of half-open connections."""
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


def threads(random: Random) -> Settings:
    """More requests than threads."""
    threads = random.randint(3, 8)
    return {
        "backend.threads_max": threads,
        "backend.threads_min_spare": threads,
        "backend.accept_count": 200,
        **_users(random, threads * random.randint(8, 12), handler_delay="1s", request_timeout="1m"),
    }


def lossy_path(random: Random) -> Settings:
    """A path that loses packets on their way to the server."""
    return {
        "network.k6.backend.loss": f"{random.choice((25, 28, 30))}%",
        "backend.accept_count": 200,
        **_users(random, random.randint(50, 80), calls=4, handler_delay="200ms", keep_alive=False),
        **_patience(random),
        "kernel.k6.net.ipv4.tcp_syn_linear_timeouts": 0,
    }


def behind_nginx(random: Random) -> Settings:
    """More clients than places and queue, behind nginx."""
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


def worker_connections(random: Random) -> Settings:
    """More clients than a worker of nginx has connections for."""
    connections = random.choice((48, 64, 96))
    return {
        "nginx.worker_processes": 1,
        "nginx.worker_connections": connections,
        "backend.accept_count": 500,
        **_users(random, connections // 2 + random.randint(20, 60), handler_delay="2500ms", request_timeout="1m"),
    }


def read_timeout(random: Random) -> Settings:
    """Answers that take longer than nginx waits."""
    return {
        "nginx.proxy_read_timeout": f"{random.choice((700, 900, 1100))}ms",
        "nginx.proxy_next_upstream": "off",
        "nginx.max_fails": 0,
        "backend.accept_count": 200,
        **_users(random, random.randint(10, 40), handler_delay=f"{random.choice((1600, 2000))}ms"),
    }


def proxy_queue(random: Random) -> Settings:
    """More requests than HAProxy sends on at once."""
    at_once = random.randint(3, 8)
    return {
        "haproxy.server_maxconn": at_once,
        "haproxy.timeout_queue": f"{random.choice((500, 700))}ms",
        "haproxy.retries": 0,
        "backend.accept_count": 200,
        **_users(random, at_once * random.randint(4, 6), handler_delay="1500ms", request_timeout="1m"),
    }


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
        path: the roles of the path that it needs.
        draw: draws its knobs, by their full names.
        cause: the same as the ledger and the map call it.
        proof: what in the given evidence shows it, in a sentence or two.
        fixes: knobs that fix it, each with a value that does for every drawing; the most fitting first.
        promise_ms: how long an answer may take.
    """

    name: str
    says: str
    place: str
    path: tuple[str, ...]
    draw: Callable[[Random], Settings]
    cause: str
    proof: str
    fixes: Mapping[str, Any]
    promise_ms: int = _PROMISE_MS


@dataclass(frozen=True)
class Alarm:
    """Something harmless that looks alarming in the evidence.

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
        """Return the roles of its path."""
        return self.fault.path

    @property
    def name(self) -> str:
        """Return its folder's name, which says nothing of the fault."""
        return f"drill-{self.seed}-level-{self.level}"


_DIRECT, _NGINX, _HAPROXY = ("k6", "backend"), ("k6", "nginx", "backend"), ("k6", "haproxy", "backend")

FAULTS = (
    Fault(
        name="accept-queue-full",
        says="more clients than the server and its accept queue have places",
        place="backend",
        path=_DIRECT,
        draw=accept_queue,
        cause="accept-queue-drop",
        proof="At the server, Recv-Q is above Send-Q, and netstat counts overflows of the listen queue. As many threads"
        " are busy as there are connections, so each place works.",
        fixes={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="accept-queue-full",
        says="the same, behind a proxy that gives up",
        place="backend",
        path=_NGINX,
        draw=behind_nginx,
        cause="accept-queue-drop",
        proof="nginx's error log says that it timed out while connecting. At the server, Recv-Q is above Send-Q, and"
        " netstat counts overflows of the listen queue.",
        fixes={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="somaxconn-caps-the-queue",
        says="the kernel gives the server a shorter accept queue than it asks for",
        place="backend",
        path=_DIRECT,
        draw=somaxconn,
        cause="accept-queue-drop",
        proof="Send-Q is below accept_count: net.core.somaxconn is smaller, and the kernel cut the queue silently."
        " Recv-Q is above Send-Q, and netstat counts overflows of the listen queue.",
        fixes={"kernel.backend.net.core.somaxconn": 4096, "backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="idle-connections-hold-places",
        says="clients that are done hold the connections that others wait for",
        place="backend",
        path=_DIRECT,
        draw=idle,
        cause="waited-in-accept-queue",
        proof="Nobody fails, and no queue overflows. The connections are at their limit; the slow answers took a"
        " little longer than keep_alive_timeout, which is how long an idle connection holds its place.",
        fixes={"backend.keep_alive_timeout": "100ms", "backend.max_connections": 200},
    ),
    Fault(
        name="slow-clients-hold-places",
        says="clients that take long over their requests hold every place",
        place="backend",
        path=_DIRECT,
        draw=slow_clients,
        cause="accept-queue-drop",
        proof="The connections are at their limit, and hardly a thread is busy: the server waits for the rest of the"
        " requests. Recv-Q is above Send-Q, and netstat counts overflows of the listen queue.",
        fixes={"backend.max_connections": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="syn-queue-full",
        says="half-open connections fill the queue of handshakes",
        place="backend",
        path=_DIRECT,
        draw=syn_queue,
        cause="syn-queue-drop",
        proof="netstat at the server counts TCPReqQFullDrop and dropped SYNs, but no overflow of the listen queue, and"
        " Recv-Q is 0. tcp_syncookies is 0, so a full SYN queue has no way out.",
        fixes={"kernel.backend.net.ipv4.tcp_syncookies": 1, "backend.accept_count": 200},
        promise_ms=_LONG_PROMISE_MS,
    ),
    Fault(
        name="threads-exhausted",
        says="requests wait for one of the server's threads",
        place="backend",
        path=_DIRECT,
        draw=threads,
        cause="waited-for-a-thread",
        proof="All threads are busy, and the connections are far below their limit. The answers come in rounds of a"
        " second, one for each thread.",
        fixes={"backend.threads_max": 200, "backend.virtual_threads": True},
    ),
    Fault(
        name="path-loses-packets",
        says="packets get lost between the clients and the server",
        place="network",
        path=_DIRECT,
        draw=lossy_path,
        cause="syn-lost",
        proof="Clients time out while they connect, and send SYNs again (TCPSynRetrans). At the server no counter of a"
        " queue grows, Recv-Q is 0 or nearly so, and threads and places are free: what is missing never came.",
        fixes={"network.k6.backend.loss": "0%"},
    ),
    Fault(
        name="proxy-out-of-connections",
        says="the proxy's worker has no connection left",
        place="nginx",
        path=_NGINX,
        draw=worker_connections,
        cause="proxy-connections-exhausted",
        proof="nginx's error log says that its worker_connections are not enough.",
        fixes={"nginx.worker_connections": 1024},
    ),
    Fault(
        name="proxy-gives-up-on-answers",
        says="the proxy waits for an answer for less time than it takes",
        place="nginx",
        path=_NGINX,
        draw=read_timeout,
        cause="upstream-timeout",
        proof="Every 504 comes after proxy_read_timeout, and nginx's error log says that it timed out while reading the"
        " response header.",
        fixes={"nginx.proxy_read_timeout": "10s"},
    ),
    Fault(
        name="proxy-queue-times-out",
        says="requests wait in the proxy's own queue, and it gives up on them",
        place="haproxy",
        path=_HAPROXY,
        draw=proxy_queue,
        cause="proxy-queue-timeout",
        proof="HAProxy's access log says sQ, and queue_ms is timeout_queue: the request waited in HAProxy's own queue,"
        " and no server was asked.",
        fixes={"haproxy.server_maxconn": 200},
    ),
)
CAUSES: Mapping[str, Fault] = {fault.name: fault for fault in reversed(FAULTS)}
PLACES = ("k6", "network", "nginx", "haproxy", "backend")

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

    Level 1 has no proxy, 2 may have one, 3 has something harmless besides that looks alarming.
    """
    random = Random(f"{seed}/{level}")  # noqa: S311 # drawn for a lesson
    fault = random.choice([one for one in FAULTS if level > 1 or len(one.path) == len(_DIRECT)])
    knobs = fault.draw(random)
    if level < max(LEVELS):
        return Drill(seed, level, fault, knobs)
    alarm = random.choice([one for one in ALARMS if one.knob not in knobs])
    return Drill(seed, level, fault, {**knobs, alarm.knob: alarm.value}, alarm)
