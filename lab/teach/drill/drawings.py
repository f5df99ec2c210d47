"""How the settings of each fault are drawn: other users, other limits, the same fault."""

from __future__ import annotations

from random import Random
from typing import Any

Settings = dict[str, Any]

# Every place works, and is free as soon as it has answered: it is not idle connections that hold the places.
_BUSY = {"handler_delay": "3500ms", "keep_alive": False}


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
