"""What the parts of a run take of a machine: connections and memory, by the scenario's knobs."""

from __future__ import annotations

from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName
from lab.scenario.topology import Topology

COLLECTOR_MB = 39

# The connections that the load may hold at once, and the knob that says so.
Users = tuple[int, str]


def users(effective: Effective) -> Users:
    """Give the connections that the load may hold at once, and the knob that says so."""
    load = effective.scenario.knobs.load
    if load.workload == "spike":
        return load.max_users, "load.max_users"
    if load.workload == "slow_clients":
        return load.users + load.slow_users, "load.users"
    if load.workload == "half_open":
        return load.users + load.half_open, "load.users"
    return (1, "load.workload") if load.workload in ("sequential", "script") else (load.users, "load.users")


def memory_mb(effective: Effective, topology: Topology, name: RoleName, connections: int) -> int:
    """Give what all instances of a role need; MiB.

    Args:
        effective: what is run.
        topology: its instances.
        name: the role's.
        connections: those of the load, which the instances share.
    """
    memory, instances = topology.roles[name].memory, len(topology.instances[name])
    if memory.heap:
        return instances * (memory.base_mb + effective.number(topology.roles[name].knob(memory.heap)))
    return instances * memory.base_mb + (connections * memory.connection_kb >> 10)
