"""The engine Docker Compose, as lab.engines.protocol asks for one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import parallel
from lab.engines.compose import (
    clean,
    confined,
    containers,
    docker_sidecar,
    images,
    own_configuration,
    prerequisites,
    service_images,
    startup,
    watch,
)
from lab.engines.compose.docker import docker
from lab.engines.compose.names import container_name
from lab.engines.protocol import STOP_GRACE_S, Cleaned, Finding, Parts, Watch
from lab.engines.sidecars import Sidecars
from lab.errors import LabError, Problem, ScriptRefused
from lab.scenarios.own_configuration import OwnConfiguration
from lab.scenarios.own_script import MOUNTED, OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, collector_of


@dataclass
class Compose:
    """A container for each part of a run, under one project's name.

    Attributes:
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    metrics: int | None = None
    on_this_machine: bool = True

    def cannot(self, effective: ResolvedScenario, topology: Topology) -> Iterator[Problem]:  # noqa: ARG002
        """Give nothing: Compose can do all that a scenario may ask for."""
        return iter(())

    def examine(self) -> Iterable[Finding]:
        """Look at engine, Compose, builder and images, side by side."""
        return prerequisites.examine(self.open_files_cap)

    def versions(self) -> dict[str, str]:
        """Give the versions of the Docker Engine and of Compose."""
        asked = {"docker": prerequisites.docker_version, "compose": prerequisites.compose_version}
        return dict(zip(asked, parallel.each(lambda ask: ask(), asked.values()).values(), strict=True))

    def open_files_cap(self) -> int | None:
        """Ask a container for its `ulimit -Hn`; not known without an engine, or without a base image of the lab."""
        options = ("--rm", "--pull", "never", "--network", "none", "--entrypoint", "cat")
        try:
            said = docker("run", *options, "connlab/base", "/proc/self/limits")
        except LabError:
            return None
        found = re.search(r"^Max open files +[0-9a-z]+ +(?P<hard>[0-9]+) ", said, re.MULTILINE)
        return int(found["hard"]) if found else None

    def sidecars(self) -> Sidecars:
        """Ask Docker for containers, and join their namespaces."""
        return docker_sidecar

    def examine_script(self, script: OwnScript) -> str | None:
        """Run the entry point of k6's image on the script, without a network."""
        return confined.try_folder("k6", "inspect", (script.folder, MOUNTED), script.settings(), refused=ScriptRefused)

    def examine_configuration(self, own: OwnConfiguration) -> str | None:
        """Run the entry point of the role's image on the configuration, without a network."""
        return own_configuration.examine_configuration(own)

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """Give the ids of images, as the local store has them."""
        return images.image_ids(names)

    def service_images(self, effective: ResolvedScenario) -> dict[str, str]:
        """Pull what the local store lacks, and build what is to be built."""
        return service_images.service_image_ids(effective)

    def start(self, parts: Parts, watch: Watch) -> None:
        """Let Compose make the topology with what the run adds to it, and wait for its health checks."""
        startup.start(parts, watch, self.metrics)

    def machines(self, topology: Topology) -> dict[str, str]:  # noqa: ARG002
        """Give none: all run here."""
        return {}

    def watch(self, run_id: str) -> Watch:
        """Listen to the engine's events."""
        return watch.Watch(run_id)

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        """Carry out a command in the container of an instance's collector."""
        return docker("exec", container_name(collector_of(instance)), *arguments, timeout_s=timeout_s)

    def pause(self, instance: str) -> None:
        """Freeze a container's control group."""
        docker("pause", container_name(instance))

    def resume(self, instance: str) -> None:
        """Thaw it."""
        docker("unpause", container_name(instance))

    def stop(self, instances: Iterable[str]) -> None:
        """Stop containers beside each other."""
        containers.stop(map(container_name, instances), STOP_GRACE_S)

    def start_again(self, instance: str) -> None:
        """Start a container that is there."""
        docker("start", container_name(instance))

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        """Stop the containers of each role that exist, then those of the collectors."""
        containers.stop_along_the_path(topology, grace_s)

    def exit_codes(self, topology: Topology) -> dict[str, int | None]:
        """Ask for the states of the containers."""
        return containers.exit_codes(topology)

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        """Write the containers' logs."""
        containers.keep_logs(topology, raw)

    def last_words(self, service: str) -> str:
        """Give the end of a container's log."""
        return containers.last_words(service)

    def remove(self) -> list[str]:
        """Remove containers and networks of the project."""
        return containers.remove_all()

    def clean(self) -> Cleaned:
        """Remove by label, and two names of the lab's own."""
        return clean.clean()
