"""Raw files of a drill as its fault leaves them, without a run; and a participant who goes by rule."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.verdicts.ledger_file import Ledger
from formats import manifest
from lab import paths
from lab.lessons.drill import incident
from lab.lessons.drill.faults import Drill

START_US = 1_795_270_489_000_000
_ACCEPT_COUNT, _CONNECTIONS, _THREADS = 100, 8192, 200
# What each harmless alarm leaves, by role.
_ALARMS = {
    "kernel.k6.net.ipv4.tcp_max_tw_buckets": {"k6": {"TcpExt.TCPTimeWaitOverflow": 7}},
    "kernel.backend.net.ipv4.tcp_syncookies": {"backend": {"TcpExt.SyncookiesSent": 9, "TcpExt.SyncookiesRecv": 9}},
}


@dataclass
class Left:
    """What a fault leaves: answers and failures as (second, k6's code), counters, the longest queue, log lines."""

    answers: list[float] = field(default_factory=list)
    failures: list[tuple[float, int]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    busy: int = 1
    held: int = 1
    errors: list[str] = field(default_factory=list)
    access: list[dict[str, Any]] = field(default_factory=list)


def ledger(folder: Path, failed: int, slow: int) -> None:
    """Write what a run's verdict counts."""
    file = folder / Ledger.file
    file.parent.mkdir(parents=True, exist_ok=True)
    content = json.loads((paths.ROOT / "docs" / "example" / Ledger.file).read_text())
    content["requests"] |= {"failed": failed, "slow": slow}
    file.write_text(json.dumps(content))


def write(drill: Drill, folder: Path) -> Path:
    """Write the raw files of a drill and give the run's folder."""
    left = _left(drill)
    proxy, server = (drill.path[1] if len(drill.path) > 2 else None), f"{drill.path[-1]}-1"
    took = [(0, second, 0) for second in left.answers] + [(0, second, code) for second, code in left.failures]
    requests = [
        {"id": n, "status": 0 if code else 200, "error_code": code, "time_us": START_US + begun,
         "end_us": START_US + int(1e6 * second)}
        for n, (begun, second, code) in enumerate(took, start=1)
    ]  # fmt: skip
    _lines(folder / "raw" / "k6-1" / "role" / "requests.jsonl", [{"kind": "header"}, *requests])
    alarm = {} if drill.alarm is None else _ALARMS[drill.alarm.knob]
    _samples(folder, "k6-1", alarm.get("k6", {}), [])
    if proxy:
        _samples(folder, proxy, {}, [{"port": 8080, "depth": 0, "limit": 511}])
        _lines(folder / "raw" / proxy / "role" / "access.jsonl", left.access)
        (folder / "raw" / proxy / "role" / "error.log").write_text("".join(f"{line}\n" for line in left.errors))
    limit = min(
        _knob(drill, "backend.accept_count", _ACCEPT_COUNT), drill.knobs.get("kernel.backend.net.core.somaxconn", 4096)
    )
    _samples(
        folder, server, left.counters | alarm.get("backend", {}), [{"port": 8080, "depth": left.depth, "limit": limit}]
    )
    effective = incident.resolve_drill(drill)
    kernel = "kernel.backend."
    turned = {name.removeprefix(kernel): str(v) for name, v in drill.knobs.items() if name.startswith(kernel)}
    sysctls = {"net.core.somaxconn": "4096", "net.ipv4.tcp_syncookies": "1"} | turned
    declared = effective.registry.knobs
    knobs = {
        name: {"value": value, "unit": declared[name].unit if name in declared else None}
        for name, value in effective.values.items()
    }
    of_run = {"schema": manifest.SCHEMA, "scenario": "drill", "run": "1", "status": "aborted"}
    (folder / manifest.FILE).write_text(json.dumps(of_run | {"knobs": knobs, "sysctls": {server: sysctls}}))
    settings = {
        "maxConnections": _knob(drill, "backend.max_connections", _CONNECTIONS),
        "maxThreads": _knob(drill, "backend.threads_max", _THREADS),
    }
    body = {"settings": settings, "connections": {"current": left.held, "keepAlive": 0}, "threads": {"busy": left.busy}}
    _lines(folder / "raw" / server / "collector" / "tomcat.jsonl", [{"time_us": START_US, "body": body}])
    return folder


def _knob(drill: Drill, name: str, default: int) -> int:
    return int(drill.knobs.get(name, default))


def _samples(folder: Path, instance: str, counters: dict[str, int], listen: list[dict[str, int]]) -> None:
    tick = {"kind": "tick", "time_us": START_US, "counters": {"Tcp.PassiveOpens": 3} | counters, "listen": listen}
    _lines(folder / "raw" / instance / "collector" / "samples.jsonl", [{"kind": "header"}, tick])
    (folder / "raw" / instance / "role").mkdir(parents=True, exist_ok=True)


def _lines(file: Path, lines: Iterable[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _overflows(count: int) -> dict[str, int]:
    return {"TcpExt.ListenOverflows": count, "TcpExt.ListenDrops": count}


def _left(drill: Drill) -> Left:  # noqa: C901, PLR0911 # one for each fault
    users, places = _knob(drill, "load.users", 10), _knob(drill, "backend.max_connections", _CONNECTIONS)
    queue = min(
        _knob(drill, "backend.accept_count", _ACCEPT_COUNT), _knob(drill, "kernel.backend.net.core.somaxconn", 4096)
    )
    fit, out = places + queue + 1, max(users - places - queue - 1, 1)
    match drill.fault.name, drill.path[1]:
        case "accept-queue-full" | "somaxconn-caps-the-queue", "backend":
            late = [6.0] * (queue + 1)
            return Left([0.5] * places + late, [(2.6, 1211)] * out, _overflows(3 * out), queue + 1, 1, places)
        case "accept-queue-full", "nginx":
            lines = ["[error] 9#9: *7 upstream timed out (110: Connection timed out) while connecting to upstream"]
            access = [{"status": 504, "request_time": 2.5, "upstream_connect_time": "-"}]
            return Left([3.5] * places + [7.0] * (queue + 1), [(2.5, 1504)] * out, _overflows(2 * out), queue + 1,
                        places, places, lines, access)  # fmt: skip
        case "idle-connections-hold-places", _:
            return Left([0.5] * places + [7.0] * (users - places), [], {}, users - places, 1, places)
        case "slow-clients-hold-places", _:
            return Left([8.1] * fit, [(2.5, 1211)] * users, _overflows(2 * users), queue + 1, 0, places)
        case "syn-queue-full", _:
            drops = {"TcpExt.TCPReqQFullDrop": 3 * users, "TcpExt.ListenDrops": 3 * users}
            return Left([], [(2.5, 1211)] * users, drops)
        case "path-loses-packets", _:
            return Left([0.2] * users + [1.2] * 20, [(2.5, 1211)] * 10)
        case "threads-exhausted", _:
            threads = _knob(drill, "backend.threads_max", _THREADS)
            return Left([1.0 + n // threads for n in range(users)], [], {}, 0, threads, users)
        case "proxy-out-of-connections", _:
            lines = ["[alert] 47#47: *853 64 worker_connections are not enough while connecting to upstream"]
            return Left([2.5] * 20, [(0.1, 1500)] * 30, {}, 0, 20, 20, lines, [{"status": 500, "request_time": 0.0}])
        case "proxy-gives-up-on-answers", _:
            lines = ["[error] 9#9: *7 upstream timed out (110: Connection timed out) while reading response header"]
            return Left([], [(0.9, 1504)] * users, {}, 0, users, users, lines, [{"status": 504, "request_time": 0.9}])
        case "proxy-queue-times-out", _:
            access = [{"status": 503, "queue_ms": 500, "termination": "sQ"}]
            return Left([1.5] * 5, [(0.5, 1503)] * 10, {}, 0, 5, 5, [], access)
    raise AssertionError(drill.fault.name)


@dataclass(frozen=True)
class Read:
    """What the evidence says, as a reader takes it in."""

    proxy_says: str
    syn_queue: bool
    overflows: bool
    capped: bool
    early_answers: bool
    failed: bool
    threads_full: bool
    queued: bool


def read(text: str) -> Read:
    """Read the given evidence, and nothing else."""
    listens = [
        (int(depth), int(limit)) for depth, limit in re.findall(r"LISTEN +(\d+) +(\d+)", _server(text, "ss -lnt"))
    ]
    depth, limit = listens[0] if listens else (0, 0)
    busy, most = (int(one) for one in next(iter(re.findall(r"threads busy, at most: (\d+) of (\d+)", text))))
    asked = int(next(iter(re.findall(r"backend.accept_count: (\d+)", text))))
    seconds = [
        (int(second), int(well)) for second, _, well, _ in re.findall(r"(?m)^ +(\d+) +(\d+) +(\d+) +(\d+)$", text)
    ]
    messages = {
        "worker_connections are not enough": "no connections",
        "while connecting to upstream": "connecting",
        "while reading response header": "reading",
        "termination=sQ": "queue",
    }
    kernel = _server(text, "netstat -s")
    return Read(
        proxy_says=next((says for words, says in messages.items() if words in text), ""),
        syn_queue="TCPReqQFullDrop" in kernel,
        overflows="listen queue of a socket overflowed" in kernel,
        capped=limit < asked,
        early_answers=any(well for second, well in seconds if second < 5),
        failed=" 0 failed" not in text.splitlines()[3],
        threads_full=busy >= most,
        # One may be on its way to be accepted.
        queued=depth > 1,
    )


def _server(text: str, command: str) -> str:
    """What a command shows at the server."""
    return next(iter(re.findall(rf"(?ms)^backend-1\$ {command}.*?(?=^\S+\$ |^---|\Z)", text)), "")


def solve(read: Read) -> tuple[str, str]:
    """Name cause and place by rule."""
    return next(iter(_by_rule(read)))


_PROXIES = {
    "no connections": ("proxy-out-of-connections", "nginx"),
    "reading": ("proxy-gives-up-on-answers", "nginx"),
    "queue": ("proxy-queue-times-out", "haproxy"),
}


def _by_rule(read: Read) -> Iterator[tuple[str, str]]:
    if read.proxy_says in _PROXIES:
        yield _PROXIES[read.proxy_says]
    if read.syn_queue:
        yield "syn-queue-full", "backend"
    if read.overflows and read.capped:
        yield "somaxconn-caps-the-queue", "backend"
    if read.overflows and not read.early_answers:
        yield "slow-clients-hold-places", "backend"
    if read.overflows:
        yield "accept-queue-full", "backend"
    if read.threads_full:
        yield "threads-exhausted", "backend"
    if read.failed and not read.proxy_says and not read.queued:
        yield "path-loses-packets", "network"
    if read.queued and not read.failed:
        yield "idle-connections-hold-places", "backend"
    yield "unknown", "unknown"
