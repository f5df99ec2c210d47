"""The containers of runs: their names, states, ends and last words, and the removal of all that the lab made."""

import json
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from lab.engines import protocol
from lab.engines.compose import docker_sidecar
from lab.engines.compose.docker import DockerFailed, docker, follow, save
from lab.errors import LabError

# Of all that the lab makes; the stack that compose.yaml describes is the Compose project of this name.
_NAME = "connlab"
# Of a run, so that neither Compose nor the lab takes the one's containers for the other's.
PROJECT = f"{_NAME}-run"
RUN_LABEL = f"{_NAME}.run"
_STACK_LABEL = f"com.docker.compose.project={_NAME}"
_CHECK_LABEL = "connlab.check"
_LABELS = (_STACK_LABEL, RUN_LABEL, docker_sidecar.LABEL, _CHECK_LABEL)
# Set by the builds; an image that a newer build replaced has lost its name and keeps these.
_IMAGE_LABELS = ("connlab.source", "connlab.base", _CHECK_LABEL, _STACK_LABEL)
# What Docker makes without a label: the checks' cache (setup/check.sh), and the base as it was pulled or imported.
_CACHE = f"{_NAME}-cache"
_TRIXIE_SLIM = f"{_NAME}/trixie-slim"
# What the engine gives for the start of a container that was made and never ran; its exit code is 0 then.
_NEVER = "0001-"
# The engine may still be making a container that an interrupted start asked for, as the others are removed.
_ROUNDS = 5


def container_name(service: str) -> str:
    """Name a service's container; `docker exec` finds it so without asking Compose."""
    return f"{PROJECT}-{service}"


def existing_containers(services: Iterable[str]) -> list[str]:
    """Return the names of those services' containers that exist, running or not."""
    listed = _list_containers(RUN_LABEL)
    return [name for name in map(container_name, services) if name in listed]


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
    if names := existing_containers(services):
        for line in docker("inspect", "--format", "{{.Name}} {{json .State}}", *names).splitlines():
            name, _, text = line.partition(" ")
            said = json.loads(text)
            over = not said["Running"] and not said["StartedAt"].startswith(_NEVER)
            found[name.removeprefix(f"/{container_name('')}")] = State(
                said["Running"], said["ExitCode"] if over else None, said["OOMKilled"], said["Error"]
            )
    return found


def last_words(service: str) -> str:
    """Return the end of what a container said, indented; empty if it said nothing."""
    with tempfile.TemporaryFile() as said:
        try:
            exit_code = save(said, "logs", "--tail", "10", container_name(service), timeout_s=10)
        except (LabError, OSError):
            return ""
        said.seek(0)
        text = said.read().decode(errors="replace").strip() if exit_code == 0 else ""
    return "".join(f"\n  {line}" for line in text.splitlines())


class Watch(protocol.Watch):
    """The containers of a run that have ended so far, by the engine's events."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        filters = ("type=container", "event=die", "event=oom", f"label={RUN_LABEL}={run_id}")
        arguments = [part for one in filters for part in ("--filter", one)]
        self._events = follow("events", "--format", "json", *arguments)
        self._reader = threading.Thread(target=self._read, name="docker-events", daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._events.end()
        self._reader.join(timeout=1)

    def _read(self) -> None:
        for line in self._events:
            self.take(line)

    def take(self, line: str) -> None:
        """Take in one event, as the engine writes it."""
        try:
            event = json.loads(line)
            action, attributes = event["Action"], event["Actor"]["Attributes"]
            service = attributes["name"].removeprefix(container_name(""))
            if action == "oom":
                self._out_of_memory.add(service)
            elif action == "die":
                self.end(service, int(attributes["exitCode"]))
        except (ValueError, KeyError, TypeError):
            return  # not an event that we asked for

    def check(self) -> None:
        """Raise LabError if the engine has stopped sending events: nobody would see a container end."""
        if not self._events.goes_on and not self._reader.is_alive():
            raise LabError("the Docker Engine stopped sending events", hint="see whether it was restarted")


def remove_runs() -> list[str]:
    """Remove every container and network of the lab's runs, at once and by force; return the names of what is gone.

    Raises:
        LabError: some are there again after each removal: somebody else starts them, or the engine cannot remove them.
    """
    gone: dict[str, None] = {}
    for left in reversed(range(_ROUNDS)):
        containers = _list_containers(RUN_LABEL)
        try:
            if containers:
                docker("rm", "--force", "--volumes", *containers, timeout_s=120)
            networks = _list_networks(RUN_LABEL)
            if networks:
                docker("network", "rm", *networks)
            if volumes := _listed("volume", "ls", template="{{.Name}}", labels=(RUN_LABEL,)):
                docker("volume", "rm", "--force", *volumes)
        except DockerFailed:
            # A network that a container has joined since it was listed.
            if not left:
                raise
            continue
        if not containers and not networks:
            return list(gone)
        gone |= dict.fromkeys(containers + networks)
    if stays := _list_containers(RUN_LABEL) + _list_networks(RUN_LABEL):
        raise LabError(
            f"after {_ROUNDS} removals these are there again: {', '.join(stays)}",
            hint="end what starts them, then: connlab clean (make clean)",
        )
    return list(gone)


def clean() -> protocol.Cleaned:
    """Remove the lab's containers, networks, volumes and images, and nothing else; the builder's cache stays."""
    cleaned = protocol.Cleaned()
    _remove(cleaned.kept, cleaned.containers, ("rm", "--force", "--volumes"), _list_containers(*_LABELS))
    _remove(cleaned.kept, cleaned.networks, ("network", "rm"), _list_networks(_STACK_LABEL, RUN_LABEL))
    volumes = _listed("volume", "ls", template="{{.Name}}", labels=(_STACK_LABEL, _CHECK_LABEL, RUN_LABEL))
    cache = [name for name in docker("volume", "ls", "--format", "{{.Name}}").split() if name == _CACHE]
    _remove(cleaned.kept, cleaned.volumes, ("volume", "rm"), volumes + cache)
    named = "{{.Repository}}:{{.Tag}}"
    base = docker("image", "ls", "--filter", f"reference={_TRIXIE_SLIM}", "--format", named).split()
    images = [*_listed("image", "ls", template=named, labels=_IMAGE_LABELS), *base]
    # The roles' images first: an image goes after those that were made from it.
    ordered = sorted(dict.fromkeys(images), key=lambda name: "base" in name or "slim" in name)
    _remove(cleaned.kept, cleaned.images, ("rmi", "--no-prune"), [name for name in ordered if "<none>" not in name])
    # What lost its name to a newer build goes after what may be built on it.
    nameless = _listed("image", "ls", "--filter", "dangling=true", template="{{.ID}}", labels=_IMAGE_LABELS)
    _remove(cleaned.kept, cleaned.images, ("rmi",), nameless)
    return cleaned


def _list_containers(*labels: str) -> list[str]:
    return _listed("ps", "--all", template="{{.Names}}", labels=labels)


def _list_networks(*labels: str) -> list[str]:
    return _listed("network", "ls", template="{{.Name}}", labels=labels)


def _listed(*command: str, template: str, labels: Iterable[str]) -> list[str]:
    found = (docker(*command, "--filter", f"label={label}", "--format", template).split() for label in labels)
    return list(dict.fromkeys(name for names in found for name in names))


def _remove(kept: list[str], gone: list[str], command: tuple[str, ...], names: list[str]) -> None:
    for name in names:
        try:
            docker(*command, name, timeout_s=120)
        except DockerFailed as error:
            kept.append(f"{name}: {error.reason}")
        else:
            gone.append(name)
