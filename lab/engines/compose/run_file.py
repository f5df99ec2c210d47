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
from lab.engines.container_settings import (
    COLLECTOR_LIMITS,
    NO_CERTIFICATES,
    ROLE_UID,
    ContainerLimits,
    collector_environment,
    compute_deadline_s,
    limits_for_instance,
    limits_for_needed,
    settable_sysctls,
    supplementary_groups,
)
from lab.engines.protocol import event_capabilities
from lab.engines.role_containers import Mount, RoleContainer, container_of_instance, container_of_service
from lab.scenarios.client_addresses import client_addresses
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Service, split_volume
from lab.scenarios.topology import Topology, collector_of

FILE_NAME = "compose.run.yaml"
# The profile that keeps what a run extends out of the stack; what extends it has it too.
_PROFILE = "run"
# What a service declares as Compose has it.
_AS_THEY_ARE = ("entrypoint", "init", "tty", "stdin_open", "shm_size", "ulimits", "stop_signal")
# The most that the kernel knows: 256 times the usual.
_CPU_SHARES = 262_144
# Where a role asks that knows its servers by names which may move.
_RESOLVER = Path(__file__).with_name("resolv.conf")
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
            # It asks the service until that is ready: it starts before what the service needs.
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
        on_collector |= _rights(
            environment,
            has_link=bool(resolved.scenario.network.get(role)),
            has_filter=any(one.do == "filter" and one.instance == instance for one in resolved.scenario.actions),
        )
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
        made = container_of_instance(resolved, topology, instance, certificates)
        fields = _role_fields(made, resolved, topology, places.role(instance))
        fields["volumes"] += _resolvers(topology, role)
        add("service" if role in own else role, instance, limits, **groups, **joined, **fields)
    for name in topology.needed:
        # A program of somebody else's knows no deadline. It gets that of the container whose processes it joins.
        add("holder", holder_of(name), COLLECTOR_LIMITS, command=["hold", "--for", deadline])
        joined = {"pid": f"service:{holder_of(name)}"}
        limits = limits_for_needed(own[name].memory_mb)
        fields = _role_fields(container_of_service(resolved, topology, name), resolved, topology, Path())
        if own[name].extra_hosts:
            fields["extra_hosts"] = dict(own[name].extra_hosts)
        add("service", name, limits, networks={"lab": {"aliases": list(own[name].aliases)}}, **joined, **fields)
    # No way out and no way in: the load stays on this network.
    network: dict[str, Any] = {"internal": True, **label}
    if second:
        # Reserve the addresses, so that the engine gives them to no other container.
        network["ipam"] = {"config": [{"subnet": str(subnet), "aux_addresses": hosts}]}
    declared = [own[name] for name in (*topology.instances, *topology.needed) if name in own]
    named = {split_volume(volume)[0] for service in declared for volume in service.volumes}
    return {
        "services": services,
        "networks": {"lab": network},
        "volumes": {name: label for name in sorted(named) if name and not name.startswith(".")},
        "configs": {
            _name_file(target, content): {"content": content}
            for service in declared
            for target, content in service.files.items()
        },
    }


def _rights(environment: Mapping[str, str], *, has_link: bool, has_filter: bool) -> dict[str, Any]:
    """Return what a collector may do beyond what all do: record events, make links and filters, add addresses."""
    more = [*event_capabilities(environment)]
    if has_link or has_filter or environment.get("CONNLAB_ADDRESSES"):
        more.append("NET_ADMIN")
    rights: dict[str, Any] = {"cap_add": list(dict.fromkeys(more))} if more else {}
    # Where it holds the packets itself, nothing else on the machine is to delay them.
    return rights | ({"cpu_shares": _CPU_SHARES} if has_link else {})


def _resolvers(topology: Topology, role: str) -> list[dict[str, Any]]:
    """Return the mount that makes a role ask its collector, the name server, for names that may move."""
    return [bind_mount(_RESOLVER, "/etc/resolv.conf", read_only=True)] if topology.names_asked(role) else []


def _role_fields(made: RoleContainer, resolved: ResolvedScenario, topology: Topology, raw: Path) -> dict[str, Any]:
    """Return what a run sets of a container; `raw` is where its raw files go."""
    service = made.service
    owner = f",uid={ROLE_UID}" if service is None else ""
    fields: dict[str, Any] = {
        "environment": dict(made.environment),
        "volumes": [_volume(mount, raw) for mount in made.mounts],
        **({"image": made.image} if made.image else {}),
    }
    if made.writable or service:
        fields["tmpfs"] = [f"{folder}:mode=1777{owner}" for folder in made.writable]
    if made.image and service is None and made.made_here:
        # The image may check its health by a program that it needs its own entry point for. The collector asks.
        check = {"test": ["CMD", "/connlab/bin/busybox", "true"], "start_period": "30s"}
        fields["healthcheck"] = _HEALTH | check
    if service:
        fields |= _service_fields(made, service)
    ready = {
        collector_of(instance): {"condition": "service_healthy"}
        for role in made.after_listeners
        for instance in topology.instances[role]
    }
    if waits := _waits(resolved, topology, made.after) | ready:
        fields["depends_on"] = waits
    return fields


def _volume(mount: Mount, raw: Path) -> dict[str, Any]:
    if mount.kind == "raw":
        return bind_mount(raw, mount.target)
    if mount.kind == "host":
        return bind_mount(mount.source, mount.target, read_only=True)
    named = {"source": mount.volume} if mount.volume else {}
    return {"type": "volume", "target": mount.target, "read_only": mount.read_only, **named}


def _service_fields(made: RoleContainer, service: Service) -> dict[str, Any]:
    """Return what a service of the scenario's own sets, and each loosening that it asks for."""
    fields = {key: value for key in _AS_THEY_ARE if (value := getattr(service, key))}
    if made.files:
        fields["configs"] = [
            {"source": _name_file(target, content), "target": target, "mode": 0o444}
            for target, content in made.files.items()
        ]
    if made.user is not None:
        fields["user"] = made.user
    if service.capabilities:
        fields["cap_add"] = list(service.capabilities)
    if not service.read_only:
        fields["read_only"] = False
    if made.sysctls:
        fields["sysctls"] = dict(made.sysctls)
    if made.working_dir:
        fields["working_dir"] = made.working_dir
    if made.arguments is not None:
        fields["command"] = list(made.arguments)
    if isinstance(service.ready, list) and service.ready:
        test = {"test": ["CMD", *service.ready], "start_period": f"{service.ready_within}ms"}
        fields["healthcheck"] = _HEALTH | test
    return fields


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
