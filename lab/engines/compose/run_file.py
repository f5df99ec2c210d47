"""The Compose side of a run: what a run adds to compose.yaml, and `docker compose` itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from analysis.evidence.rawfiles import Places
from lab import paths
from lab.engines.compose.containers import PROJECT, RUN_LABEL, container_name
from lab.engines.compose.docker import docker
from lab.engines.compose.images import image_of_service
from lab.engines.container_settings import (
    COLLECTOR_LIMITS,
    ROLE_UID,
    ContainerLimits,
    collector_environment,
    compute_deadline_s,
    limits_for_instance,
    limits_for_needed,
    role_environment,
    settable_sysctls,
    supplementary_groups,
)
from lab.scenarios import own_configuration, own_script
from lab.scenarios.knobs import environment
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import split_volume, spoken
from lab.scenarios.topology import Topology, collector_of

FILE_NAME = "compose.run.yaml"
_TMP = "/tmp:mode=1777"  # noqa: S108 # as compose.yaml has it for every role
_HEALTH = {"interval": "1h", "timeout": "5s", "retries": 1, "start_interval": "250ms"}


def build_run_file(
    effective: ResolvedScenario,
    topology: Topology,
    run_id: str,
    places: Places,
    subnet: IPv4Network,
    *,
    metrics_port: int | None = None,
) -> dict[str, Any]:
    """Return what this run adds to compose.yaml.

    That is every service: each instance and its collector after compose.yaml's pattern, with what the role declares,
    its settings, the sysctls of its namespace, the folders of its raw files, and second addresses.

    Args:
        effective: what is run.
        topology: its instances.
        run_id: what the containers are labelled with.
        places: of the raw files.
        subnet: of the network, where instances have a second address; else the engine chooses one.
        metrics_port: where each collector serves its current figures; None if none does.
    """
    patterns = _load_patterns(paths.COMPOSE_FILE)
    services: dict[str, Any] = {}

    def add(pattern: str, service: str, limits: ContainerLimits, **fields: object) -> None:
        services[service] = {
            **patterns[pattern],
            "labels": {RUN_LABEL: run_id},
            "mem_limit": f"{limits.memory_mb}m",
            "pids_limit": limits.processes,
            "container_name": container_name(service),
            **fields,
        }

    # From the end of the subnet, because the engine hands out those at its beginning.
    second = {
        instance: IPv4Interface((subnet[-1 - number], subnet.prefixlen))
        for number, instance in enumerate(topology.second_names, start=1)
    }
    # The engine's own names lead to the first addresses.
    hosts = {topology.second_names[instance]: str(address.ip) for instance, address in second.items()}
    own = effective.registry.services
    groups: dict[str, Any] = {"group_add": found} if (found := supplementary_groups()) else {}
    deadline = f"{compute_deadline_s(effective)}s"
    for instance in topology.all:
        role, collector = topology.role_of(instance), collector_of(instance)
        is_client = instance in topology.clients
        on_collector: dict[str, Any] = {}
        if role in own:
            # It asks a service as long as that lives: it starts before what the service needs.
            on_collector["healthcheck"] = {**patterns["x-collector"]["healthcheck"], "start_period": deadline}
        if is_client:
            # One question at a time: a client with a single port has none for a second one.
            on_collector |= {"dns_opt": ["single-request"]} | ({"extra_hosts": hosts} if hosts else {})
        if sysctls := settable_sysctls(effective, role):
            on_collector["sysctls"] = sysctls
        add(
            "x-collector",
            collector,
            COLLECTOR_LIMITS,
            **groups,
            networks={"lab": {"aliases": topology.host_names(instance)}},
            # A container has its own raw files and no other's.
            volumes=[bind_mount(places.collector(instance), "/raw")],
            environment=collector_environment(
                effective, topology, instance, run_id, second=second.get(instance), metrics_port=metrics_port
            ),
            **on_collector,
        )
        joined = {"network_mode": f"service:{collector}", "pid": f"service:{collector}"}
        fields = _role_fields(effective, topology, instance, places, patterns["x-role"]["tmpfs"])
        add("x-role", instance, limits_for_instance(effective, topology, instance), **groups, **joined, **fields)
    for name in topology.needed:
        # A program of somebody else's knows no deadline. It gets that of the container whose processes it joins.
        add(
            "x-role",
            holder_of(name),
            COLLECTOR_LIMITS,
            image=patterns["x-collector"]["image"],
            init=True,
            network_mode="none",
            command=["hold", "--for", deadline],
        )
        joined = {"pid": f"service:{holder_of(name)}"}
        limits = limits_for_needed(own[name].memory_mb)
        add("x-role", name, limits, networks=["lab"], **joined, **service_fields(effective, topology, name))
    if not second:
        return {"services": services}
    # Reserve the addresses, so that the engine gives them to no other container.
    config = {"subnet": str(subnet), "aux_addresses": hosts}
    return {"services": services, "networks": {"lab": {"ipam": {"config": [config]}}}}


@cache
def _load_patterns(compose_file: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe", pure=True).load(compose_file.read_bytes()))


def _role_fields(
    effective: ResolvedScenario, topology: Topology, instance: str, places: Places, tmpfs: list[str]
) -> dict[str, Any]:
    """Return what an instance sets over the pattern of a role, whose folders in memory are `tmpfs`."""
    role = topology.role_of(instance)
    fields: dict[str, Any] = {
        "image": f"connlab/{role}",
        "volumes": [bind_mount(places.role(instance), "/raw")],
        "environment": role_environment(effective, topology, instance),
    }
    if instance in topology.clients and (script := own_script.find_script(effective, topology)):
        fields["volumes"].append(bind_mount(script.folder, own_script.MOUNTED, read_only=True))
    if role in effective.registry.services:
        fields |= service_fields(effective, topology, role)
        fields["environment"] |= environment(effective.scenario.knobs, role, effective.registry.knobs)
    if own := own_configuration.find_configuration(effective, topology, role):
        fields["volumes"].append(bind_mount(own.folder, own_configuration.MOUNTED, read_only=True))
        fields["tmpfs"] = [*tmpfs, *(f"{folder}:mode=1777,uid={ROLE_UID}" for folder in own.declared.writable)]
    return fields


def service_fields(effective: ResolvedScenario, topology: Topology, name: str) -> dict[str, Any]:
    """Return what a service of the scenario's own sets over the pattern: its image, and each loosening it asks for."""
    own, place = effective.registry.services, effective.place
    service = own[name]
    fields: dict[str, Any] = {
        "image": image_of_service(service, name, place),
        "environment": {key: spoken(value) for key, value in service.environment.items()},
        "tmpfs": [_TMP, *(f"{folder}:mode=1777" for folder in service.writable)],
        "volumes": [],
    }
    for source, target, _ in map(split_volume, service.volumes):
        fields["volumes"].append(bind_mount(paths.real(place.home / source), target, read_only=True))
    if service.user != "image":
        fields["user"] = service.user or f"{ROLE_UID}:{ROLE_UID}"
    if service.command is not None:
        fields["command"] = list(service.command)
    if service.capabilities:
        fields["cap_add"] = list(service.capabilities)
    if isinstance(service.ready, list) and service.ready:
        test = {"test": ["CMD", *service.ready], "start_period": f"{service.ready_within}ms"}
        fields["healthcheck"] = _HEALTH | test
    waits = {
        one: {"condition": "service_healthy" if isinstance(own[needed].ready, list) else "service_started"}
        for needed in service.depends_on
        for one in topology.instances.get(needed, [needed])
    }
    return fields | ({"depends_on": waits} if waits else {})


def bind_mount(source: Path, target: str | Path, *, read_only: bool = False) -> dict[str, Any]:
    """Return a folder or a file of the host as a volume of a service; one that is not there is an error."""
    access = {"read_only": True} if read_only else {}
    return {"type": "bind", "source": str(source), "target": str(target), **access, "bind": {"create_host_path": False}}


def write_run_file(content: Mapping[str, Any], file: Path) -> None:
    """Write what a run adds, so that Compose reads exactly that.

    It is JSON, which is YAML too: whatever a text looks like, it stays text. Compose would put the shell's variables in
    the place of what follows a `$`, but for a doubled one; in names, it would not.
    """
    text = json.dumps(_doubled(content), ensure_ascii=False, indent=2)
    # YAML takes not every character as it is, and knows no other escape for those beyond 16 bits.
    file.write_text(re.sub(r"[^\n -~]", lambda one: f"\\U{ord(one[0]):08x}", text))


def _doubled(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _doubled(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_doubled(one) for one in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def run_compose(file: Path, *arguments: str, timeout_s: float = 120, unless: Callable[[], object] | None = None) -> str:
    """Run `docker compose …` on the topology with a run's additions; `unless` is that of docker.docker."""
    files = ("--file", str(paths.COMPOSE_FILE), "--file", str(file))
    return docker("compose", "--project-name", PROJECT, *files, *arguments, timeout_s=timeout_s, unless=unless)


def holder_of(needed: str) -> str:
    """Name what holds the processes of a service that is not on the path."""
    return f"holder-{needed}"


def services_of(topology: Topology) -> list[str]:
    """Return every service of a run: what is needed beside the path, the instances and their collectors."""
    needed = [service for name in topology.needed for service in (holder_of(name), name)]
    return [*needed, *(service for instance in topology.all for service in (collector_of(instance), instance))]
