"""Checks of what the lab needs of Docker on this machine, with a hint on each that is missing."""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial

from lab import parallel
from lab.engines.compose.docker import EngineForbidden, docker, run_options
from lab.engines.protocol import EVENT_CAPABILITIES, Finding
from lab.errors import LabError
from lab.roles.declared_roles import ROLES

_ENGINE_MIN = (25, 0)
_COMPOSE_MIN = (2, 20)
_FILES_WANTED = 20_000
_DEBIAN = "on Debian, as root, 'connlab setup' (make setup) installs it"


def examine() -> Iterable[Finding]:
    """Look at everything, side by side."""
    engine = partial(_versioned, "Docker Engine", docker_version, _ENGINE_MIN)
    compose = partial(_versioned, "Compose", compose_version, _COMPOSE_MIN)
    checks: tuple[Callable[[], Finding], ...] = (engine, compose, _buildx, _images, _open_files, _events)
    return parallel.each(lambda check: check(), checks).values()


def docker_version() -> str:
    """Return the engine's version."""
    return docker("version", "--format", "{{.Server.Version}}").strip()


def compose_version() -> str:
    """Return Compose's version."""
    return docker("compose", "version", "--short").strip()


def _versioned(name: str, ask: Callable[[], str], least: tuple[int, int]) -> Finding:
    wanted = ".".join(map(str, least))
    try:
        version = ask()
    except EngineForbidden as error:
        return Finding(name, "missing", error.what, error.hint)
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
        return Finding("images", "warn", "the engine does not say", "'connlab setup' (make setup) builds them")
    missing = [f"connlab/{name}" for name in wanted if f"connlab/{name}" not in present]
    if missing:
        return Finding(
            "images",
            "warn",
            f"not built yet: {', '.join(missing)}",
            "the first run builds them, or 'connlab setup' (make setup)",
        )
    return Finding("images", "ok", "built")


def open_files_cap() -> int | None:
    """Ask a container for its `ulimit -Hn`; not known without an engine, or without a base image of the lab."""
    options = ("--rm", "--pull", "never", "--network", "none", "--entrypoint", "cat")
    try:
        said = docker("run", *options, "connlab/base", "/proc/self/limits")
    except LabError:
        return None
    found = re.search(r"^Max open files +[0-9a-z]+ +(?P<hard>[0-9]+) ", said, re.MULTILINE)
    return int(found["hard"]) if found else None


def _open_files() -> Finding:
    name, cap = "open files in a container", open_files_cap()
    if cap is not None and cap < _FILES_WANTED:
        hint = f"for {_FILES_WANTED:,} users in one instance raise the engine's nofile limit (default-ulimits)"
        return Finding(name, "warn", f"{cap:,}", hint)
    return Finding(name, "ok", "no limit known" if cap is None else f"{cap:,}")


def _events() -> Finding:
    """Try whether a collector gets the kernel's events, which only a run that asks for them needs."""
    name = "kernel events"
    try:
        docker("run", "--rm", "--network", "none", *run_options(*EVENT_CAPABILITIES), "connlab/collector", "events")
    except LabError as error:
        why = error.what.splitlines()[-1].strip().removeprefix("collector: ")
        if "No such image" in error.what:
            why = "not known before connlab/collector is built"
        return Finding(name, "warn", why, "runs with capture.events=kernel go without them")
    return Finding(name, "ok", "recorded where a run asks for them")
