"""What this machine can hold: refuses, with numbers, a run that it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab import paths
from lab.engine.compose import run_file
from lab.engine.compose.docker import docker
from lab.errors import BadInput, LabError, Problem
from lab.run import machine
from lab.scenario import sysctls
from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName
from lab.scenario.topology import Topology, topology_of

# Measured: a k6 user with its connection, resident and with the room that Go's collector takes (k6/README.md), and what
# each role takes besides.
_KB_PER_USER = 420
_KB_BASE = {"k6": 150_000, "nginx": 20_000, "gateway": 60_000, "backend": 250_000}
_KB_COLLECTOR = 40_000
# Of a backend's heap, for each of its connections (backend/README.md).
_KB_HEAP_PER_CONNECTION = 19
# Files that a process opens besides its connections.
_FILES_BESIDES = 128
_FILES_BESIDES_NGINX = 256  # as nginx/connlab-nginx reserves
# Every container may open so many files, on any machine seen so far; below, nobody needs to be asked.
_FILES_SURE = 1024
_DISK_BASE_MB = 256


def check(effective: Effective) -> None:
    """Refuse what this kernel lacks and what memory, open files or disk cannot hold.

    Raises:
        BadInput: with the numbers, and the way on.
    """
    topology = topology_of(effective)
    of_machine = (_memory, _heap, _disk)
    problems = [*of_kernel(effective), *(problem for check in of_machine for problem in check(effective, topology))]
    if problems:
        raise BadInput(problems)
    problems = list(_open_files(effective, topology))
    if problems:
        raise BadInput(problems)


def of_kernel(effective: Effective) -> Iterator[Problem]:
    """Give what a scenario asks of this machine's kernel that it does not have."""
    for role, names in effective.scenario.knobs.kernel.items():
        for name, value in names.items():
            lacking = sysctls.lacking(name, value)
            if lacking:
                yield Problem(lacking[0], effective.where_knob(f"kernel.{role}.{name}"), lacking[1])


def _users(effective: Effective) -> tuple[int, str]:
    """Give the connections that the load may hold at once, and the knob that says so."""
    load = effective.scenario.knobs.load
    if load.workload == "spike":
        return load.max_users, "load.max_users"
    if load.workload == "slow_clients":
        return load.users + load.slow_users, "load.users"
    if load.workload == "half_open":
        return load.users + load.half_open, "load.users"
    return (1, "load.workload") if load.workload == "sequential" else (load.users, "load.users")


def _memory(effective: Effective, topology: Topology) -> Iterator[Problem]:
    users, knob = _users(effective)
    heap_kb = effective.scenario.knobs.backend.heap_mb * 1024
    needed_kb = users * _KB_PER_USER
    for role, instances in topology.instances.items():
        each_kb = _KB_BASE[role] + _KB_COLLECTOR + (heap_kb if role == "backend" else 0)
        needed_kb += each_kb * len(instances)
    total_kb = machine.memory_kb("MemTotal")
    if needed_kb > total_kb:
        what = f"the run needs about {needed_kb // 1024:,} MiB of memory for {users:,} users and its servers"
        yield Problem(
            f"{what}, and this machine has {total_kb // 1024:,} MiB", effective.where_knob(knob), "ask for less"
        )


def _heap(effective: Effective, topology: Topology) -> Iterator[Problem]:
    """Refuse connections that end the JVM amid the measurement."""
    backends, backend = len(topology.instances.get("backend", [])), effective.scenario.knobs.backend
    if not backends:
        return
    connections = min(_users(effective)[0] // backends, backend.max_connections)
    needed_mb = connections * _KB_HEAP_PER_CONNECTION // 1024
    if needed_mb > backend.heap_mb:
        what = f"{connections:,} connections take about {needed_mb:,} MiB of a backend's heap, and it has"
        yield Problem(
            f"{what} {backend.heap_mb:,} (backend.heap_mb)",
            effective.where_knob("backend.heap_mb"),
            "raise it, or lower backend.max_connections",
        )


def _disk(effective: Effective, topology: Topology) -> Iterator[Problem]:
    capture = effective.scenario.knobs.capture
    captures = sum(run_file.capture_mode(effective, topology.role_of(instance)) != "off" for instance in topology.all)
    needed_mb = _DISK_BASE_MB + captures * capture.max_mb
    free_mb = machine.disk_free_bytes(paths.RESULTS) >> 20
    if needed_mb > free_mb:
        what = f"the run may write {needed_mb:,} MiB below {paths.shown(paths.RESULTS)}, and {free_mb:,} MiB are free"
        yield Problem(what, way_on="free space, or lower capture.max_mb")


def _open_files(effective: Effective, topology: Topology) -> Iterator[Problem]:
    users, users_knob = _users(effective)
    knobs = effective.scenario.knobs
    backends = max(1, len(topology.instances.get("backend", [])))
    # One process each: an instance of k6, a worker of nginx, the gateway, a backend.
    needed: dict[RoleName, tuple[int, str]] = {
        "k6": (users // len(topology.clients) + _FILES_BESIDES, users_knob),
        "nginx": (knobs.nginx.worker_connections + _FILES_BESIDES_NGINX, "nginx.worker_connections"),
        "gateway": (2 * users + _FILES_BESIDES, users_knob),
        "backend": (min(users // backends, knobs.backend.max_connections) + _FILES_BESIDES, users_knob),
    }
    if max(needed[role][0] for role in topology.instances) <= _FILES_SURE:
        return
    cap = open_files_cap()
    for role in topology.instances:
        files, knob = needed[role]
        if cap is not None and files > cap:
            what = f"{knob} = {effective.values[knob]:,} needs about {files:,} open files in one process of {role}"
            way_on = "ask for less, share the load by load.instances, or raise the Docker Engine's nofile limit"
            yield Problem(f"{what}, and a container may open {cap:,}", effective.where_knob(knob), way_on)


def open_files_cap() -> int | None:
    """Give the number of files that a process in a container may open (`ulimit -Hn`).

    None if it is unlimited, or not to be known because there is no engine, or no base image of the lab, yet.
    """
    options = ("--rm", "--pull", "never", "--network", "none", "--entrypoint", "cat")
    try:
        said = docker("run", *options, "connlab/base", "/proc/self/limits")
    except LabError:
        return None
    found = re.search(r"^Max open files +[0-9a-z]+ +(?P<hard>[0-9]+) ", said, re.MULTILINE)
    return int(found["hard"]) if found else None
