"""The engine Docker Compose, as lab.engines.protocol asks for one."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import parallel
from lab.engines.compose import containers, docker_sidecar, images, prerequisites, startup
from lab.engines.compose.containers import container_name, container_states, existing_containers
from lab.engines.compose.docker import docker, mount_option, save, try_configuration, try_folder
from lab.engines.cpu_stat import CpuStat, read_cpu_stat
from lab.engines.protocol import STOP_GRACE_S, Cleaned, Finding, Parts, Sidecars, Watch
from lab.errors import LabError, Problem, ScriptRefused
from lab.scenarios.overrides import Override
from lab.scenarios.own_configuration import OwnConfiguration
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.running_checks import running_roles
from lab.scenarios.topology import Topology, collector_of

_LOG_TIMEOUT_S = 60
# The kernel's own; a quota is a share of it.
_CPU_PERIOD_US = 100_000


@dataclass
class Compose:
    """A container for each part of a run, under one project's name.

    Attributes:
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    metrics: int | None = None
    on_this_machine: bool = True

    def cannot(self, resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:  # noqa: ARG002
        """Yield each service that runs on a cluster; all else that a scenario may ask for Compose can do."""
        for role, service in running_roles(resolved).items():
            where = resolved.where("services", role, "cluster_service")
            yield Problem(f"{service.cluster_service} runs on a cluster", where, "run it with --engine kubernetes")

    def found(self, resolved: ResolvedScenario) -> list[Override]:  # noqa: ARG002
        """Return nothing: Compose has no services that run already."""
        return []

    def examine(self) -> Iterable[Finding]:
        """Look at engine, Compose, builder and images, side by side."""
        return prerequisites.examine()

    def versions(self) -> dict[str, str]:
        """Return the versions of the Docker Engine and of Compose."""
        asked = {"docker": prerequisites.docker_version, "compose": prerequisites.compose_version}
        return dict(zip(asked, parallel.each(lambda ask: ask(), asked.values()).values(), strict=True))

    def open_files_cap(self) -> int | None:
        """Ask a container for its `ulimit -Hn`."""
        return prerequisites.open_files_cap()

    def sidecars(self) -> Sidecars:
        """Ask Docker for containers, and join their namespaces."""
        return docker_sidecar

    def examine_script(self, script: OwnScript) -> str | None:
        """Run the entry point of k6's image on the script, without a network."""
        (folder, *others) = script.mounts().items()
        more = [word for mount in others for word in ("--mount", mount_option(*mount, "readonly"))]
        settings, image = script.settings(), script.image
        return try_folder("k6", "inspect", folder, settings, *more, refused=ScriptRefused, own_image=image)

    def examine_configuration(self, own: OwnConfiguration) -> str | None:
        """Run the entry point of the role's image on the configuration, without a network."""
        if own.image is not None:
            images.build_proxy(own.role, own.image)
        return try_configuration(own)

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of images, as the local store has them."""
        return images.image_ids(names)

    def service_images(self, resolved: ResolvedScenario) -> dict[str, str]:
        """Pull what the local store lacks, and build what is to be built."""
        return images.service_image_ids(resolved)

    def start(self, parts: Parts, watch: Watch) -> None:
        """Let Compose make the topology with what the run adds to it, and wait for its health checks."""
        startup.start(parts, watch, self.metrics)

    def machines(self, topology: Topology) -> dict[str, str]:  # noqa: ARG002
        """Return none: all run here."""
        return {}

    def watch(self, run_id: str) -> Watch:
        """Listen to the engine's events."""
        return containers.Watch(run_id)

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        """Carry out a command in the container of an instance's collector."""
        return docker("exec", container_name(collector_of(instance)), *arguments, timeout_s=timeout_s)

    def pause(self, instance: str) -> None:
        """Freeze a container's control group."""
        docker("pause", container_name(instance))

    def resume(self, instance: str) -> None:
        """Thaw it."""
        docker("unpause", container_name(instance))

    def stop(self, instances: Iterable[str], grace_s: int = STOP_GRACE_S) -> None:
        """Stop containers beside each other."""
        _stop(map(container_name, instances), grace_s)

    def signal(self, instance: str, signal: str) -> None:
        """Send a signal to a container's first process."""
        docker("kill", "--signal", signal, container_name(instance))

    def limit_cpus(self, instance: str, cpus: float | None) -> CpuStat | None:
        """Set the quota of a container's control group; `--cpus` cannot take it away again."""
        process = docker("inspect", "--format", "{{.State.Pid}} {{.Id}}", container_name(instance))
        before = read_cpu_stat(*process.strip().partition(" ")[::2])
        quota_us = -1 if cpus is None else round(cpus * _CPU_PERIOD_US)
        period = ("--cpu-period", str(_CPU_PERIOD_US), "--cpu-quota", str(quota_us))
        docker("update", *period, container_name(instance))
        return before

    def start_again(self, instance: str) -> None:
        """Start a container that is there."""
        docker("start", container_name(instance))

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        """Stop the containers of each role that exist, then those of the collectors."""
        for services in (*topology.instances.values(), map(collector_of, topology.all)):
            if names := existing_containers(services):
                _stop(names, grace_s)

    def exit_codes(self, topology: Topology) -> dict[str, int | None]:
        """Ask for the states of the containers; null for one that has not ended, or never ran."""
        states = container_states(topology.all)
        return {one: states[one].code if one in states else None for one in topology.all}

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        """Write the containers' logs, beside each other."""
        files = {container_name(one): raw / one / "container.log" for one in topology.all}
        files |= {container_name(collector_of(one)): raw / one / "collector.log" for one in topology.all}

        def keep(name: str) -> None:
            # What lies there by now is replaced, not written to: it may be the log of an earlier try, or a link.
            files[name].unlink(missing_ok=True)
            # Half a log is better than a run that ends for it.
            with files[name].open("xb") as stream, contextlib.suppress(LabError):
                save(stream, "logs", name, timeout_s=_LOG_TIMEOUT_S)

        parallel.each(keep, existing_containers([*topology.all, *map(collector_of, topology.all)]))

    def last_words(self, service: str) -> str:
        """Return the end of a container's log."""
        return containers.last_words(service)

    def remove(self) -> list[str]:
        """Remove containers and networks of the project."""
        return containers.remove_runs()

    def clean(self) -> Cleaned:
        """Remove by label, and two names of the lab's own."""
        return containers.clean()


def _stop(names: Iterable[str], grace_s: int) -> None:
    # Each stop gives the grace, so compose.yaml need not.
    docker("stop", "--time", str(grace_s), *names, timeout_s=grace_s + 60)
