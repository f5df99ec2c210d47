"""What an observation asks of an engine: which containers run already, and a collector beside one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# Who shares a collector's process namespace reaches its files by /proc/<pid>/root if the collector has no capability
# that they lack. No engine gives this one by default, and all it grants is to wake a machine that sleeps.
_APART = "WAKE_ALARM"
# What a collector may: capture packets, and nothing that its target asks of it.
CAPABILITIES = ("NET_RAW", _APART)
# Whoever has one of these reaches them all the same.
_REACHING = frozenset({"ALL", "SYS_PTRACE", _APART})


def why_apart(capabilities: Iterable[str], *, privileged: bool) -> str | None:
    """Return why a collector stays out of a container's process namespace; None if it need not.

    Args:
        capabilities: that the container has beyond the engine's default.
        privileged: whether it has all of them.
    """
    held = {one.upper().removeprefix("CAP_") for one in capabilities} & _REACHING
    if not held and not privileged:
        return None
    rights = f"the capability {min(held)}" if held else "all capabilities"
    return f"it has {rights}, so it could change what a collector there records"


@dataclass(frozen=True)
class Container:
    """A container that runs, or a pod with all of its containers.

    Attributes:
        pid: of its first process, as this host counts; 0 on another one.
        on_host: whether its network namespace is the host's.
        words: its image and command line, by which a program is known.
        processes: whether it has a process namespace that a collector can join.
        apart: why a collector stays out of that, if there is a reason.
        machine: on which it runs; None for this one.
        with_host: whether its process namespace is the host's, and no collector can stay out of it.
    """

    id: str
    name: str
    image: str
    pid: int
    on_host: bool
    words: str
    processes: bool = True
    apart: str | None = None
    machine: str | None = None
    with_host: bool = False


class Sidecar(Protocol):
    """A collector beside a target. Every verb raises EngineFailed if the engine fails."""

    def ask(self, *arguments: str) -> str:
        """Run a command in it, and give what the command prints."""

    def image(self) -> str:
        """Give the id of its image."""

    def ended(self) -> str | None:
        """Give its last words, once it has ended; None while it runs."""

    def stop(self) -> None:
        """Let it write what it has and end, then remove it.

        Raises:
            FilesLost: what it wrote cannot be had any more.
        """

    def remove(self) -> None:
        """Remove it, whatever it does; where nobody can, it ends."""


class Sidecars(Protocol):
    """Finds what runs already, and puts collectors beside it. Every verb raises LabError if no engine answers."""

    def container(self, name: str) -> Container:
        """Find a container that runs.

        Raises:
            BadInput: there is none of this name, or it does not run.
        """

    def of_project(self, project: str, service: str | None) -> list[Container]:
        """Find the running containers of a Compose project, or of one of its services.

        Raises:
            BadInput: there is none.
        """

    def of_process(self, pid: int) -> Container | None:
        """Give the container that a process of the host belongs to; None if it belongs to none."""

    def runs(self, container_id: str) -> bool:
        """Whether a container runs."""

    def start(
        self, name: str, environment: Mapping[str, str], folder: Path, *, target: str | int, processes: bool
    ) -> Sidecar:
        """Put a collector beside a target.

        Args:
            name: for the collector.
            environment: its settings.
            folder: where it writes.
            target: the id of a container, or a process of the host.
            processes: whether it joins the container's process namespace too.

        Raises:
            EngineFailed: it does not start.
        """
