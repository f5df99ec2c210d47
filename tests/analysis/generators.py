"""Writes the raw files of a run of many load generators, each on a machine of its own, and knows every cause.

The fates of users take turns over all generators: some are served, the others fail for five reasons. Who is dropped
meets a full accept queue at each of five SYNs. One server counts and captures all of it.
"""

import random
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import Any

from tests.analysis.machines import Apart
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import (
    MEASURE_S,
    SYNS_S,
    Client,
    RunFolder,
    at_us,
    k6_tick,
    make_capture,
    make_dial,
    make_manifest,
    make_request,
    make_samples,
    quiet_tick,
    tomcat_scrapes,
)

GENERATORS, USERS = 64, 12
SERVER = "172.18.0.2"
# What becomes of users, in turn; None: served.
FATES = (None, "accept-queue-drop", "connection-refused", "reset-by-peer", "closed-without-answer", "error-status")
_FAILED: dict[str, dict[str, Any]] = {
    "connection-refused": {"error_kind": "refused", "error_code": 1212},
    "reset-by-peer": {"error_code": 1220},
    "closed-without-answer": {"error_code": 1000},
}


def address(generator: int) -> str:
    return f"172.18.1.{generator}"


def fate(generator: int, user: int) -> str | None:
    return FATES[(generator * 5 + user) % len(FATES)]


def begin_s(generator: int, user: int) -> float:
    """When a user comes: all of them one after another."""
    return MEASURE_S + 0.5 + 0.01 * (USERS * (generator - 1) + user - 1)


def make(folder: Path, seed: int) -> tuple[RunFolder, dict[tuple[str, int], str]]:
    """Make the run, and give the cause of each request that failed, by instance and id."""
    clocks = random.Random(seed)  # noqa: S311  the same each time
    capture, clients, shown, causes = Capture(), {}, {}, {}
    for generator in range(1, GENERATORS + 1):
        name = f"k6-{generator}"
        clients[name] = Client()
        shown[name] = Apart(clocks.uniform(-250, 3000), clocks.uniform(-100, 100), at_us(0))
        for user in range(1, USERS + 1):
            cause = fate(generator, user)
            _add(clients[name], capture, generator, user, cause)
            if cause:
                causes[name, user] = cause
    manifest = make_manifest()
    names = [*clients, "backend-1"]
    sysctls = manifest["sysctls"]["backend-1"]
    knobs = {"load.instances": GENERATORS, "load.users": GENERATORS * USERS, "load.arrival_gap": 0}
    manifest |= {
        "instances": {"k6": [*clients], "backend": ["backend-1"]},
        "addresses": {f"k6-{n}": [address(n)] for n in range(1, GENERATORS + 1)} | {"backend-1": [SERVER]},
        "sysctls": dict.fromkeys(names, sysctls),
        "exits": dict.fromkeys(clients, 0) | {"backend-1": 143},
        "nodes": {name: f"node-{name}" for name in names},
        "clocks": [
            {"instance": "backend-1", "asked_us": us - 30_000, "shown_us": us, "told_us": us + 40_000}
            for us in (at_us(9), at_us(63))
        ],
        "predictions": [],
    }
    for knob, value in knobs.items():
        manifest["knobs"][knob]["value"] = value
    ticks = make_samples("k6-1", quiet_tick, "k6", port=None)
    # Nothing that is asked here rests on these.
    ticks.ticks, ticks.slow = ticks.ticks[:1], []
    run = RunFolder(
        folder=folder,
        manifest=manifest,
        samples=dict.fromkeys(clients, ticks) | {"backend-1": make_samples("backend-1", _backend_tick, "java")},
        clients=clients,
        lines={"backend-1/tomcat.jsonl": tomcat_scrapes(), "backend-1/capture.json": [make_capture()]},
        captures={"backend-1": capture},
        texts={f"{name}/k6.log": "" for name in clients},
    )
    run.lines["backend-1/capture.json"][0] |= dict.fromkeys(
        ("packets_captured", "packets_received"), len(capture.packets)
    )
    for name, clock in shown.items():
        for record in (*clients[name].requests, *clients[name].dials):
            record |= {key: clock.shown(record[key]) for key in ("time_us", "end_us") if key in record}
    return run, causes


def _add(client: Client, capture: Capture, generator: int, user: int, cause: str | None) -> None:
    second = begin_s(generator, user)
    local = f"{address(generator)}:{40_000 + user}"
    timeout = cause == "accept-queue-drop"
    request = make_request(user, None if timeout or cause == "connection-refused" else 20.0)
    dial = make_dial(user, failed=timeout, duration_ms=30_000.4 if timeout else 0.5)
    moved_us = at_us(second) - request["time_us"]
    for record in (request, dial):
        record |= {key: record[key] + moved_us for key in ("time_us", "end_us") if key in record}
    dial |= {"local": local, "time_us": at_us(second) + 20}
    connection = Connection(capture, local, f"{SERVER}:8080", isn=1_000 * user + generator)
    if cause in _FAILED:
        request |= {"status": 0, "error_code": _FAILED[cause]["error_code"], "error": cause}
    if timeout:
        connection.syns(*(second + 0.0001 + syn for syn in SYNS_S))
    elif cause == "connection-refused":
        connection.refused(second + 0.0001)
        dial |= {"error": "connection refused", "error_kind": "refused"}
        request["end_us"] = request["time_us"] + 600
    else:
        connection.handshake(second + 0.0001).ask(second + 0.0006)
        _end(connection, second + 0.0198, cause)
        if cause == "error-status":
            request |= {"status": 500, "error_code": 1500}
    client.requests.append(request)
    client.dials.append(dial)


def _end(connection: Connection, second: float, cause: str | None) -> None:
    if cause == "reset-by-peer":
        connection.reset_by_server(second)
    elif cause == "closed-without-answer":
        connection.close_by_server(second)
    else:
        connection.answer(second)


def _backend_tick(second: float) -> tuple[dict[str, int], int]:
    drops, made = (bisect_right(moments, second) for moments in _counted())
    counters, _ = k6_tick(0)
    counters |= {"TcpExt.ListenOverflows": drops, "TcpExt.ListenDrops": drops, "Tcp.PassiveOpens": made}
    return counters, 2 if drops else 0


@cache
def _counted() -> tuple[list[float], list[float]]:
    """When the server's kernel dropped a SYN, and when it made a connection."""
    every = [(fate(g, u), begin_s(g, u)) for g in range(1, GENERATORS + 1) for u in range(1, USERS + 1)]
    drops = [begun + syn + 0.0001 for cause, begun in every if cause == "accept-queue-drop" for syn in SYNS_S]
    made = [begun for cause, begun in every if cause not in ("accept-queue-drop", "connection-refused")]
    return sorted(drops), sorted(made)
