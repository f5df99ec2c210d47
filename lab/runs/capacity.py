"""What a run needs (ports, files, memory, disk), and whether this machine, its kernel and its engine have it."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from formats.knob_types import KnobValue
from formats.role import NO_LIMIT, passes_on
from lab import paths
from lab.engines import container_settings
from lab.engines.protocol import Engine
from lab.errors import BadInput, LabError, Problem
from lab.runs import machine, user_files
from lab.runs.user_files import Configurations
from lab.scenarios import forecast, sysctls
from lab.scenarios.knobs import RoleName
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import (
    COLLECTOR_MB,
    Topology,
    Users,
    capture_mode,
    connections_of_load,
    memory_mb,
    topology_of,
)

# Every container may open so many files, on any machine seen so far; below, nobody needs to be asked.
_FILES_SURE = 1024
_DISK_BASE_MB = 256
# What one request takes in requests.jsonl, and one connection in dials.jsonl, as in docs/performance.md.
_REQUEST_BYTES, _CONNECTION_BYTES = 430, 270
# A plain handshake, a request, its answer and the end: ten packets, and where they are captured 128 bytes of each.
_CAPTURED_BYTES = 1_000


def check_capacity(resolved: ResolvedScenario, engine: Engine) -> Configurations:
    """Refuse what this kernel lacks and what memory, open files or disk cannot hold.

    Returns:
        What the scenario's own configurations say, by role.

    Raises:
        BadInput: with the numbers, and a hint.
    """
    topology = topology_of(resolved)
    of_machine = (_memory, heap_problems, _disk) if engine.on_this_machine else (heap_problems, _disk)
    options, of_script = user_files.examine_script(resolved, topology, engine)
    found, of_configurations = user_files.examine_configurations(resolved, topology, engine)
    problems = [*engine_problems(resolved, engine), *of_script, *of_configurations]
    if problems:
        raise BadInput(problems)
    users = (options.users_max, "load.workload") if options else connections_of_load(resolved)
    problems = [problem for check in of_machine for problem in check(resolved, topology, users)]
    if problems:
        raise BadInput(problems)
    values = {**resolved.values, **user_files.configured_values(found, topology.roles)}
    problems = list(_open_files(resolved, topology, users, values, engine))
    if problems:
        raise BadInput(problems)
    return found


def engine_problems(resolved: ResolvedScenario, engine: Engine) -> Iterator[Problem]:
    """Return what a scenario asks for that the engine cannot do, or that this machine's kernel does not have."""
    topology = topology_of(resolved)
    yield from engine.cannot(resolved, topology)
    yield from container_settings.check_metrics_port(resolved, topology, engine.metrics)
    if engine.on_this_machine:
        yield from kernel_problems(resolved)


def program_problems(resolved: ResolvedScenario, engine: Engine) -> list[Problem]:
    """Return why k6 or a role's program refuses a file of the user's own, if they can be asked by now.

    Without an engine, or without an image of the program, nothing is given: `check` asks again before a run.
    """
    topology, problems = topology_of(resolved), list[Problem]()
    with contextlib.suppress(LabError):
        problems += user_files.examine_script(resolved, topology, engine)[1]
        problems += user_files.examine_configurations(resolved, topology, engine)[1]
    return problems


def kernel_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Return what a scenario asks of this machine's kernel that it does not have."""
    for role, names in resolved.scenario.knobs.kernel.items():
        for name, value in names.items():
            lacking = sysctls.missing_sysctl(name, value)
            if lacking:
                yield Problem(lacking[0], resolved.where_knob(f"kernel.{role}.{name}"), lacking[1])


def _memory(resolved: ResolvedScenario, topology: Topology, of_load: Users) -> Iterator[Problem]:
    users, knob = of_load
    roles = sum(memory_mb(resolved, topology, role, users) for role in topology.instances)
    needed_mb = roles + len(topology.all) * COLLECTOR_MB
    total_mb = machine.memory_kb("MemTotal") >> 10
    if needed_mb > total_mb:
        what = f"the run needs about {needed_mb:,} MiB of memory for {users:,} users and its servers"
        yield Problem(f"{what}, and this machine has {total_mb:,} MiB", resolved.where_knob(knob), "ask for less")


def heap_problems(resolved: ResolvedScenario, topology: Topology, of_load: Users) -> Iterator[Problem]:
    """Refuse connections that end a server amid the measurement, because they fill its heap."""
    for name, instances in topology.instances.items():
        role = topology.roles[name]
        if role.memory.heap is None:
            continue
        knob = role.knob(role.memory.heap)
        held = connections(resolved, topology, name, of_load)
        needed_mb, has_mb = (held * role.memory.connection_kb) >> 10, resolved.number(knob)
        if needed_mb > has_mb:
            what = f"{held:,} connections take about {needed_mb:,} MiB of the heap of {instances[0]}, and it has"
            lower = f", or lower {role.knob(role.limits.connections)}" if role.limits.connections else ""
            yield Problem(f"{what} {has_mb:,} ({knob})", resolved.where_knob(knob), f"raise it{lower}")


def connections(resolved: ResolvedScenario, topology: Topology, name: RoleName, of_load: Users) -> int:
    """Return the connections that one instance of a role may hold at once; a proxy has two for each of a client."""
    role = topology.roles[name]
    users = of_load[0] // len(topology.instances[name])
    knob = role.knob(role.limits.connections) if role.limits.connections else None
    # What a file of the user's own says is not known here.
    limit = resolved.number(knob) if knob and not resolved.in_file(knob) else NO_LIMIT
    if limit != NO_LIMIT:
        users = min(users, limit)
    return 2 * users if passes_on(role) else users


def _disk(resolved: ResolvedScenario, topology: Topology, _: Users) -> Iterator[Problem]:
    needed_mb = _DISK_BASE_MB + _captures_mb(resolved, topology)
    free_mb = machine.disk_free_bytes(paths.RESULTS) >> 20
    if needed_mb > free_mb:
        what = f"the run may write {needed_mb:,} MiB below {paths.shown(paths.RESULTS)}, and {free_mb:,} MiB are free"
        yield Problem(what, hint="free space, or lower capture.max_mb")


def _captures_mb(resolved: ResolvedScenario, topology: Topology, *, apart: bool = False) -> int:
    captures = sum(capture_mode(resolved, topology.role_of(one), apart=apart) != "off" for one in topology.all)
    return captures * resolved.scenario.knobs.capture.max_mb


def _open_files(
    resolved: ResolvedScenario,
    topology: Topology,
    of_load: Users,
    values: Mapping[str, KnobValue | None],
    engine: Engine,
) -> Iterator[Problem]:
    _, users_knob = of_load
    needed: dict[RoleName, tuple[int, str]] = {}
    for name in topology.instances:
        role = topology.roles[name]
        if role.limits.process_connections is not None:
            knob = role.knob(role.limits.process_connections)
            needed[name] = int(values[knob] or 0) + role.files, knob
        else:
            needed[name] = connections(resolved, topology, name, of_load) + role.files, users_knob
    if max(files for files, _ in needed.values()) <= _FILES_SURE:
        return
    cap = engine.open_files_cap()
    for name, (files, knob) in needed.items():
        if cap is not None and files > cap:
            what = f"{knob} = {values[knob]:,} needs about {files:,} open files in one process of {name}"
            hint = "ask for less, share the load by load.instances, or raise the engine's nofile limit"
            yield Problem(f"{what}, and a container may open {cap:,}", resolved.where_knob(knob), hint)


@dataclass(frozen=True)
class RoleDemand:
    """What the instances of one role take.

    Attributes:
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
        captures_mb: the most that captures take of the disk on which results lie.
        records_mb: what requests, dials and their packets take there; None where the number of requests is not known.
    """

    users: int
    roles: tuple[RoleDemand, ...]
    memory_mb: int
    captures_mb: int
    records_mb: int | None


def compute_demand(resolved: ResolvedScenario, *, apart: bool) -> tuple[Demand, list[Problem]]:
    """Work out what a run takes, and what of it cannot be.

    With `apart`, instances may be on several machines: then every server captures.
    """
    topology = topology_of(resolved)
    users, knob = connections_of_load(resolved)
    roles = tuple(_of_role(resolved, topology, name) for name in topology.instances)
    found = Demand(
        users=users,
        roles=roles,
        memory_mb=sum(each.instances * each.memory_mb for each in roles),
        captures_mb=_captures_mb(resolved, topology, apart=apart),
        records_mb=_records_mb(resolved),
    )
    return found, [*_without_ports(resolved, found, knob), *heap_problems(resolved, topology, (users, knob))]


def _of_role(resolved: ResolvedScenario, topology: Topology, name: str) -> RoleDemand:
    role, instances = topology.roles[name], topology.instances[name]
    held = connections(resolved, topology, name, connections_of_load(resolved))
    servers = dict(pairwise(topology.instances)).get(name)
    ports = f"model.ports.{name}"
    # A proxy holds two connections for each request that it passes on, and one of them is to a server.
    onwards = held // 2 if passes_on(role) else held
    process = role.limits.process_connections
    return RoleDemand(
        role=name,
        instances=len(instances),
        connections=held,
        ports=-(-onwards // _addresses(resolved, topology, servers)) if servers else None,
        ports_max=forecast.known_before_run(resolved, [ports]).get(ports) if servers else None,
        files=(resolved.number(role.knob(process)) if process else held) + role.files,
        memory_mb=memory_mb(resolved, topology, name, connections_of_load(resolved)[0]) // len(instances)
        + COLLECTOR_MB,
        memory_max_mb=container_settings.limits_for_instance(resolved, topology, instances[0]).memory_mb,
    )


def _addresses(resolved: ResolvedScenario, topology: Topology, name: str) -> int:
    """Return the addresses under which the instances of a server can be reached."""
    counting = topology.roles[name].counting("addresses")
    each = resolved.number(topology.roles[name].knob(counting)) if counting else 1
    return len(topology.instances[name]) * each


def _records_mb(resolved: ResolvedScenario) -> int | None:
    load = resolved.scenario.knobs.load
    if load.workload != "users":
        return None
    requests: int = load.users * load.calls
    made: int = load.users if load.keep_alive else requests
    return (requests * _REQUEST_BYTES + made * (_CONNECTION_BYTES + _CAPTURED_BYTES)) >> 20


def _without_ports(resolved: ResolvedScenario, demand: Demand, knob: str) -> list[Problem]:
    client = demand.roles[0]
    if client.ports is None or client.ports_max is None or client.ports <= client.ports_max:
        return []
    least = -(-client.instances * client.ports // client.ports_max)
    what = f"{client.connections:,} users of one {client.role} need {client.ports:,} ports to one address"
    hint = f"share the load: load.instances={least}, or widen kernel.{client.role}.net.ipv4.ip_local_port_range"
    return [Problem(f"{what}, and it has {client.ports_max:,}", resolved.where_knob(knob), hint)]
