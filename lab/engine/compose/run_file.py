"""The Compose side of a run: what a run adds to compose.yaml, and `docker compose` itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from analysis.evidence import captures
from analysis.evidence.rawfiles import Places
from lab import paths
from lab.engine import owners
from lab.engine.compose.docker import docker
from lab.scenario import sysctls
from lab.scenario.catalogue import environment
from lab.scenario.effective import Effective
from lab.scenario.knobs import PROXIES, RoleName
from lab.scenario.topology import PROJECT, RUN_LABEL, TRAFFIC_PORT, Topology, collector_of, container_of, segments

FILE_NAME = "compose.run.yaml"
_K6_PATTERN = "k6-1"


def run_file(
    effective: Effective, topology: Topology, run_id: str, places: Places, subnet: IPv4Network
) -> dict[str, Any]:
    """Give what this run adds to compose.yaml.

    That is: settings of each role, sysctls of each namespace, the folders of the raw files, the k6 instances beyond the
    first, made after its pattern, and second addresses.

    Args:
        effective: what is run.
        topology: its instances.
        run_id: what the containers are labelled with.
        places: of the raw files.
        subnet: of the network, where instances have a second address; else the engine chooses one.
    """
    services: dict[str, Any] = {}
    second = _second_addresses(topology, subnet)
    patterns, groups = _patterns(topology), owners.groups()
    for instance in topology.all:
        role = topology.role_of(instance)
        # A container has its own raw files and no other's.
        common = {"labels": {RUN_LABEL: run_id}} | ({"group_add": groups} if groups else {})
        collector = collector_of(instance)
        services[collector] = _merged(
            patterns.get(collector, {}),
            common,
            container_name=container_of(collector),
            volumes=[_mount(places.collector(instance))],
            environment=_collector_environment(effective, topology, instance, second),
            sysctls=_settable(effective, role),
            extra_hosts=_hosts(topology, second) if role == "k6" else {},
        )
        services[instance] = _merged(
            patterns.get(instance, {}),
            common,
            container_name=container_of(instance),
            volumes=[_mount(places.role(instance))],
            environment=_role_environment(effective, topology, instance),
        )
    return {"services": services, **_networks(topology, subnet, second)}


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
    # The engine is told of the addresses, so that it gives them to nobody else.
    config = {"subnet": str(subnet), "aux_addresses": _hosts(topology, second)}
    return {"networks": {"lab": {"ipam": {"config": [config]}}}}


def _mount(source: Path) -> dict[str, Any]:
    return {"type": "bind", "source": str(source), "target": "/raw", "bind": {"create_host_path": False}}


def _patterns(topology: Topology) -> dict[str, Any]:
    """Declare the k6 instances beyond the first as compose.yaml declares the first one."""
    further = topology.clients[1:]
    if not further:
        return {}
    declared = _declared(paths.COMPOSE_FILE)
    pattern = json.dumps({service: declared[service] for service in (collector_of(_K6_PATTERN), _K6_PATTERN)})
    services: dict[str, Any] = {}
    for instance in further:
        services |= json.loads(pattern.replace(_K6_PATTERN, instance))
    return services


@cache
def _declared(compose_file: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe", pure=True).load(compose_file.read_bytes())["services"])


def _merged(pattern: Mapping[str, Any], common: Mapping[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 # Compose's own keys
    merged = {**pattern, **common, **{key: value for key, value in more.items() if value}}
    if "environment" in pattern:
        merged["environment"] = {**pattern["environment"], **more["environment"]}
    return merged


def _collector_environment(
    effective: Effective, topology: Topology, instance: str, second: _Addresses
) -> dict[str, str]:
    knobs = effective.scenario.knobs
    addresses = {"CONNLAB_ADDRESSES": str(second[instance])} if instance in second else {}
    return addresses | {
        "CONNLAB_RATE_HZ": str(knobs.sampler.rate_hz),
        "CONNLAB_CAPTURE": capture_mode(effective, topology.role_of(instance)),
        "CONNLAB_CAPTURE_MAX_MB": str(knobs.capture.max_mb),
    }


def capture_mode(effective: Effective, role: RoleName) -> str:
    """Give what the collectors beside a role capture."""
    capture = effective.scenario.knobs.capture
    if role not in captures.expected(list(effective.scenario.path), capture.mode, capture.client):
        return "off"
    return capture.client if role == "k6" else capture.mode


def _role_environment(effective: Effective, topology: Topology, instance: str) -> dict[str, str]:
    knobs = effective.scenario.knobs
    role = topology.role_of(instance)
    if role == "k6":
        index = topology.clients.index(instance)
        segment, sequence = segments(len(topology.clients))[index]
        return environment(knobs, "load") | {
            "CONNLAB_TARGETS": " ".join(topology.targets),
            "CONNLAB_INSTANCE": instance,
            "CONNLAB_SEGMENT": segment,
            "CONNLAB_SEGMENT_SEQUENCE": sequence,
        }
    if role in PROXIES:
        backends = topology.instances.get("backend", [])
        return environment(knobs, role) | {
            "CONNLAB_UPSTREAMS": " ".join(f"{backend}:{TRAFFIC_PORT}" for backend in backends)
        }
    return environment(knobs, "backend")


def _settable(effective: Effective, role: RoleName) -> dict[str, str]:
    """Give the sysctls to set; one that this kernel lacks and behaves like anyway is left out."""
    asked = effective.scenario.knobs.kernel.get(role, {})
    return {name: value for name, value in asked.items() if sysctls.settable(name)}


def write_run_file(content: Mapping[str, Any], file: Path) -> None:
    """Write what a run adds, as YAML."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.representer.ignore_aliases = lambda _: True
    with file.open("w") as stream:
        yaml.dump(dict(content), stream)


def compose(run_file: Path, *arguments: str, timeout_s: float = 120) -> str:
    """Run `docker compose …` on the topology with a run's additions."""
    files = ("--file", str(paths.COMPOSE_FILE), "--file", str(run_file))
    return docker("compose", "--project-name", PROJECT, *files, *arguments, timeout_s=timeout_s)


def services_of(topology: Topology) -> list[str]:
    """Give every service of a run: the instances and their collectors."""
    return [service for instance in topology.all for service in (collector_of(instance), instance)]
