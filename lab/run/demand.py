"""What a run takes of a cluster, or of a machine: for each role its instances, connections, ports, files and memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lab.engines import container_settings
from lab.errors import Problem
from lab.run.machine_limits import connections, heap
from lab.scenarios import preflight
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import COLLECTOR_MB, Topology, capture_mode, connections_of_load, memory_mb, topology_of

# What one request takes in requests.jsonl, and one connection in dials.jsonl, as in docs/performance.md.
_REQUEST_BYTES, _CONNECTION_BYTES = 430, 270
# A plain handshake, a request, its answer and the end: ten packets, and where they are captured 128 bytes of each.
_CAPTURED_BYTES = 1_000


@dataclass(frozen=True)
class OfRole:
    """What the instances of one role take.

    Attributes:
        instances: how many there are.
        connections: that one of them may hold at once.
        ports: local ports that one of them needs for connections to one server; None for the last of the path.
        ports_max: local ports that it has; None where that is not known.
        files: open files in one process.
        memory_mb: of one of them and its collector.
        memory_max_mb: at which the container of one of them is ended.
    """

    role: str
    instances: int
    connections: int
    ports: int | None
    ports_max: int | None
    files: int
    memory_mb: int
    memory_max_mb: int


@dataclass(frozen=True)
class Demand:
    """What a run takes.

    Attributes:
        roles: along the path.
        memory_mb: all of it.
        captures_mb: the most that captures take of the disk on which results lie.
        records_mb: what requests, dials and their packets take there; None where the number of requests is not known.
    """

    users: int
    roles: tuple[OfRole, ...]
    memory_mb: int
    captures_mb: int
    records_mb: int | None


def of_run(effective: ResolvedScenario, *, apart: bool) -> tuple[Demand, list[Problem]]:
    """Work out what a run takes, and what of it cannot be.

    Args:
        effective: what is to run.
        apart: whether instances may be on several machines: then every server captures.
    """
    topology = topology_of(effective)
    users, knob = connections_of_load(effective)
    roles = tuple(_of_role(effective, topology, name) for name in topology.instances)
    capture = effective.scenario.knobs.capture
    captures = sum(capture_mode(effective, topology.role_of(one), apart=apart) != "off" for one in topology.all)
    found = Demand(
        users=users,
        roles=roles,
        memory_mb=sum(each.instances * each.memory_mb for each in roles),
        captures_mb=captures * capture.max_mb,
        records_mb=_records_mb(effective),
    )
    return found, [*_without_ports(effective, found, knob), *heap(effective, topology, (users, knob))]


def _of_role(effective: ResolvedScenario, topology: Topology, name: str) -> OfRole:
    role, instances = topology.roles[name], topology.instances[name]
    held = connections(effective, topology, name, connections_of_load(effective))
    servers = dict(pairwise(topology.instances)).get(name)
    ports = f"model.ports.{name}"
    # A proxy holds two connections for each request that it passes on, and one of them is to a server.
    onwards = held // 2 if role.kind == "proxy" else held
    process = role.limits.process_connections
    return OfRole(
        role=name,
        instances=len(instances),
        connections=held,
        ports=-(-onwards // _addresses(effective, topology, servers)) if servers else None,
        ports_max=preflight.known_before_run(effective, [ports]).get(ports) if servers else None,
        files=(effective.number(role.knob(process)) if process else held) + role.files,
        memory_mb=memory_mb(effective, topology, name, connections_of_load(effective)[0]) // len(instances)
        + COLLECTOR_MB,
        memory_max_mb=container_settings.limits_for_instance(effective, topology, instances[0]).memory_mb,
    )


def _addresses(effective: ResolvedScenario, topology: Topology, name: str) -> int:
    """Give the addresses under which the instances of a server can be reached."""
    counting = topology.roles[name].counting("addresses")
    each = effective.number(topology.roles[name].knob(counting)) if counting else 1
    return len(topology.instances[name]) * each


def _records_mb(effective: ResolvedScenario) -> int | None:
    load = effective.scenario.knobs.load
    if load.workload != "users":
        return None
    requests: int = load.users * load.calls
    made: int = load.users if load.keep_alive else requests
    return (requests * _REQUEST_BYTES + made * (_CONNECTION_BYTES + _CAPTURED_BYTES)) >> 20


def _without_ports(effective: ResolvedScenario, demand: Demand, knob: str) -> list[Problem]:
    client = demand.roles[0]
    if client.ports is None or client.ports_max is None or client.ports <= client.ports_max:
        return []
    least = -(-client.instances * client.ports // client.ports_max)
    what = f"{client.connections:,} users of one {client.role} need {client.ports:,} ports to one address"
    way_on = f"share the load: load.instances={least}, or widen kernel.{client.role}.net.ipv4.ip_local_port_range"
    return [Problem(f"{what}, and it has {client.ports_max:,}", effective.where_knob(knob), way_on)]
