"""What this machine can hold: refuses, with numbers, a run that it cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from lab import paths
from lab.engines import container_settings
from lab.engines.protocol import Engine
from lab.errors import BadInput, LabError, Problem
from lab.run import configurations, machine, script
from lab.run.configurations import Configurations
from lab.scenarios import sysctls
from lab.scenarios.knobs import KnobValue, RoleName
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


def check(effective: ResolvedScenario, engine: Engine) -> Configurations:
    """Refuse what this kernel lacks and what memory, open files or disk cannot hold.

    Returns:
        What the scenario's own configurations say, by role.

    Raises:
        BadInput: with the numbers, and the way on.
    """
    topology = topology_of(effective)
    of_machine = (_memory, heap, _disk) if engine.on_this_machine else (heap, _disk)
    options, of_script = script.examine(effective, topology, engine)
    found, of_configurations = configurations.examine(effective, topology, engine)
    problems = [*of_engine(effective, engine), *of_script, *of_configurations]
    if problems:
        raise BadInput(problems)
    users = (options.users_max, "load.workload") if options else connections_of_load(effective)
    problems = [problem for check in of_machine for problem in check(effective, topology, users)]
    if problems:
        raise BadInput(problems)
    values = {**effective.values, **configurations.values(found, topology.roles)}
    problems = list(_open_files(effective, topology, users, values, engine))
    if problems:
        raise BadInput(problems)
    return found


def of_engine(effective: ResolvedScenario, engine: Engine) -> Iterator[Problem]:
    """Give what a scenario asks for that the engine cannot do, or this machine's kernel does not have if it counts."""
    topology = topology_of(effective)
    yield from engine.cannot(effective, topology)
    yield from container_settings.check_metrics_port(effective, topology, engine.metrics)
    if engine.on_this_machine:
        yield from of_kernel(effective)


def of_programs(effective: ResolvedScenario, engine: Engine) -> list[Problem]:
    """Give why k6 or a role's program refuses a file of the user's own, if they can be asked by now.

    Without an engine, or without an image of the program, nothing is given: `check` asks again before a run.
    """
    topology, problems = topology_of(effective), list[Problem]()
    with contextlib.suppress(LabError):
        problems += script.examine(effective, topology, engine)[1]
        problems += configurations.examine(effective, topology, engine)[1]
    return problems


def of_kernel(effective: ResolvedScenario) -> Iterator[Problem]:
    """Give what a scenario asks of this machine's kernel that it does not have."""
    for role, names in effective.scenario.knobs.kernel.items():
        for name, value in names.items():
            lacking = sysctls.missing_sysctl(name, value)
            if lacking:
                yield Problem(lacking[0], effective.where_knob(f"kernel.{role}.{name}"), lacking[1])


def _memory(effective: ResolvedScenario, topology: Topology, of_load: Users) -> Iterator[Problem]:
    users, knob = of_load
    roles = sum(memory_mb(effective, topology, role, users) for role in topology.instances)
    needed_mb = roles + len(topology.all) * COLLECTOR_MB
    total_mb = machine.memory_kb("MemTotal") >> 10
    if needed_mb > total_mb:
        what = f"the run needs about {needed_mb:,} MiB of memory for {users:,} users and its servers"
        yield Problem(f"{what}, and this machine has {total_mb:,} MiB", effective.where_knob(knob), "ask for less")


def heap(effective: ResolvedScenario, topology: Topology, of_load: Users) -> Iterator[Problem]:
    """Refuse connections that end a server amid the measurement, because they fill its heap."""
    for name, instances in topology.instances.items():
        role = topology.roles[name]
        if role.memory.heap is None:
            continue
        knob = role.knob(role.memory.heap)
        held = connections(effective, topology, name, of_load)
        needed_mb, has_mb = (held * role.memory.connection_kb) >> 10, effective.number(knob)
        if needed_mb > has_mb:
            what = f"{held:,} connections take about {needed_mb:,} MiB of the heap of {instances[0]}, and it has"
            lower = f", or lower {role.knob(role.limits.connections)}" if role.limits.connections else ""
            yield Problem(f"{what} {has_mb:,} ({knob})", effective.where_knob(knob), f"raise it{lower}")


def connections(effective: ResolvedScenario, topology: Topology, name: RoleName, of_load: Users) -> int:
    """Give the connections that one instance of a role may hold at once; a proxy has two for each of a client."""
    role = topology.roles[name]
    users = of_load[0] // len(topology.instances[name])
    if role.limits.connections is not None:
        users = min(users, effective.number(role.knob(role.limits.connections)))
    return 2 * users if role.kind == "proxy" else users


def _disk(effective: ResolvedScenario, topology: Topology, _: Users) -> Iterator[Problem]:
    capture = effective.scenario.knobs.capture
    captures = sum(capture_mode(effective, topology.role_of(instance)) != "off" for instance in topology.all)
    needed_mb = _DISK_BASE_MB + captures * capture.max_mb
    free_mb = machine.disk_free_bytes(paths.RESULTS) >> 20
    if needed_mb > free_mb:
        what = f"the run may write {needed_mb:,} MiB below {paths.shown(paths.RESULTS)}, and {free_mb:,} MiB are free"
        yield Problem(what, way_on="free space, or lower capture.max_mb")


def _open_files(
    effective: ResolvedScenario,
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
            needed[name] = connections(effective, topology, name, of_load) + role.files, users_knob
    if max(files for files, _ in needed.values()) <= _FILES_SURE:
        return
    cap = engine.open_files_cap()
    for name, (files, knob) in needed.items():
        if cap is not None and files > cap:
            what = f"{knob} = {values[knob]:,} needs about {files:,} open files in one process of {name}"
            way_on = "ask for less, share the load by load.instances, or raise the engine's nofile limit"
            yield Problem(f"{what}, and a container may open {cap:,}", effective.where_knob(knob), way_on)
