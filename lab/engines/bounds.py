"""What a container of the lab may take of the machine, and for how long, whatever becomes of the lab.

The memory is far above what a run needs, for a limit that is met ends the run; it keeps a program that has gone wrong
from taking the machine with it. A process that dies of SIGKILL stops nothing: so every container ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, connections_of_load, memory_mb

# Programs were seen to take half as much again as their role.yaml says; what they wrote stays in the page cache.
_TIMES = 2
_LEAST_MB = 2048
# A script's users are not known before k6 has read it.
_USERS_OF_SCRIPT = 10_000
_COLLECTOR_PROCESSES = 256
# Threads count as processes: those of a JVM or of Go, besides the ones that a knob asks for.
_PROCESSES = 4096
# What the lab itself waits for at most beside the load: start, warm-up, and the end of each container.
_BESIDES_S = 1800


@dataclass(frozen=True)
class ContainerLimits:
    """What a container may take at most."""

    memory_mb: int
    processes: int


def limits_for_instance(effective: ResolvedScenario, topology: Topology, instance: str) -> ContainerLimits:
    """Give the limits of an instance's container."""
    name = topology.role_of(instance)
    role = topology.roles[name]
    of_script = effective.scenario.knobs.load.workload == "script"
    users = _USERS_OF_SCRIPT if of_script else connections_of_load(effective)[0]
    needed_mb = memory_mb(effective, topology, name, users) // len(topology.instances[name])
    threads = effective.number(role.knob(role.limits.threads)) if role.limits.threads else 0
    # The stack of a thread is a mebibyte at most.
    return ContainerLimits(max(_TIMES * needed_mb + threads, _LEAST_MB), _PROCESSES + threads)


def limits_for_needed(memory_mb: int) -> ContainerLimits:
    """Give the limits of a service that is not on the path."""
    return ContainerLimits(max(_TIMES * memory_mb, _LEAST_MB), _PROCESSES)


def limits_for_collector() -> ContainerLimits:
    """Give the limits of a collector, or of what holds a namespace."""
    return ContainerLimits(_LEAST_MB, _COLLECTOR_PROCESSES)


def limits_for_one_off() -> ContainerLimits:
    """Give the limits of a container that is no part of a run."""
    return ContainerLimits(_LEAST_MB, _PROCESSES)


def compute_deadline_s(effective: ResolvedScenario) -> int:
    """Give the seconds after which every container of a run ends itself: no run of the lab takes so long."""
    scenario = effective.scenario
    ready = sum(one.ready_within for one in effective.registry.services.values())
    load_ms: int = scenario.knobs.load.max_duration
    return (load_ms + scenario.drain + ready) // 1000 + _BESIDES_S
