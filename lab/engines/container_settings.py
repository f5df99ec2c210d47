"""What an engine tells the programs of a run: their environments, and the sysctls of their namespaces."""

from __future__ import annotations

from ipaddress import IPv4Interface

from lab.engines import bounds
from lab.scenarios import own_configuration, own_script, sysctls
from lab.scenarios.knobs import RoleName, environment
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, capture_mode, segments


def collector_environment(
    effective: ResolvedScenario,
    topology: Topology,
    instance: str,
    second: IPv4Interface | None = None,
    *,
    apart: bool = False,
) -> dict[str, str]:
    """Give the environment of an instance's collector.

    Args:
        effective: what is run.
        topology: its instances.
        instance: which.
        second: the instance's second address, if it has one.
        apart: whether instances may be on several machines.
    """
    knobs, role = effective.scenario.knobs, topology.roles[topology.role_of(instance)]
    scrapes = " ".join(f"{name}={page.url}" for name, page in role.scrape.items())
    return {
        "CONNLAB_ROLE": instance,
        "CONNLAB_RATE_HZ": str(knobs.sampler.rate_hz),
        "CONNLAB_CAPTURE": capture_mode(effective, topology.role_of(instance), apart=apart),
        "CONNLAB_CAPTURE_MAX_MB": str(knobs.capture.max_mb),
        "CONNLAB_DEADLINE_S": str(bounds.compute_deadline_s(effective)),
        **({"CONNLAB_READY_URL": role.ready} if role.ready else {}),
        **({"CONNLAB_SCRAPE": scrapes} if scrapes else {}),
        **({"CONNLAB_ADDRESSES": str(second)} if second else {}),
    }


def role_environment(effective: ResolvedScenario, topology: Topology, instance: str) -> dict[str, str]:
    """Give the environment of an instance of one of the lab's own roles."""
    role = topology.role_of(instance)
    knobs = environment(effective.scenario.knobs, topology.roles[role].group)
    if instance in topology.clients:
        segment, sequence = segments(len(topology.clients))[topology.clients.index(instance)]
        script = own_script.find_script(effective, topology)
        return {**(script.settings() if script else {}), **knobs} | {
            "CONNLAB_TARGETS": " ".join(topology.targets),
            "CONNLAB_INSTANCE": instance,
            "CONNLAB_SEGMENT": segment,
            "CONNLAB_SEGMENT_SEQUENCE": sequence,
            # k6's own name: a service's certificate is its own, and nobody has signed it for the lab's network.
            **({"K6_INSECURE_SKIP_TLS_VERIFY": "true"} if topology.targets[0].startswith("https") else {}),
        }
    if configuration := own_configuration.find_configuration(effective, topology, role):
        return configuration.settings()
    if topology.roles[role].kind == "proxy":
        return knobs | {"CONNLAB_UPSTREAMS": " ".join(topology.behind(role))}
    return knobs


def settable_sysctls(effective: ResolvedScenario, role: RoleName) -> dict[str, str]:
    """Give the sysctls to set; one that this kernel lacks and behaves like anyway is left out."""
    asked = effective.scenario.knobs.kernel.get(role, {})
    return {name: value for name, value in asked.items() if sysctls.settable(name)}
