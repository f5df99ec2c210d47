"""The containers of a run after it: stop them in order, keep their logs and exit codes, remove them."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab import parallel
from lab.engines.compose.docker import DockerFailed, docker, save
from lab.engines.compose.names import PROJECT, container_name
from lab.errors import LabError
from lab.scenarios.topology import Topology, collector_of

_OURS = f"label=com.docker.compose.project={PROJECT}"
_LOG_TIMEOUT_S = 60
# What the engine gives for the start of a container that was made and never ran; its exit code is 0 then.
_NEVER = "0001-"
# The engine may still be making a container that an interrupted start asked for, as the others are removed.
_ROUNDS = 5


def stop(names: Iterable[str], grace_s: int) -> None:
    """Stop containers beside each other; each stop gives the grace, so compose.yaml need not."""
    docker("stop", "--time", str(grace_s), *names, timeout_s=grace_s + 60)


def stop_along_the_path(topology: Topology, grace_s: int) -> None:
    """End the roles along the path, then their collectors, as lab.engines.protocol.Engine says."""
    collectors = [collector_of(instance) for instance in topology.all]
    for services in (*topology.instances.values(), collectors):
        if names := existing([container_name(service) for service in services]):
            stop(names, grace_s)


def existing(names: list[str]) -> list[str]:
    """Give those of the named containers that exist, running or not."""
    listed = _containers()
    return [name for name in names if name in listed]


def exit_codes(topology: Topology) -> dict[str, int | None]:
    """Give the exit code of every instance; null for one that has not ended, or never ran."""
    return {**dict.fromkeys(topology.all), **exit_codes_of(topology.all)}


def exit_codes_of(services: Iterable[str]) -> dict[str, int]:
    """Give the exit codes of those that ran and have ended."""
    return {service: one.code for service, one in container_states(services).items() if one.code is not None}


@dataclass(frozen=True)
class State:
    """How a container is.

    Attributes:
        code: its exit code, if it ran and has ended.
        error: why the engine could not start it; empty if it could, or has not tried.
    """

    running: bool
    code: int | None
    out_of_memory: bool
    error: str


def container_states(services: Iterable[str]) -> dict[str, State]:
    """Ask for the states of those that exist."""
    found: dict[str, State] = {}
    if names := existing([container_name(service) for service in services]):
        for line in docker("inspect", "--format", "{{.Name}} {{json .State}}", *names).splitlines():
            name, _, text = line.removeprefix("/").partition(" ")
            said = json.loads(text)
            over = not said["Running"] and not said["StartedAt"].startswith(_NEVER)
            found[name.removeprefix(f"{PROJECT}-")] = State(
                said["Running"], said["ExitCode"] if over else None, said["OOMKilled"], said["Error"]
            )
    return found


def keep_logs(topology: Topology, raw: Path) -> None:
    """Write what each container said to raw/<instance>/container.log and collector.log."""
    files = {container_name(instance): raw / instance / "container.log" for instance in topology.all}
    files |= {container_name(collector_of(instance)): raw / instance / "collector.log" for instance in topology.all}
    present = existing(list(files))
    parallel.each(lambda name: _keep_log(name, files[name]), present)


def _keep_log(name: str, file: Path) -> None:
    # What lies there by now is replaced, not written to: it may be the log of an earlier try, or a link.
    file.unlink(missing_ok=True)
    # Half a log is better than a run that ends for it.
    with file.open("xb") as stream, contextlib.suppress(LabError):
        save(stream, "logs", name, timeout_s=_LOG_TIMEOUT_S)


def last_words(service: str, lines: int = 10) -> str:
    """Give the end of what a container said, indented; empty if it said nothing."""
    with tempfile.TemporaryFile() as said:
        try:
            exit_code = save(said, "logs", "--tail", str(lines), container_name(service), timeout_s=10)
        except (LabError, OSError):
            return ""
        said.seek(0)
        text = said.read().decode(errors="replace").strip() if exit_code == 0 else ""
    return "".join(f"\n  {line}" for line in text.splitlines())


def remove_all() -> list[str]:
    """Remove every container and network of the lab's runs, at once and by force; give the names of what is gone.

    Raises:
        LabError: some are there again after each removal: somebody else starts them, or the engine cannot remove them.
    """
    gone: list[str] = []
    for last in (False,) * (_ROUNDS - 1) + (True,):
        try:
            found = _remove_listed()
        except DockerFailed:
            # A network that a container has joined since it was listed.
            if last:
                raise
            continue
        if not found:
            return list(dict.fromkeys(gone))
        gone += found
    if stays := _containers() + _networks():
        raise LabError(
            f"after {_ROUNDS} removals these are there again: {', '.join(stays)}",
            way_on="end what starts them, then: make clean",
        )
    return list(dict.fromkeys(gone))


def _remove_listed() -> list[str]:
    containers = _containers()
    if containers:
        docker("rm", "--force", "--volumes", *containers, timeout_s=120)
    networks = _networks()
    if networks:
        docker("network", "rm", *networks)
    return containers + networks


def _containers() -> list[str]:
    return docker("ps", "--all", "--filter", _OURS, "--format", "{{.Names}}").split()


def _networks() -> list[str]:
    return docker("network", "ls", "--filter", _OURS, "--format", "{{.Name}}").split()
