"""From nothing to containers that are ready, and what lies behind it if they are not."""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from lab.engines.compose import run_file
from lab.engines.compose.containers import State, container_name, container_states, last_words
from lab.engines.compose.docker import DockerFailed, docker
from lab.engines.protocol import Parts, Watch
from lab.engines.start_failures import ended_during_start, ipv6_hint, missing_listener, start_failure_hint, where_sysctl
from lab.errors import BadInput, LabError, Problem
from lab.scenarios.services import needed_by
from lab.scenarios.topology import collector_of

_WAIT_S = 300
# Compose has been seen to wait on and on beyond the time that it was given for services to be ready, and to end without
# an error when that time was over.
_LATE_S = 30
# What a role's container says where its collector, whose namespaces it joins, has ended.
_JOINED = "of a non running container"
# Which key of a service the engine's words are about.
_KEYS = {"unable to find": "user", "mount": "volumes", "exec": "command"}
_SYSCTL_FILE = re.compile(r"/proc/sys/(?P<path>net/[a-z0-9_/-]+): (?P<why>[a-z ]+)")
_ROUTES = Path("/proc/net/route")
# Set aside for measurements of networks (RFC 2544): nobody's hosts live there.
_RANGE = IPv4Network("198.18.0.0/15")
_PREFIX = 24
FIRST_SUBNET = next(_RANGE.subnets(new_prefix=_PREFIX))


def start(parts: Parts, watch: Watch, metrics: int | None = None) -> None:
    """Start everything and wait for it.

    Args:
        parts: of the run.
        watch: over their ends.
        metrics: the port on which each collector serves its current figures; None if none does.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: a container failed.
    """
    own, topology = parts.resolved.registry.services, parts.topology
    file = parts.places.run_dir / run_file.FILE_NAME
    subnet = find_free_subnet() if topology.second_names else FIRST_SUBNET
    content = run_file.build_run_file(
        *(parts.resolved, topology, parts.run_id, parts.places, subnet),
        metrics_port=metrics,
        certificates=parts.certificates,
    )
    run_file.write_run_file(content, file)
    # A generator begins its load when it is started: until then its container is only there.
    held = topology.generators
    everything = [one for one in run_file.services_of(topology) if one not in held]
    lasting = [one for one in everything if not (one in own and own[one].completes)]
    services = [one for instance in topology.all for one in (instance, collector_of(instance)) if one not in held]

    def up(*arguments: str, timeout_s: float) -> None:
        command = ("up", "--detach", "--no-build", "--pull", "never", *arguments)
        run_file.run_compose(file, *command, timeout_s=timeout_s, unless=lambda: any(map(watch.ended, services)))

    def refuse_ended() -> None:
        # To wait for one that has ended, Compose would start it again.
        if over := [one for one, state in container_states(services).items() if state.code is not None]:
            raise LabError(f"{', '.join(over)} ended")

    def wait_for(awaited: Sequence[str], ready_s: int) -> None:
        up("--wait", "--wait-timeout", str(ready_s), *awaited, timeout_s=ready_s + _LATE_S)
        asked = "{{if .State.Health}}{{.State.Health.Status}}{{end}}"
        said = docker("inspect", "--format", asked, *map(container_name, awaited)).splitlines()
        for service, health in zip(awaited, said, strict=False):
            if health == "starting":
                raise LabError(f"{service} was not ready within {ready_s} s")

    try:
        # In whole seconds, the unit of Compose's option.
        ready_s = {name: math.ceil(one.ready_within / 1000) for name, one in own.items()}
        if own:
            # Its time counts from here: its container runs, however long the machine took to start all of them.
            up(*everything, timeout_s=_WAIT_S + sum(ready_s.values()))
            refuse_ended()
        for role in filter(own.__contains__, topology.instances):
            awaited = (one for each in topology.instances[role] for one in (collector_of(each), each))
            wait_for([one for one in awaited if one not in held], ready_s[role])
        # What ends by itself has ended: the start of what depends on it waited for that.
        wait_for(lasting, _WAIT_S)
        _create(file, held)
    except LabError as error:
        raise _explain(error, parts, watch) from None


def _create(file: Path, held: Sequence[str]) -> None:
    """Make containers that are started later."""
    if held:
        run_file.run_compose(file, "create", "--no-build", "--pull", "never", *held, timeout_s=_WAIT_S)


def _explain(error: LabError, parts: Parts, watch: Watch) -> BadInput | LabError:
    """Return what lies behind a failed start: a sysctl that the kernel refused, or a container that ended."""
    refused = _SYSCTL_FILE.search(error.stderr) if isinstance(error, DockerFailed) else None
    if refused:
        name = refused["path"].replace("/", ".")
        where = where_sysctl(parts.resolved, name)
        return BadInput(Problem(f"the kernel refuses {name} in a role's namespace: {refused['why'].strip()}", where))
    of_path = (one for instance in parts.topology.all for one in (instance, collector_of(instance)))
    services = [*parts.topology.needed, *of_path]
    states: dict[str, State] = {}
    with contextlib.suppress(LabError, ValueError, KeyError):
        states = container_states(services)
    if not any(map(watch.ended, services)):
        # Compose may say so sooner than the engine tells the event.
        for service, state in states.items():
            if state.code is not None:
                watch.end(service, state.code, out_of_memory=state.out_of_memory)
    for service in services:
        error_ = states[service].error if service in states else ""
        # If a collector ends while its role joins its namespaces, the runtime's message does not say so.
        if error_ and _JOINED not in error_ and not watch.ended(collector_of(service)):
            return _cannot_start(parts, service, error_)
        if ended := watch.ended(service):
            name = _own(parts, service)
            where = parts.resolved.where("services", name) if name else None
            return ended_during_start(ended, last_words(service), where)
    return next(_not_ready(parts, states), error)


def _own(parts: Parts, service: str) -> str | None:
    """Return the service of the scenario's own that a container belongs to; None for one of the lab's."""
    instances = parts.topology.instances
    return next((one for one in parts.resolved.registry.services if service in instances.get(one, [one])), None)


def _cannot_start(parts: Parts, service: str, error: str) -> BadInput | LabError:
    """Return in the engine's words why a container cannot start."""
    what, name = f"{service} cannot start: {error}", _own(parts, service)
    if name is None:
        return LabError(what)
    key = next((key for words, key in _KEYS.items() if words in error), "")
    return BadInput(Problem(what, parts.resolved.where("services", name, key), start_failure_hint(error)))


def _not_ready(parts: Parts, states: Mapping[str, State]) -> Iterator[BadInput]:
    """Yield what each service of the scenario's own lacks that does not serve; what is needed first comes first."""
    own, topology = parts.resolved.registry.services, parts.topology
    on_path = needed_by(own, [role for role in topology.instances if role in own])
    for name in dict.fromkeys([*topology.needed, *on_path]):
        for instance in topology.instances.get(name, [name]):
            if instance in states and not states[instance].running:
                continue
            with contextlib.suppress(LabError, ValueError, KeyError):
                lacks, hint = None, None
                if name in topology.instances:
                    port, found = topology.port_of(instance), _listeners(instance)
                    lacks = missing_listener(instance, port, found)
                    # Without a page, nothing but a connection was asked for.
                    if str(topology.roles[name].ready).startswith("tcp://"):
                        hint = ipv6_hint(port, found)
                key = "port" if lacks else "ready"
                if lacks := lacks or _lacks_readiness(parts, name, instance):
                    what = f"{lacks}{last_words(instance)}"
                    yield BadInput(Problem(what, parts.resolved.where("services", name, key), hint))


def _listeners(instance: str) -> list[dict[str, Any]]:
    """Return what listens in an instance's namespace."""
    said = docker("exec", container_name(collector_of(instance)), "collector", "inspect")
    listeners: list[dict[str, Any]] = json.loads(said)["listeners"]
    return listeners


def _lacks_readiness(parts: Parts, name: str, instance: str) -> str | None:
    """Return what was asked of an instance and not answered; None where it is ready, or nobody asks."""
    ready, topology = parts.resolved.registry.services[name].ready, parts.topology
    on_path = name in topology.instances
    if not isinstance(ready, list) and not on_path:
        return None
    asked = container_name(instance if isinstance(ready, list) else collector_of(instance))
    if docker("inspect", "--format", "{{.State.Health.Status}}", asked).strip() == "healthy":
        return None
    runs = f"{instance} listens on port {topology.port_of(instance)}" if on_path else f"{instance} runs"
    if isinstance(ready, list):
        return f"{runs}, and its command '{' '.join(ready)}' does not end with 0"
    asked_for = str(topology.roles[name].ready)
    if asked_for.startswith("tcp://"):
        return f"{runs}, and takes no connection to {asked_for.removeprefix('tcp://')}"
    return f"{runs}, and {asked_for} does not answer 200"


def find_free_subnet() -> IPv4Network:
    """Return a subnet of 254 hosts that overlaps no route of this host and no network of the engine's.

    Raises:
        LabError: there is none, or no engine answers.
    """
    taken = [*_routes(), *_networks()]
    for subnet in _RANGE.subnets(new_prefix=_PREFIX):
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    raise LabError(
        f"no subnet of {_RANGE} is free for the run's network",
        hint="remove networks that are not needed: 'docker network prune'",
    )


def _routes() -> Iterator[IPv4Network]:
    """Yield the destinations of the host's routes but the default one; the kernel prints little-endian words."""
    if not _ROUTES.is_file():
        return
    for line in _ROUTES.read_text().splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[index]), "little") for index in (1, 7))
        if mask:
            yield IPv4Network((destination & mask, mask.bit_count()))


def _networks() -> Iterator[IPv4Network]:
    names = docker("network", "ls", "--quiet").split()
    if not names:
        return
    for line in docker("network", "inspect", "--format", "{{json .IPAM.Config}}", *names).splitlines():
        for one in json.loads(line) or []:
            if ":" not in one.get("Subnet", ":"):
                yield IPv4Network(one["Subnet"])
