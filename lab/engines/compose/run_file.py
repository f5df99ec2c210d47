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
from lab.engines import bounds, container_settings, metrics, owners
from lab.engines.compose import confined, service_part
from lab.engines.compose import own_configuration as configured
from lab.engines.compose.docker import docker
from lab.engines.compose.names import PROJECT, RUN_LABEL, container_name
from lab.scenarios import own_configuration, own_script
from lab.scenarios.knobs import RoleName, environment
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, collector_of

FILE_NAME = "compose.run.yaml"


def build_run_file(
    effective: ResolvedScenario,
    topology: Topology,
    run_id: str,
    places: Places,
    subnet: IPv4Network,
    *,
    metrics_port: int | None = None,
) -> dict[str, Any]:
    """Give what this run adds to compose.yaml.

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
    services: dict[str, Any] = {}
    second = _second_addresses(topology, subnet)
    declared = _declared(paths.COMPOSE_FILE)
    groups, own = owners.supplementary_groups(), effective.registry.services
    for instance in topology.all:
        role = topology.role_of(instance)
        # A container has its own raw files and no other's.
        common = {"labels": {RUN_LABEL: run_id}} | ({"group_add": groups} if groups else {})
        collector = collector_of(instance)
        services[collector] = {
            **declared["x-collector"],
            **common,
            **confined.compose_limits(bounds.limits_for_collector()),
            "container_name": container_name(collector),
            "networks": {
                "lab": {
                    "aliases": [instance] if instance in topology.clients else list(dict.fromkeys((instance, role)))
                }
            },
            "volumes": [_mount(places.collector(instance))],
            "environment": {
                **container_settings.collector_environment(effective, topology, instance, second.get(instance)),
                **metrics.metrics_environment(topology, run_id, instance, metrics_port),
            },
            **({"healthcheck": _health(declared["x-collector"], effective)} if role in own else {}),
            **_of_clients(topology, instance, second),
            **({"sysctls": settable} if (settable := container_settings.settable_sysctls(effective, role)) else {}),
        }
        services[instance] = {
            **declared["x-role"],
            **common,
            **confined.compose_limits(bounds.limits_for_instance(effective, topology, instance)),
            "image": f"connlab/{role}",
            "container_name": container_name(instance),
            "network_mode": f"service:{collector}",
            "pid": f"service:{collector}",
            "volumes": [_mount(places.role(instance)), *_of_script(effective, topology, instance)],
            "environment": container_settings.role_environment(effective, topology, instance),
            **(service_part.service_fields(role, own, effective.place, topology.instances) if role in own else {}),
        }
        if role in own:
            services[instance]["environment"] = _own_environment(effective, role)
        if configuration := own_configuration.find_configuration(effective, topology, role):
            tmpfs = declared["x-role"]["tmpfs"]
            services[instance] |= configured.configuration_fields(configuration, services[instance]["volumes"], tmpfs)
    for name in topology.needed:
        # A program of somebody else's knows no deadline. It gets that of the container whose processes it joins.
        services[holder_of(name)] = {
            **declared["x-role"],
            "labels": {RUN_LABEL: run_id},
            **confined.compose_limits(bounds.limits_for_collector()),
            "image": declared["x-collector"]["image"],
            "container_name": container_name(holder_of(name)),
            "init": True,
            "network_mode": "none",
            "command": ["hold", "--for", f"{bounds.compute_deadline_s(effective)}s"],
        }
        services[name] = {
            **declared["x-role"],
            "labels": {RUN_LABEL: run_id},
            **confined.compose_limits(bounds.limits_for_needed(own[name].memory_mb)),
            "pid": f"service:{holder_of(name)}",
            "container_name": container_name(name),
            "networks": ["lab"],
            "environment": service_part.service_environment(own[name]),
            **service_part.service_fields(name, own, effective.place, topology.instances),
        }
    return {"services": services, **_networks(topology, subnet, second)}


@cache
def _declared(compose_file: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe", pure=True).load(compose_file.read_bytes()))


# By instance.
_Addresses = Mapping[str, IPv4Interface]


def _second_addresses(topology: Topology, subnet: IPv4Network) -> _Addresses:
    """Give the second addresses: from the end of the subnet, because the engine hands out those at its beginning."""
    return {
        instance: IPv4Interface((subnet[-1 - number], subnet.prefixlen))
        for number, instance in enumerate(topology.second_names, start=1)
    }


def _hosts(topology: Topology, second: _Addresses) -> dict[str, str]:
    """Name the second addresses to the clients: the engine's own names lead to the first ones."""
    return {topology.second_names[instance]: str(address.ip) for instance, address in second.items()}


def _networks(topology: Topology, subnet: IPv4Network, second: _Addresses) -> dict[str, Any]:
    if not second:
        return {}
    # Reserve the addresses, so that the engine gives them to no other container.
    config = {"subnet": str(subnet), "aux_addresses": _hosts(topology, second)}
    return {"networks": {"lab": {"ipam": {"config": [config]}}}}


def _mount(source: Path) -> dict[str, Any]:
    return confined.bind_mount(source, "/raw", read_only=False)


def _of_script(effective: ResolvedScenario, topology: Topology, instance: str) -> list[dict[str, Any]]:
    script = own_script.find_script(effective, topology)
    if script is None or instance not in topology.clients:
        return []
    return [confined.bind_mount(script.folder, own_script.MOUNTED, read_only=True)]


def _of_clients(topology: Topology, instance: str, second: _Addresses) -> dict[str, Any]:
    """Give what the namespaces of clients alone have."""
    if instance not in topology.clients:
        return {}
    hosts = _hosts(topology, second)
    # One question at a time: a client with a single port has none for a second one.
    return {"dns_opt": ["single-request"]} | ({"extra_hosts": hosts} if hosts else {})


def _health(pattern: Mapping[str, Any], effective: ResolvedScenario) -> dict[str, Any]:
    """Ask a service's collector as long as it lives: it starts before what the service needs."""
    return {**pattern["healthcheck"], "start_period": f"{bounds.compute_deadline_s(effective)}s"}


def _own_environment(effective: ResolvedScenario, role: RoleName) -> dict[str, str]:
    """Give the environment of a service: what the scenario writes, and the knobs over it."""
    knobs = environment(effective.scenario.knobs, role, effective.registry.knobs)
    return service_part.service_environment(effective.registry.services[role]) | knobs


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
    """Give every service of a run: what is needed beside the path, the instances and their collectors."""
    needed = [service for name in topology.needed for service in (holder_of(name), name)]
    return [*needed, *(service for instance in topology.all for service in (collector_of(instance), instance))]
