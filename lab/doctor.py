"""Says what this machine lacks for the lab, and the way on for each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lab import parallel, paths
from lab.engine.compose.docker import docker
from lab.errors import LabError
from lab.roles.declaration import ROLES
from lab.run import facts, limits, machine
from lab.scenario import sysctls

State = Literal["ok", "warn", "missing"]

_ENGINE_MIN = (25, 0)
_COMPOSE_MIN = (2, 20)
_CPUS_MIN = 2
_MEMORY_MIN_KB = 4 << 20
_DISK_MIN_BYTES = 10 << 30
_FILES_WANTED = 20_000
_DEBIAN = "on Debian, as root, 'make run' installs it"


@dataclass(frozen=True)
class Finding:
    """One thing that the lab needs.

    Attributes:
        state: `missing` = no run is possible; `warn` = some are not, or their figures suffer.
        way_on: what to do about it.
    """

    name: str
    state: State
    found: str
    way_on: str | None = None


def examine() -> list[Finding]:
    """Look at everything; what needs Docker is looked at side by side."""
    checks = (_engine, _compose, _buildx, _images, _open_files)
    found = parallel.each(lambda check: check(), checks)
    return [*found.values(), *_hardware(), *_kernel()]


def _engine() -> Finding:
    return _versioned("Docker Engine", facts.docker_version, _ENGINE_MIN)


def _compose() -> Finding:
    return _versioned("Compose", facts.compose_version, _COMPOSE_MIN)


def _versioned(name: str, ask: Callable[[], str], least: tuple[int, int]) -> Finding:
    wanted = ".".join(map(str, least))
    try:
        version = ask()
    except LabError as error:
        return Finding(name, "missing", error.what.splitlines()[-1].strip(), f"install {wanted} or newer; {_DEBIAN}")
    numbers = tuple(map(int, re.findall(r"[0-9]+", version)[:2]))
    if numbers < least:
        return Finding(name, "missing", version, f"the lab needs {wanted} or newer; {_DEBIAN}")
    return Finding(name, "ok", version)


def _buildx() -> Finding:
    try:
        said = docker("buildx", "version").split()
    except LabError:
        return Finding("buildx", "missing", "not installed", f"install docker-buildx; {_DEBIAN}")
    return Finding("buildx", "ok", said[1] if len(said) > 1 else "unknown version")


def _images() -> Finding:
    wanted = ("collector", *ROLES)
    try:
        present = {json.loads(line)["Repository"] for line in docker("image", "ls", "--format", "json").splitlines()}
    except (LabError, ValueError, KeyError):
        return Finding("images", "warn", "the engine does not tell", "'make setup' builds them")
    missing = [f"connlab/{name}" for name in wanted if f"connlab/{name}" not in present]
    if missing:
        return Finding(
            "images", "warn", f"not built yet: {', '.join(missing)}", "the first run builds them, or 'make setup'"
        )
    return Finding("images", "ok", "built")


def _open_files() -> Finding:
    name = "open files in a container"
    try:
        cap = limits.open_files_cap()
    except LabError:
        return Finding(name, "warn", "the engine does not tell")
    if cap is not None and cap < _FILES_WANTED:
        way_on = f"for {_FILES_WANTED:,} users in one instance raise the engine's nofile limit (default-ulimits)"
        return Finding(name, "warn", f"{cap:,}", way_on)
    return Finding(name, "ok", "no limit known" if cap is None else f"{cap:,}")


def _hardware() -> Iterator[Finding]:
    cores = machine.cpus()
    if cores < _CPUS_MIN:
        yield Finding("cores", "warn", str(cores), "with one core the load and the servers spoil each other's times")
    else:
        yield Finding("cores", "ok", str(cores))
    memory_kb = machine.memory_kb("MemTotal")
    if memory_kb < _MEMORY_MIN_KB:
        yield Finding(
            "memory", "warn", f"{memory_kb >> 10:,} MiB", f"{_MEMORY_MIN_KB >> 10:,} MiB are needed for every scenario"
        )
    else:
        yield Finding("memory", "ok", f"{memory_kb >> 10:,} MiB")
    free = machine.disk_free_bytes(paths.RESULTS)
    if free < _DISK_MIN_BYTES:
        yield Finding("disk", "warn", f"{free >> 30} GiB free", f"images and results want {_DISK_MIN_BYTES >> 30} GiB")
    else:
        yield Finding("disk", "ok", f"{free >> 30} GiB free")


# What a scenario may set, and since which kernel it can.
_FEATURES = {
    "net.ipv4.tcp_syn_linear_timeouts": "6.5",
    "net.ipv4.tcp_tw_reuse_delay": "6.14",
}


def _kernel() -> Iterator[Finding]:
    yield Finding("kernel", "ok", machine.kernel())
    for name, since in _FEATURES.items():
        if sysctls.settable(name):
            yield Finding(name, "ok", "settable")
        else:
            as_before = f"this kernel behaves as {sysctls.AS_BEFORE_IT_CAME[name]} says"
            yield Finding(
                name, "warn", f"not in this kernel; {as_before}", f"scenarios that set another value need Linux {since}"
            )
