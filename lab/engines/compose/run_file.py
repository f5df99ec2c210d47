"""The Compose side of a run: its own file, whose services extend those of compose.yaml, and `docker compose` itself."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from analysis.evidence.rawfiles import Places
from lab import paths
from lab.engines.compose.containers import PROJECT, RUN_LABEL, container_name
from lab.engines.compose.docker import docker
from lab.engines.compose.images import image_of_service
from lab.engines.container_settings import (
    COLLECTOR_LIMITS,
    NO_CERTIFICATES,
    ROLE_UID,
    ContainerLimits,
    collector_environment,
    compute_deadline_s,
    is_net,
    limits_for_instance,
    limits_for_needed,
    role_environment,
    settable_sysctls,
    supplementary_groups,
)
from lab.engines.protocol import event_capabilities
from lab.scenarios import generators, own_configuration, own_script
from lab.scenarios.client_addresses import client_addresses
from lab.scenarios.knobs import environment
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Service, needed_by, split_volume, spoken
from lab.scenarios.topology import Topology, collector_of

FILE_NAME = "compose.run.yaml"
# The profile that keeps what a run extends out of the stack; what extends it has it too.
_PROFILE = "run"
# What a service declares as Compose has it.
_AS_THEY_ARE = ("entrypoint", "working_dir", "init", "tty", "stdin_open", "shm_size", "ulimits", "stop_signal")
# The most that the kernel knows: 256 times the usual.
_CPU_SHARES = 262_144
# A check that fails as the start period ends does not count, and the engine waits for the interval before the next one.
_HEALTH = {"interval": "1m", "timeout": "5s", "retries": 1, "start_interval": "250ms"}


def build_run_file(
    resolved: ResolvedScenario,
    topology: Topology,
    run_id: str,
    places: Places,
    subnet: IPv4Network,
    *,
    metrics_port: int | None = None,
    certificates: Mapping[str, str] = NO_CERTIFICATES,
) -> dict[str, Any]:
    """Return a run's file: what this run changes of the services in compose.yaml.

    That is, for each instance, its collector and each service of the scenario's own: settings, limits, sysctls of its
    namespace, the folder of its raw files, and second addresses.

    Args:
        resolved: what is run.
        topology: its instances.
        run_id: what the containers are labelled with.
        places: of the raw files.
        subnet: of the network, where instances have a second address; else the engine chooses one.
        metrics_port: where each collector serves its current figures; None if none does.
        certificates: what each instance gets of them.
    """
    services: dict[str, Any] = {}
    label = {"labels": {RUN_LABEL: run_id}}

    def add(extends: str, service: str, limits: ContainerLimits, **fields: object) -> None:
        services[service] = {
            "extends": {"file": str(paths.COMPOSE_FILE), "service": f"run-{extends}"},
            **label,
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
    of_clients = client_addresses(resolved, topology)
    names = of_clients.lines() or [f"{name}={address}" for name, address in hosts.items()]
    own = resolved.registry.services
    groups: dict[str, Any] = {"group_add": found} if (found := supplementary_groups()) else {}
    deadline = f"{compute_deadline_s(resolved)}s"
    for instance in topology.all:
        role, collector = topology.role_of(instance), collector_of(instance)
        is_client = instance in topology.clients
        on_collector: dict[str, Any] = {}
        if role in own:
            # It asks a service as long as that lives: it starts before what the service needs.
            on_collector["healthcheck"] = {"start_period": deadline}
            # Who shares its network namespace shares its table of hosts.
            if own[role].extra_hosts:
                on_collector["extra_hosts"] = dict(own[role].extra_hosts)
        if is_client:
            # One question at a time: a client with a single port has none for a second one.
            on_collector |= {"dns_opt": ["single-request"]} | ({"extra_hosts": names} if names else {})
        if sysctls := settable_sysctls(resolved, role):
            on_collector["sysctls"] = sysctls
        environment = collector_environment(
            *(resolved, topology, instance, run_id),
            addresses=[*filter(None, [second.get(instance)]), *of_clients.of_instances.get(instance, [])],
            metrics_port=metrics_port,
        )
        on_collector |= _rights(environment, has_link=bool(resolved.scenario.network.get(role)))
        add(
            "collector",
            collector,
            COLLECTOR_LIMITS,
            **groups,
            networks={"lab": {"aliases": topology.host_names(instance)}},
            # A container has its own raw files and no other's.
            volumes=[bind_mount(places.collector(instance), "/raw")],
            environment=environment,
            **on_collector,
        )
        joined = {"network_mode": f"service:{collector}", "pid": f"service:{collector}"}
        limits = limits_for_instance(resolved, topology, instance)
        fields = _role_fields(resolved, topology, instance, places, certificates)
        add("service" if role in own else role, instance, limits, **groups, **joined, **fields)
    for name in topology.needed:
        # A program of somebody else's knows no deadline. It gets that of the container whose processes it joins.
        add("holder", holder_of(name), COLLECTOR_LIMITS, command=["hold", "--for", deadline])
        joined = {"pid": f"service:{holder_of(name)}"}
        limits = limits_for_needed(own[name].memory_mb)
        fields = service_fields(resolved, topology, name)
        if own[name].extra_hosts:
            fields["extra_hosts"] = dict(own[name].extra_hosts)
        add("service", name, limits, networks={"lab": {"aliases": list(own[name].aliases)}}, **joined, **fields)
    # No way out and no way in: the load stays on this network.
    network: dict[str, Any] = {"internal": True, **label}
    if second:
        # Reserve the addresses, so that the engine gives them to no other container.
        network["ipam"] = {"config": [{"subnet": str(subnet), "aux_addresses": hosts}]}
    made = [own[name] for name in (*topology.instances, *topology.needed) if name in own]
    named = {split_volume(volume)[0] for service in made for volume in service.volumes}
    return {
        "services": services,
        "networks": {"lab": network},
        "volumes": {name: label for name in sorted(named) if name and not name.startswith(".")},
        "configs": {
            _name_file(target, content): {"content": content}
            for service in made
            for target, content in service.files.items()
        },
    }


def _rights(environment: Mapping[str, str], *, has_link: bool) -> dict[str, Any]:
    """Return what a collector may do beyond what all do: record the kernel's events, make links, add addresses."""
    more = [*event_capabilities(environment)]
    if has_link or environment.get("CONNLAB_ADDRESSES"):
        more.append("NET_ADMIN")
    rights: dict[str, Any] = {"cap_add": list(dict.fromkeys(more))} if more else {}
    # Where it holds the packets itself, nothing else on the machine is to delay them.
    return rights | ({"cpu_shares": _CPU_SHARES} if has_link else {})


def _role_fields(
    resolved: ResolvedScenario, topology: Topology, instance: str, places: Places, certificates: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a run sets of an instance."""
    role = topology.role_of(instance)
    fields: dict[str, Any] = {
        "volumes": [bind_mount(places.role(instance), "/raw")],
        "environment": role_environment(resolved, topology, instance, certificates),
    }
    if instance in topology.clients and (script := own_script.find_script(resolved, topology)):
        fields["volumes"] += [bind_mount(*mount, read_only=True) for mount in script.mounts().items()]
        fields |= {"image": script.image} if script.image else {}
    if role in resolved.registry.services:
        raw = fields["volumes"]
        fields |= service_fields(resolved, topology, role)
        if instance in topology.clients:
            home = bind_mount(paths.real(resolved.place.home), generators.FOLDER, read_only=True)
            fields |= {"working_dir": generators.FOLDER, "volumes": [*raw, home]}
            fields["command"] = [topology.fill_in(word) for word in fields.get("command", [])]
            fields["environment"] = {name: topology.fill_in(one) for name, one in fields["environment"].items()}
        fields["environment"] |= environment(resolved.scenario.knobs, role, resolved.registry.knobs)
        if (log := resolved.registry.services[role].log) and not log.stdout:
            fields["volumes"].append(bind_mount(places.role(instance), log.folder))
    if own := own_configuration.find_configuration(resolved, topology, role):
        fields["volumes"].append(bind_mount(own.folder, own_configuration.MOUNTED, read_only=True))
        fields["tmpfs"] = [f"{folder}:mode=1777,uid={ROLE_UID}" for folder in own.declared.writable]
        if own.image:
            # The image may check its health by a program that it needs its own entry point for. The collector asks.
            check = {"test": ["CMD", "/connlab/bin/busybox", "true"], "start_period": "30s"}
            fields |= {"image": own.image.made, "healthcheck": _HEALTH | check}
        # It asks for the addresses of all hosts that it names, once, at its start.
        led_to = [name for name in resolved.scenario.configurations[role].hosts.values() if name in topology.needed]
        # Its health checks may leave a server out for minutes that does not answer the first one.
        roles = list(topology.instances)
        behind = [one for each in roles[roles.index(role) + 1 :][:1] for one in topology.instances[each]]
        ready = {collector_of(one): {"condition": "service_healthy"} for one in behind}
        if waits := _waits(resolved, topology, led_to) | ready:
            fields["depends_on"] = waits
    return fields


def service_fields(resolved: ResolvedScenario, topology: Topology, name: str) -> dict[str, Any]:
    """Return what a service of the scenario's own sets: its image, and each loosening it asks for."""
    own, place = resolved.registry.services, resolved.place
    service = own[name]
    fields: dict[str, Any] = {
        "image": image_of_service(service, name, place),
        "environment": {key: spoken(value) for key, value in service.environment.items()},
        "tmpfs": [f"{folder}:mode=1777" for folder in service.writable],
        "volumes": [],
    }
    for source, target, mode in map(split_volume, service.volumes):
        if source.startswith("."):
            fields["volumes"].append(bind_mount(paths.real(place.home / source), target, read_only=True))
        else:
            volume = {"source": source} if source else {}
            fields["volumes"].append({"type": "volume", "target": target, "read_only": mode == "ro", **volume})
    if service.files:
        fields["configs"] = [
            {"source": _name_file(target, content), "target": target, "mode": 0o444}
            for target, content in service.files.items()
        ]
    if service.user != "image":
        fields["user"] = service.user or f"{ROLE_UID}:{ROLE_UID}"
    if service.capabilities:
        fields["cap_add"] = list(service.capabilities)
    if not service.read_only:
        fields["read_only"] = False
    on_path = name in topology.instances
    if sysctls := {key: spoken(value) for key, value in service.sysctls.items() if not (on_path and is_net(key))}:
        fields["sysctls"] = sysctls
    fields |= {key: value for key in _AS_THEY_ARE if (value := getattr(service, key))}
    if service.command is not None:
        fields["command"] = list(service.command)
    if isinstance(service.ready, list) and service.ready:
        test = {"test": ["CMD", *service.ready], "start_period": f"{service.ready_within}ms"}
        fields["healthcheck"] = _HEALTH | test
    waits = _waits(resolved, topology, [*service.depends_on, *_following(resolved, topology, name)])
    return fields | ({"depends_on": waits} if waits else {})


def _following(resolved: ResolvedScenario, topology: Topology, name: str) -> list[str]:
    """Return the role behind a service on the path, whose names many a program asks for once, at its start."""
    own, roles = resolved.registry.services, list(topology.instances)
    behind = roles[roles.index(name) + 1 :][:1] if name in roles and topology.roles[name].kind != "client" else []
    return [one for one in behind if name not in needed_by(own, [one])]


def _waits(resolved: ResolvedScenario, topology: Topology, names: Sequence[str]) -> dict[str, Any]:
    """Return what a service waits for before it starts."""
    own = resolved.registry.services
    return {
        instance: {"condition": _condition(own[name])}
        for name in names
        if name in own
        for instance in topology.instances.get(name, [name])
    } | {
        # The collector of one of the lab's roles is healthy once that is ready.
        collector_of(instance): {"condition": "service_healthy"}
        for name in names
        if name not in own
        for instance in topology.instances[name]
    }


def _condition(service: Service) -> str:
    if service.completes:
        return "service_completed_successfully"
    return "service_healthy" if isinstance(service.ready, list) else "service_started"


def _name_file(target: str, content: str) -> str:
    """Name a file that the run's own file has the content of."""
    return f"file-{hashlib.sha256(f'{target}:{content}'.encode()).hexdigest()[:12]}"


def bind_mount(source: Path, target: str | Path, *, read_only: bool = False) -> dict[str, Any]:
    """Return a folder or a file of the host as a volume of a service; one that is not there is an error."""
    access = {"read_only": True} if read_only else {}
    return {"type": "bind", "source": str(source), "target": str(target), **access, "bind": {"create_host_path": False}}


def write_run_file(content: Mapping[str, Any], file: Path) -> None:
    """Write a run's file, so that Compose reads exactly that.

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
    """Run `docker compose …` on a run's file; `unless` is that of docker.docker."""
    options = ("--project-name", PROJECT, "--profile", _PROFILE, "--file", str(file))
    return docker("compose", *options, *arguments, timeout_s=timeout_s, unless=unless)


def holder_of(needed: str) -> str:
    """Name what holds the processes of a service that is not on the path."""
    return f"holder-{needed}"


def services_of(topology: Topology) -> list[str]:
    """Return every service of a run: what is needed beside the path, the instances and their collectors."""
    needed = [service for name in topology.needed for service in (holder_of(name), name)]
    return [*needed, *(service for instance in topology.all for service in (collector_of(instance), instance))]
