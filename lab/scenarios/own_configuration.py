"""A configuration of the user's own, in place of the lab's: where it lies, and what it is refused for before a run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from formats.role import ConfigurationFormat as Declared
from lab import paths
from lab.errors import Problem
from lab.reading.messages import did_you_mean
from lab.roles.configurations import Fault, Neighbours, ParsedConfiguration, parse_configuration
from lab.scenarios.knobs import RoleName
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# Where the program finds the folder that the configuration lies in.
MOUNTED = Path("/config")


@dataclass(frozen=True)
class OwnConfiguration:
    """A configuration in its folder.

    Attributes:
        role: whose it is.
        file: the configuration; the program sees its folder and what lies below it.
        declared: how the role takes it.
        hosts: the names by which the role reaches the next one.
    """

    role: RoleName
    file: Path
    declared: Declared
    hosts: tuple[str, ...]

    def settings(self) -> dict[str, str]:
        """Return the environment of the role, in place of its knobs."""
        return {"CONNLAB_CONFIG": self.file.name}

    def shown(self, place: object) -> str:
        """Return a place in the configuration as the user would type it."""
        return f"{paths.shown(self.file.parent)}/{place}"


def find_configuration(resolved: ResolvedScenario, topology: Topology, role: RoleName) -> OwnConfiguration | None:
    """Return a role's own configuration; None if it has none."""
    written, declared = resolved.scenario.configurations.get(role), resolved.registry.roles[role].own
    if written is None or declared is None:
        return None
    file = paths.real(paths.real(resolved.place.home) / written.config)
    hosts = dict.fromkeys(address.partition(":")[0] for address in _behind(topology, role))
    return OwnConfiguration(role, file, declared, tuple(hosts))


def _behind(topology: Topology, role: RoleName) -> list[str]:
    """Return the addresses of the next role: its own name stands for all of its instances."""
    roles = list(topology.instances)
    following = roles[roles.index(role) + 1 :][:1]
    return [*(f"{name}:{topology.roles[name].port}" for name in following), *topology.behind(role)]


def read_configuration(
    resolved: ResolvedScenario, topology: Topology, role: RoleName, text: str
) -> ParsedConfiguration:
    """Return what a role's configuration says, out of what the program read."""
    declared = resolved.registry.roles[role]
    return parse_configuration(declared, text, Neighbours(declared.port, dict.fromkeys(_behind(topology, role))))


def configuration_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong as far as the scenario and its files tell."""
    for role, written in resolved.scenario.configurations.items():
        where = resolved.where(role, "config")
        if role not in resolved.scenario.path:
            what = f"{role} has a configuration, but is not on the path [{', '.join(resolved.scenario.path)}]"
            yield Problem(what, where, f"leave it out, or put {role} on the path")
        file = paths.real(resolved.place.home / written.config)
        if paths.inside(resolved.place.home, written.config) is None:
            what = f"the configuration {written.config} leads out of the scenario's folder"
            yield Problem(what, where, "copy it into the folder, with what it includes")
        elif not file.is_file():
            beside = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
            hint = did_you_mean(file.name, beside) or "its path begins at the scenario's folder"
            yield Problem(f"there is no configuration {paths.shown(file)}", where, hint)
    for knob in resolved.asked():
        file_says = resolved.in_file(knob)
        if file_says:
            what = f"{knob} is set, but the scenario's own configuration {file_says} decides it"
            yield Problem(what, resolved.where_knob(knob), "leave it out, and set it there")


def refusal(resolved: ResolvedScenario, own: OwnConfiguration, said: str) -> Problem:
    """Return a program's refusal of a configuration as one problem.

    Args:
        resolved: the scenario.
        own: the configuration.
        said: the program's message.
    """
    called = resolved.registry.roles[own.role].display_name
    # The entry point's own words come first.
    lines = [line.partition(" refuses the configuration: ")[2] or line for line in said.splitlines() if line.strip()]
    message = lines[-1] if lines else "it said nothing"
    match = re.search(own.declared.refusal + "$", message)
    what, where = message, paths.shown(own.file)
    if match:
        what = match["what"].rstrip(".")
        where = own.shown(f"{match['file']}:{match['line']}") if match["file"] else where
    hint = "correct it"
    if "host not found" in what or "could not resolve" in what:
        hint = f"{called} can reach {' and '.join(own.hosts)}" if own.hosts else f"the path ends at {called}"
    elif "Permission denied" in what:
        hint = "let every user read the configuration (chmod -R a+rX)"
    elif "mkdir()" in what or "Read-only" in what:
        hint = f"it can write only below {', '.join(('/tmp', *own.declared.writable))}"  # noqa: S108 # in the container
    elif "No such file" in what:
        hint = f"{called} sees only {paths.shown(own.file.parent)} and what lies below it: put the file there"
    return Problem(f"{called} refuses it: {what}", where, hint)


def fault_problems(own: OwnConfiguration, faults: list[Fault]) -> Iterator[Problem]:
    """Yield why a configuration that the program takes cannot stand on the path."""
    for one in faults:
        yield Problem(one.what, own.shown(one.where) if one.where else paths.shown(own.file), one.hint)
