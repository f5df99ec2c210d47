"""Run folders for the tests, in the formats that collector, k6, nginx and lab write.

A `RunFolder` holds a whole, healthy run of the accept queue's overflow: 103 users, three places. A test changes what
it is about, and writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.evidence.rawfiles import Places
from formats.manifest import Manifest
from formats.role import Role
from lab.roles.declared_roles import ROLES

if TYPE_CHECKING:
    from tests.analysis.packets import Capture

Record = dict[str, Any]

EPOCH_US = 1_763_710_000_000_000
MONO_US = 5_000_000_000

# Seconds after EPOCH_US: the samples run from 0 to END_S.
MEASURE_S = 10.0
LOAD_END_S = 60.0
DRAIN_END_S = 62.0
END_S = 64.0

USERS = 103
SERVED_MS = (1_004.2, 22_080.0, 43_210.5)
# What a sampler says of itself in its last line.
OWN_END: Record = {"late_ticks": 2, "gaps": 0, "late_us_max": 61_000, "cpu_ms": 520}
OTHERS = USERS - len(SERVED_MS)
SYNS_S = (0, 1, 3, 7, 15)
# When nginx of the proxied run ended its requests, each after a second at the backend, and with which status. The first
# came before the measurement.
ANSWERED = ((5.0, 200), (11.1, 200), (32.0, 200), (53.2, 200), (54.0, 502))
# What tests.analysis.packets.make_packets makes: handshake, request and answer of those served, the others' SYNs.
PACKETS = 7 * len(SERVED_MS) + len(SYNS_S) * OTHERS


def at_us(second: float) -> int:
    return EPOCH_US + round(second * 1_000_000)


@dataclass
class Samples:
    """What one collector saw; `ticks` hold all counters, and are written as changes only."""

    role: str
    header: Record | None = None
    ticks: list[Record] = field(default_factory=list)
    slow: list[Record] = field(default_factory=list)
    ended: bool = True

    def name(self, instance: str) -> None:
        """Have them be another instance's."""
        self.role = instance
        (self.header or {}).update(role=instance)

    def tick_between(self, start_s: float, end_s: float) -> list[Record]:
        return [tick for tick in self.ticks if at_us(start_s) <= tick["time_us"] < at_us(end_s)]

    def lose_ticks(self, start_s: float, end_s: float) -> None:
        lost = [id(tick) for tick in self.tick_between(start_s, end_s)]
        self.ticks = [tick for tick in self.ticks if id(tick) not in lost]

    def lose_readings(self, kind: str, start_s: float, end_s: float) -> None:
        self.slow = [
            each for each in self.slow if each["kind"] != kind or not at_us(start_s) <= each["time_us"] < at_us(end_s)
        ]

    def step_clock(self, second: float, step_ms: float) -> None:
        """Set the wall clock, as seen by everything from a second on."""
        for record in (*self.ticks, *self.slow):
            if record["time_us"] >= at_us(second):
                record["time_us"] += round(step_ms * 1000)

    def lines(self) -> list[Record]:
        before: dict[str, int] = {}
        encoded: list[Record] = []
        for number, tick in enumerate(self.ticks):
            full = number % 100 == 0
            changed = {name: value for name, value in tick["counters"].items() if full or before.get(name) != value}
            before = tick["counters"]
            encoded.append({**tick, "counters": changed, **({"full": True} if full else {})})
        # Readings keep their place among the ticks even when the clock was set back.
        timed = sorted([*encoded, *self.slow], key=lambda record: record.get("mono_us") or record["order_us"])
        lines = [{key: value for key, value in record.items() if key != "order_us"} for record in timed]
        end = {"kind": "end", "time_us": at_us(END_S), "reason": "signal", "ticks": len(self.ticks), **OWN_END}
        return [*([self.header] if self.header else []), *lines, *([end] if self.ended else [])]


@dataclass
class Client:
    """What one k6 instance recorded."""

    instance: str = "k6-1"
    requests: list[Record] = field(default_factory=list)
    dials: list[Record] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    dropped: int = 0
    interrupted: int = 0
    ended: bool = True

    def header(self, schema: str) -> Record:
        return {"kind": "header", "schema": f"connlab.{schema}/1", "instance": self.instance, "time_us": at_us(1)}

    def files(self) -> dict[str, list[Record]]:
        failed = sum(dial["error"] is not None for dial in self.dials if dial["kind"] == "dial")
        dials = sum(dial["kind"] == "dial" for dial in self.dials)
        requests_end = {"kind": "end", "time_us": at_us(LOAD_END_S), "requests": len(self.requests)}
        dials_end = {"kind": "end", "time_us": at_us(LOAD_END_S), "dials": dials, "failed": failed}
        events_end = {"kind": "end", "time_us": at_us(LOAD_END_S)}
        live: Record = {"time_us": at_us(LOAD_END_S), "vus": 0, "iterations": USERS, "requests": len(self.requests)}
        live |= {"failed": failed, "dropped_iterations": self.dropped, "errors": {"1211": failed}}
        live["interrupted_iterations"] = self.interrupted
        return {
            "requests.jsonl": [self.header("requests"), *self.requests, *([requests_end] if self.ended else [])],
            "dials.jsonl": [self.header("dials"), *self.dials, *([dials_end] if self.ended else [])],
            "events.jsonl": [self.header("events"), *self.events, *([events_end] if self.ended else [])],
            "live.jsonl": [live],
        }

    def summary(self) -> Record:
        dropped = {"dropped_iterations": {"type": "counter", "values": {"count": self.dropped, "rate": 0.1}}}
        return {"metrics": {"iterations": {"values": {"count": USERS}}} | (dropped if self.dropped else {})}


@dataclass
class RunFolder:
    """A whole run: files of JSON Lines and others by instance and name, captures by instance."""

    folder: Path
    manifest: Record
    samples: dict[str, Samples]
    clients: dict[str, Client]
    lines: dict[str, list[Record]]
    texts: dict[str, str]
    captures: dict[str, Capture] = field(default_factory=dict)

    def set_knobs(self, **values: object) -> None:
        """Change knobs, `__` for the dot."""
        for name, value in values.items():
            full = name.replace("__", ".")
            self.manifest["knobs"][full] = knob(value, "ms" if full in DURATIONS else None)

    def predict(self, *expressions: str, when: str | None = None) -> None:
        self.manifest["predictions"] = [
            {"id": f"p{number}", "description": "What is expected.", "expression": expression, "when": when}
            for number, expression in enumerate(expressions, start=1)
        ]

    def files(self) -> dict[str, str]:
        """What its raw files hold, but for the captures; the names are as in `k6-1/requests.jsonl`."""
        files: dict[str, str] = dict(self.texts)
        for instance, samples in self.samples.items():
            files[f"{instance}/samples.jsonl"] = jsonl(samples.lines())
        for instance, client in self.clients.items():
            files |= {f"{instance}/{name}": jsonl(lines) for name, lines in client.files().items()}
            files[f"{instance}/summary.json"] = json.dumps(client.summary())
        return files | {path: jsonl(lines) for path, lines in self.lines.items()}

    def write(self) -> Path:
        for name, content in self.files().items():
            path = self.raw(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for instance, capture in self.captures.items():
            name = f"{instance}/capture.pcap"
            if name not in self.texts:
                self.raw(name).write_bytes(capture.content())
        (self.folder / "manifest.json").write_text(json.dumps(self.manifest))
        return self.folder

    def raw(self, name: str) -> Path:
        return raw_file(self.folder, name)


_COLLECTORS = ("samples.jsonl", "capture.pcap", "capture.json", "tomcat.jsonl", "stub_status.jsonl", "gateway.jsonl")


def raw_file(folder: Path, name: str) -> Path:
    """Where a raw file lies in a run's folder; `name` is as in `k6-1/requests.jsonl`."""
    instance, file = name.split("/")
    places = Places(folder)
    return places.collector(instance, file) if file in _COLLECTORS else places.role(instance, file)


def damage_pages(path: Path) -> None:
    """Overwrite the pages of a Parquet file, and leave the footer, by which it seems whole."""
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + b"\xff" * (footer - 4) + content[footer:])


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def jsonl(records: list[Record]) -> str:
    return "".join(_ENCODER.encode(record) + "\n" for record in records)


def declared(*path: str) -> dict[str, Role]:
    """What the lab's own roles declare, by their names."""
    return {name: ROLES[name] for name in path}


def contents(*path: str) -> Record:
    """The same as a manifest has it."""
    return {name: ROLES[name].as_written() for name in path}


def role(kind: str, group: str, knobs: Record | None = None, **more: object) -> Record:
    """The declaration of a role that the lab does not have; of its knobs, what each has besides."""
    whole = {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 1, "doc": "A knob."}
    return {
        "schema": 1,
        "kind": kind,
        "description": "A role.",
        "group": group,
        "display_name": group,
        "memory": {"base_mb": 1},
        "knobs": {name: whole | one for name, one in (knobs or {}).items()},
        **more,
    }


def knob(value: object, unit: str | None = None) -> Record:
    return {"value": value, "default": value, "source": "default", "unit": unit, "read_back": None}


KNOBS: Record = {
    "backend.instances": 1,
    "backend.accept_count": 1,
    "backend.max_connections": 1,
    "backend.threads_max": 200,
    "backend.keep_alive_timeout": 20_000,
    "backend.max_keep_alive_requests": 100,
    "backend.virtual_threads": False,
    "backend.polling_period": 5_000,
    "load.workload": "users",
    "load.instances": 1,
    "load.users": USERS,
    "load.arrival_gap": 10,
    "load.calls": 1,
    "load.think_time": 0,
    "load.handler_delay": 1_000,
    "load.path": "/api/delay",
    "load.keep_alive": True,
    "load.connect_timeout": 30_000,
    "load.request_timeout": 120_000,
    "load.max_duration": 600_000,
    "load.ramp_half": 5_000,
    "load.ramp_full": 20_000,
    "load.ramp_hold": 0,
    "load.ramp_down": 5_000,
    "load.rejoin": False,
    "capture.mode": "headers",
    "capture.client": "off",
}

DURATIONS = {
    "backend.keep_alive_timeout",
    "backend.polling_period",
    *(f"load.{name}" for name in ("arrival_gap", "think_time", "handler_delay", "connect_timeout", "request_timeout")),
    *(f"load.{name}" for name in ("max_duration", "ramp_half", "ramp_full", "ramp_hold", "ramp_down")),
}

SYSCTLS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_syn_retries": "6",
    "net.ipv4.tcp_syn_linear_timeouts": "0",
    "net.ipv4.tcp_rto_max_ms": "120000",
}

PREDICTIONS = {
    "served": "client.requests.ok == model.users_served",
    "failed": "client.dials.failed == model.users_failed",
    "overflows": "kernel.backend.TcpExt.ListenOverflows == model.listen_drops",
    "drops": "kernel.backend.TcpExt.ListenDrops == kernel.backend.TcpExt.ListenOverflows",
    "queue": "listen.backend.depth.max == min(backend.accept_count, model.listen_backlog) + 1",
    "response": "near(nth(client.latency_ms.list, 2), nth(model.response_ms.list, 2), 2500)",
}


def as_manifest(content: Record) -> Manifest:
    """A manifest as it is read from a file with this content."""
    return Manifest.model_validate_json(json.dumps(content))


def make_manifest() -> Record:
    return {
        "schema": "connlab.manifest/1",
        "scenario": "accept-queue-overflow",
        "run": "20251121T072640Z-default-r01",
        "cell": "default",
        "repetition": 1,
        "status": "complete",
        "reason": None,
        "command": ["connlab", "run", "accept-queue-overflow"],
        "started": "2025-11-21T07:26:40Z",
        "ended": "2025-11-21T07:27:50Z",
        "git": {"commit": "0" * 40, "dirty": False},
        "lab": {"version": "0.1.0", "python": "3.11.7"},
        "images": {"backend": "sha256:" + "0" * 64},
        "host": {"kernel": "6.12.0", "distribution": "Debian", "cpus": 2, "memory_kb": 8_000_000},
        "path": ["k6", "backend"],
        "roles": contents(*ROLES),
        "instances": {"k6": ["k6-1"], "backend": ["backend-1"]},
        "addresses": {"k6-1": ["172.18.0.3"], "backend-1": ["172.18.0.2"]},
        "knobs": {name: knob(value, "ms" if name in DURATIONS else None) for name, value in KNOBS.items()},
        "sysctls": {"k6-1": dict(SYSCTLS), "backend-1": dict(SYSCTLS)},
        "listeners": {"backend-1": [{"address": "172.18.0.2", "port": 8080, "depth": 0, "limit": 1, "drops": 0}]},
        "phases": [
            {"name": "prepare", "start_us": at_us(0), "end_us": at_us(MEASURE_S)},
            {"name": "measure", "start_us": at_us(MEASURE_S), "end_us": at_us(LOAD_END_S)},
            {"name": "drain", "start_us": at_us(LOAD_END_S), "end_us": at_us(DRAIN_END_S)},
        ],
        "exits": {"k6-1": 0, "backend-1": 143},
        "slow_ms": None,
        "tolerance": {"unexplained": 0},
        "predictions": [
            {"id": id_, "description": "What is expected.", "expression": expression}
            for id_, expression in PREDICTIONS.items()
        ],
    }


@cache
def dropped_until(second: float) -> int:
    """SYNs of the users who found the queue full; each comes 50 ms later than its timer says."""
    arrivals = [MEASURE_S + 0.01 * user for user in range(len(SERVED_MS), USERS)]
    return sum(arrival + syn + 0.05 <= second for arrival in arrivals for syn in SYNS_S)


def backend_tick(second: float) -> tuple[dict[str, int], int]:
    """The counters and the depth of the accept queue."""
    drops = dropped_until(second)
    waiting = sum(second < MEASURE_S + end for end in (21.0, 42.1)) if second >= MEASURE_S + 0.1 else 0
    # The backend answered one probe before the measurement, which must not count.
    opened = sum(second >= MEASURE_S + 0.01 * (number + 1) for number in range(len(SERVED_MS)))
    counters = {"TcpExt.ListenOverflows": 7 + drops, "TcpExt.ListenDrops": 7 + drops}
    # One of its own management port in each second.
    counters |= {"Tcp.PassiveOpens": 1 + opened + round(second), "Tcp.ActiveOpens": round(second)}
    counters |= {"TcpExt.TCPReqQFullDoCookies": 0, "TcpExt.TCPReqQFullDrop": 0, "TcpExt.SyncookiesRecv": 0}
    counters |= {"sockstat.TCP.tw": 2 if 55 < second < 57 else 0, "IpExt.InOctets": 1000 + round(second * 10)}
    return counters, waiting


def k6_tick(second: float) -> tuple[dict[str, int], int]:
    retransmitted = max(dropped_until(second) - OTHERS, 0)
    opened = sum(second >= MEASURE_S + 0.01 * (number + 1) for number in range(USERS))
    return {
        "TcpExt.TCPSynRetrans": retransmitted,
        "Tcp.ActiveOpens": opened,
        "Tcp.PassiveOpens": 0,
        "sockstat.TCP.tw": 0,
    }, 0


def quiet_tick(_second: float) -> tuple[dict[str, int], int]:
    counters = {"TcpExt.ListenOverflows": 3, "TcpExt.ListenDrops": 3, "TcpExt.TCPSynRetrans": 0, "sockstat.TCP.tw": 0}
    return counters, 0


def upstream_tick(second: float) -> tuple[dict[str, int], int]:
    """The backend behind nginx: it takes every connection at once, and closes it after its answer."""
    counters, depth = backend_tick(0)
    opened = sum(ended - 1.003 <= second for ended, _ in ANSWERED)
    counters |= {"Tcp.PassiveOpens": opened + round(second), "Tcp.ActiveOpens": round(second)}
    counters |= {"sockstat.TCP.tw": sum(ended <= second for ended, _ in ANSWERED)}
    return counters, depth


def make_samples(
    role: str, tick: Callable[[float], tuple[dict[str, int], int]], comm: str, port: int | None = 8080
) -> Samples:
    header = {"kind": "header", "schema": "connlab.samples/1", "role": role, "rate_hz": 10, "time_us": at_us(0)}
    samples = Samples(role, header | {"kernel": "6.12.0", "hz": 100, "page_bytes": 4096, "cpus": 2})
    for number in range(round(END_S * 10) + 1):
        second = number / 10
        time = {"time_us": at_us(second)}
        counters, depth = tick(second)
        listener = {"address": "172.18.0.2", "port": port, "depth": depth, "limit": 1, "drops": 0}
        listener["drops"] = counters.get("TcpExt.ListenDrops", 0)
        samples.ticks.append(
            {"kind": "tick", **time, "mono_us": MONO_US + number * 100_000, "late_us": 150, "cost_us": 90}
            | {"counters": counters, "listen": [listener] if port else []}
        )
        if number % 10 == 5:
            order = {"order_us": MONO_US + number * 100_000 + 1}
            samples.slow += [{**reading, **time, **order} for reading in slow_readings(second, comm)]
    return samples


def slow_readings(second: float, comm: str) -> list[Record]:
    address = {"local": "172.18.0.2", "peer": "172.18.0.3"}
    group = {"state": "ESTABLISHED", "side": "server", "port": 8080, **address}
    held = 3 if MEASURE_S < second < MEASURE_S + 43 else 0
    process = {"pid": 12, "comm": comm, "cpu_ms": round(second * 50), "rss_kb": 204_800, "threads": 31}
    instrument = {"pid": 1, "comm": "collector", "cpu_ms": 10**6, "rss_kb": 10**6, "threads": 9, "open_files": 9}
    host = {"cpu_total_ms": round(second * 2000), "cpu_idle_ms": round(second * 1800)}
    own = {"cpu_ms": round(second * 8), "ticks": round(second * 10), "late_ticks": 2, "gaps": 0, "late_us_max": 61_000}
    # Sockets in TIME_WAIT come with every fifth reading.
    time_wait = {"kind": "time_wait", "cost_us": 9, "groups": []}
    return [
        {"kind": "sockets", "cost_us": 50, "groups": [{**group, "count": held}]},
        *([time_wait] if int(second) % 5 == 0 else []),
        {"kind": "processes", "cost_us": 70, "processes": [process | {"open_files": 60}, instrument], "host": host},
        {"kind": "self", **own},
    ]


def make_request(number: int, latency_ms: float | None, start_s: float = MEASURE_S) -> Record:
    begin_us = at_us(start_s + 0.01 * (number - 1))
    took_us = 30_000_000 if latency_ms is None else round(latency_ms * 1000)
    connecting_us = 0 if latency_ms is None else 300
    duration_us = 0 if latency_ms is None else took_us - connecting_us
    return {
        "id": number, "vu": number, "iteration": 0, "scenario": "users", "name": "delay", "method": "GET",
        "url": "http://backend:8080/api/delay?ms=1000&bytes=0", "time_us": begin_us, "end_us": begin_us + took_us,
        "blocked_us": 10, "connecting_us": connecting_us, "tls_us": 0, "sending_us": min(20, duration_us),
        "waiting_us": max(duration_us - 20, 0), "receiving_us": 0, "duration_us": duration_us,
        "status": 0 if latency_ms is None else 200, "error_code": 1211 if latency_ms is None else 0,
        "error": "dial: i/o timeout" if latency_ms is None else None, "reused": False,
        "remote": None if latency_ms is None else "172.18.0.2:8080", "dial": number,
    }  # fmt: skip


def make_dial(number: int, *, failed: bool, duration_ms: float) -> Record:
    return {
        "kind": "dial", "id": number, "vu": number, "time_us": at_us(MEASURE_S + 0.01 * (number - 1)),
        "duration_us": round(duration_ms * 1000), "local": f"172.18.0.3:{40_000 + number}",
        "remote": "172.18.0.2:8080", "error": "dial tcp 172.18.0.2:8080: i/o timeout" if failed else None,
        "error_kind": "timeout" if failed else None,
    }  # fmt: skip


def make_client() -> Client:
    client = Client()
    for number in range(1, USERS + 1):
        served = number <= len(SERVED_MS)
        client.requests.append(make_request(number, SERVED_MS[number - 1] if served else None))
        client.dials.append(make_dial(number, failed=not served, duration_ms=0.3 if served else 30_000.4))
    closed = {"kind": "close", "id": 1, "time_us": at_us(LOAD_END_S), "bytes_sent": 120, "bytes_received": 200}
    client.dials.append(closed | {"error": None})
    return client


def tomcat_scrapes() -> list[Record]:
    scrapes = []
    for second in range(1, round(END_S)):
        served = sum(second >= MEASURE_S + latency_ms / 1000 for latency_ms in SERVED_MS)
        busy = 1 if second == MEASURE_S else 0
        body = {
            "settings": {"acceptCount": 1, "maxConnections": 1},
            "connections": {"current": 1 if second > MEASURE_S else 0, "keepAlive": 0},
            "threads": {"current": 10, "busy": busy},
            "requests": {"count": 4 + served, "errors": 0, "processingMs": 1000 * served, "bytesSent": 0},
            "waitingRoom": {"waiting": 0, "admitted": 0, "abandoned": 0, "issued": 0},
        }
        scrapes.append({"time_us": at_us(second), "status": 200, "body": body})
    return scrapes


def make_access(second: float, status: int) -> Record:
    return {
        "time_ms": at_us(second) // 1000, "connection": 7, "connection_requests": 1, "remote_addr": "172.18.0.3",
        "remote_port": 40_001, "server_addr": "172.18.0.4", "pipe": ".",
        "request_method": "GET", "request_uri": "/api/delay?ms=1000",
        "server_protocol": "HTTP/1.1", "ssl_protocol": "",
        "ssl_session_reused": "", "request_length": 120, "request_time": 1.003, "request_completion": "OK",
        "status": status, "bytes_sent": 150, "body_bytes_sent": 0, "sent_http_connection": "keep-alive",
        "upstream_addr": "172.18.0.2:8080", "upstream_status": str(status), "upstream_connect_time": "0.000",
        "upstream_header_time": "1.003", "upstream_response_time": "1.003",
        "upstream_bytes_sent": "130", "upstream_bytes_received": "140",
    }  # fmt: skip


def stub_status(second: float, requests: int) -> Record:
    counts = f"server accepts handled requests\n 2 2 {requests} \n"
    body = f"Active connections: 1 \n{counts}Reading: 0 Writing: 1 Waiting: 0 \n"
    return {"time_us": at_us(second), "status": 200, "body": body}


def make_capture(packets: int = PACKETS) -> Record:
    return {
        "schema": "connlab.capture/1", "mode": "headers", "interface": "eth0", "filter": "not port 8081",
        "snaplen": 128, "started_us": at_us(0), "ended_us": at_us(END_S), "packets_captured": packets,
        "packets_received": packets, "packets_dropped_by_kernel": 0, "bytes": packets * 90, "cpu_ms": 40,
        "truncated": False, "reason": None,
    }  # fmt: skip
