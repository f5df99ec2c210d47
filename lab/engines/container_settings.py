"""What every engine gives a container of a run: user, limits, deadline, environment and sysctls.

The memory is far above what a run needs, for a limit that is met ends the run; it keeps a program that has gone wrong
from taking the machine with it. A process that dies of SIGKILL stops nothing: so every container ends by itself.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from formats.knob_types import spoken
from formats.manifest import PORT_RANGE
from formats.role import passes_on
from lab.errors import Problem
from lab.scenarios import certificates as certificates_file
from lab.scenarios import own_configuration, own_script, sysctls
from lab.scenarios.client_addresses import ENABLED, Interface
from lab.scenarios.knobs import RoleName, environment
from lab.scenarios.load_url import PLAIN_WORKLOADS
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, capture_mode, connections_of_load, memory_mb, segments

ROOT = 0
# The user `connlab` of the roles' images.
ROLE_UID = 10001

# Programs were seen to take half as much again as their role.yaml says; what they wrote stays in the page cache.
_MEMORY_FACTOR = 2
_LEAST_MB = 2048
# A script's users are not known before k6 has read it.
_USERS_OF_SCRIPT = 10_000
# Threads count as processes: those of a JVM or of Go, besides the ones that a knob asks for.
_PROCESSES = 4096
# What the lab itself waits for at most beside the load: start, warm-up, and the end of each container.
_BESIDES_S = 1800
# Of the roles' management; collector/internal/management has them too.
_MANAGEMENT_PORTS = (6565, 8081)
_UNPRIVILEGED, _PRIVILEGED = "net.ipv4.ip_unprivileged_port_start", 1024
NO_CERTIFICATES: Mapping[str, str] = MappingProxyType({})


def supplementary_groups() -> list[str]:
    """Return the groups that the containers have to be in to write to their folders."""
    return [] if os.geteuid() == ROOT else [str(os.getegid())]


@dataclass(frozen=True)
class ContainerLimits:
    """What a container may take at most."""

    memory_mb: int
    processes: int


def limits_for_instance(resolved: ResolvedScenario, topology: Topology, instance: str) -> ContainerLimits:
    """Return the limits of an instance's container."""
    name = topology.role_of(instance)
    role = topology.roles[name]
    of_script = resolved.scenario.knobs.load.workload == "script"
    users = _USERS_OF_SCRIPT if of_script else connections_of_load(resolved)[0]
    needed_mb = memory_mb(resolved, topology, name, users) // len(topology.instances[name])
    threads = resolved.number(role.knob(role.limits.threads)) if role.limits.threads else 0
    # The stack of a thread is a mebibyte at most.
    return ContainerLimits(max(_MEMORY_FACTOR * needed_mb + threads, _LEAST_MB), _PROCESSES + threads)


def limits_for_needed(memory_mb: int) -> ContainerLimits:
    """Return the limits of a service that is not on the path."""
    return ContainerLimits(max(_MEMORY_FACTOR * memory_mb, _LEAST_MB), _PROCESSES)


# Of a collector, or of what holds a namespace; and of a container that is no part of a run.
COLLECTOR_LIMITS = ContainerLimits(_LEAST_MB, 256)
ONE_OFF_LIMITS = ContainerLimits(_LEAST_MB, _PROCESSES)


def compute_deadline_s(resolved: ResolvedScenario) -> int:
    """Return the seconds after which every container of a run ends itself: no run of the lab takes so long."""
    scenario = resolved.scenario
    ready = sum(one.ready_within for one in resolved.registry.services.values())
    load_ms: int = scenario.knobs.load.max_duration
    return (load_ms + scenario.drain + ready) // 1000 + _BESIDES_S


def collector_environment(
    resolved: ResolvedScenario,
    topology: Topology,
    instance: str,
    run_id: str,
    *,
    addresses: Sequence[Interface] = (),
    metrics_port: int | None = None,
    apart: bool = False,
) -> dict[str, str]:
    """Return the environment of an instance's collector.

    Args:
        resolved: what is run.
        topology: its instances.
        instance: which.
        run_id: of the run.
        addresses: that the instance has beside the engine's.
        metrics_port: where the collector serves its current figures; None if it does not.
        apart: whether instances may be on several machines.
    """
    knobs, name = resolved.scenario.knobs, topology.role_of(instance)
    role = topology.roles[name]
    scrapes = " ".join(f"{name}={page.url}" for name, page in role.scrape.items())
    asked = topology.names_asked(name)
    return {
        "CONNLAB_ROLE": instance,
        "CONNLAB_RATE_HZ": str(knobs.sampler.rate_hz),
        "CONNLAB_CAPTURE": capture_mode(resolved, name, apart=apart),
        "CONNLAB_CAPTURE_MAX_MB": str(knobs.capture.max_mb),
        **({"CONNLAB_EVENTS": knobs.capture.events} if knobs.capture.events != "off" else {}),
        "CONNLAB_DEADLINE_S": str(compute_deadline_s(resolved)),
        **({"CONNLAB_READY_URL": role.ready} if role.ready else {}),
        **({"CONNLAB_SCRAPE": scrapes} if scrapes else {}),
        **({"CONNLAB_NAMES": " ".join(f"{name}={to}" for name, to in asked.items())} if asked else {}),
        **({"CONNLAB_ADDRESSES": " ".join(map(str, addresses))} if addresses else {}),
        **({"CONNLAB_METRICS": f"0.0.0.0:{metrics_port}"} if metrics_port else {}),
        **({"CONNLAB_METRICS_LABELS": f"run={run_id} role={name}"} if metrics_port else {}),
    }


def role_environment(
    resolved: ResolvedScenario, topology: Topology, instance: str, certificates: Mapping[str, str] = NO_CERTIFICATES
) -> dict[str, str]:
    """Return the environment of an instance of one of the lab's own roles; `certificates` are those of a run."""
    found = _role_environment(resolved, topology, instance)
    return found | ({certificates_file.VARIABLE: certificates[instance]} if instance in certificates else {})


def _role_environment(resolved: ResolvedScenario, topology: Topology, instance: str) -> dict[str, str]:
    role = topology.role_of(instance)
    knobs = environment(resolved.scenario.knobs, topology.roles[role].group)
    trusts = certificates_file.trusts_ca(resolved, topology, instance)
    if instance in topology.clients:
        secured = topology.targets[0].startswith("https")
        segment, sequence = segments(len(topology.clients))[topology.clients.index(instance)]
        script = own_script.find_script(resolved, topology)
        return {**(script.settings() if script else {}), **knobs} | {
            "CONNLAB_TARGETS": _targets(resolved, topology),
            "CONNLAB_INSTANCE": instance,
            "CONNLAB_SEGMENT": segment,
            "CONNLAB_SEGMENT_SEQUENCE": sequence,
            # k6's own name: a certificate that is not of the run's CA has been signed by nobody for the lab's network.
            **({"K6_INSECURE_SKIP_TLS_VERIFY": "true"} if secured and not trusts else {}),
        }
    knobs |= _variables_of_actions(resolved, topology, instance)
    if configuration := own_configuration.find_configuration(resolved, topology, role):
        return configuration.settings() | _variables_of_actions(resolved, topology, instance)
    if passes_on(topology.roles[role]):
        behind = {"CONNLAB_UPSTREAMS": " ".join(topology.behind(role))}
        following = topology.following(role)
        if following and topology.roles[following].tls:
            # The name that the certificate must have; `any` where the run's CA has not signed it.
            behind["CONNLAB_UPSTREAM_TLS"] = following if trusts else "any"
        return knobs | behind
    return knobs


def _variables_of_actions(resolved: ResolvedScenario, topology: Topology, instance: str) -> dict[str, str]:
    """Return what a program must know from its start on of what the lab will do to it."""
    role, found = topology.roles[topology.role_of(instance)], {}
    for action in resolved.scenario.actions:
        if action.instance == instance and action.do == "reload" and role.reload and role.reload.variable:
            found[role.reload.variable] = "true"
        if action.instance == instance and action.grace is not None and role.grace:
            found[role.grace] = f"{action.grace}ms"
    return found


def _targets(resolved: ResolvedScenario, topology: Topology) -> str:
    url = topology.url
    if url is not None and resolved.scenario.knobs.load.workload in PLAIN_WORKLOADS:
        # They dial themselves, and know no port of a scheme.
        return f"http://{url.quoted_host}:{url.port}"
    return " ".join(topology.targets)


def settable_sysctls(resolved: ResolvedScenario, role: RoleName) -> dict[str, str]:
    """Return the sysctls to set; one that this kernel lacks and behaves like anyway is left out."""
    own = resolved.registry.services.get(role)
    of_service = {name: spoken(value) for name, value in own.sysctls.items() if is_net(name)} if own else {}
    asked = {**of_service, **resolved.scenario.knobs.kernel.get(role, {})}
    if role in resolved.entries and resolved.entries[role].port < _PRIVILEGED:
        # A server of the lab's runs as an unprivileged user.
        asked = {_UNPRIVILEGED: "0", **asked}
    if resolved.ip_family == "ipv6" and (role == resolved.first_server or resolved.roles[role].kind == "client"):
        asked = {**ENABLED, **asked}
    return {name: value for name, value in asked.items() if sysctls.settable(name)}


def is_net(sysctl: str) -> bool:
    """Return whether a sysctl is of the network namespace, which the collector holds."""
    return sysctl.startswith("net.")


def check_metrics_port(resolved: ResolvedScenario, topology: Topology, port: int | None) -> Iterator[Problem]:
    """Yield what uses the port of the metrics already, or would find one port fewer for it."""
    if port is None:
        return
    other = "name another one by --metrics-port"
    if port in _MANAGEMENT_PORTS:
        yield Problem(f"--metrics-port {port} is the port of a role's management", hint=other)
    clients = {topology.role_of(one) for one in topology.clients}
    for role in topology.instances:
        if role not in clients and topology.roles[role].port == port:
            yield Problem(f"--metrics-port {port} is the port on which {role} takes its traffic", hint=other)
        low, _, high = resolved.scenario.knobs.kernel.get(role, {}).get(PORT_RANGE, "").partition(" ")
        if low.isdecimal() and high.isdecimal() and int(low) <= port <= int(high):
            what = f"--metrics-port {port} would take one of the ports that {role} connects from"
            yield Problem(what, resolved.where_knob(f"kernel.{role}.{PORT_RANGE}"), other)
