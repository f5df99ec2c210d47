"""Asks a role's program about a scenario's own configuration, before anything starts, and says what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from formats.role import Role
from lab.engines.protocol import Engine
from lab.errors import ConfigurationRefused, Problem
from lab.roles.configurations import Found
from lab.scenarios import own_configuration
from lab.scenarios.knobs import KnobValue, format_knob
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# What each role's own configuration says, by the role.
Configurations = Mapping[str, Found]


def examine(effective: ResolvedScenario, topology: Topology, engine: Engine) -> tuple[Configurations, list[Problem]]:
    """Give what the scenario's own configurations say, with why one cannot be run.

    A role whose image is not there yet is left out.

    Raises:
        LabError: no engine answers.
    """
    found: dict[str, Found] = {}
    problems: list[Problem] = []
    for role in topology.instances:
        own = own_configuration.find_configuration(effective, topology, role)
        if own is None:
            continue
        try:
            text = engine.examine_configuration(own)
        except ConfigurationRefused as refusal:
            problems.append(own_configuration.refusal(effective, own, refusal.what))
            continue
        if text is not None:
            found[role] = own_configuration.read_configuration(effective, topology, role, text)
            problems += own_configuration.fault_problems(own, list(found[role].faults))
    return found, problems


def values(configurations: Configurations, roles: Mapping[str, Role]) -> dict[str, KnobValue | None]:
    """Give the knobs that configurations say, by their full names; None for one that is not known."""
    return {
        roles[role].knob(name): setting.value
        for role, found in configurations.items()
        for name, setting in found.settings.items()
    }


def texts(configurations: Iterable[Configurations]) -> list[str]:
    """Give the text of each configuration."""
    return [found.text for one in configurations for found in one.values()]


def told(effective: ResolvedScenario, configurations: Configurations) -> Iterator[str]:
    """Say what the lab adds to configurations, and which knobs are theirs."""
    for role, found in configurations.items():
        declared = effective.registry.roles[role]
        yield f"{declared.called} runs {effective.scenario.configurations[role].config}, to which the lab adds:"
        yield from (f"    {line}" for line in found.added)
        yield "  these knobs are the file's own:"
        for name, setting in found.settings.items():
            where = f" ({', '.join(map(str, setting.where))})" if setting.where else " (default)"
            knob = declared.knob(name)
            said = f"unknown: {setting.why}" if setting.value is None else format_knob(knob, setting.value)
            yield f"    {knob}: {said}{where if setting.value is not None or setting.where else ''}"
