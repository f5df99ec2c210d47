"""Asks k6 about the user's script, and a role's program about the user's configuration, before anything starts.

A script's remote modules are fetched here, outside the lab's network: from https:// alone, each once.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence

from formats.knob_types import KnobValue
from formats.role import Role
from formats.sanitize import visible
from lab.engines.protocol import Engine
from lab.errors import ConfigurationRefused, LabError, Problem, ScriptRefused
from lab.roles.configurations.parsed import Change, ParsedConfiguration
from lab.scenarios import own_configuration, own_script
from lab.scenarios.knobs import format_knob
from lab.scenarios.own_script import Options, OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

_TIMEOUT_S = 10
_BYTES_MAX = 8 << 20
# A module's modules are known when it is here.
_ROUNDS_MAX = 16


def examine_script(
    resolved: ResolvedScenario, topology: Topology, engine: Engine
) -> tuple[Options | None, list[Problem]]:
    """Return the options as `options` does, with why k6 does not take the script, or what they contradict.

    Raises:
        LabError: no engine answers.
    """
    script = own_script.find_script(resolved, topology)
    if script is not None and script.missing_modules():
        missing, why = _fetch_modules(script)
        if missing:
            return None, [own_script.missing_refusal(missing, why)]
    try:
        found = script_options(resolved, topology, engine)
    except ScriptRefused as refusal:
        return None, [own_script.refusal(resolved, script, refusal.what)] if script else []
    return found, [*own_script.contradictions(resolved, found)] if found else []


def script_options(resolved: ResolvedScenario, topology: Topology, engine: Engine) -> Options | None:
    """Return the options of a scenario's own script; None if it has none, or there is no k6 to ask yet.

    Raises:
        ScriptRefused: k6 does not take it.
        LabError: no engine answers.
    """
    script = own_script.find_script(resolved, topology)
    said = engine.examine_script(script) if script else None
    if said is None:
        return None
    try:
        return own_script.read_options(said)
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"k6 described the script in a way that the lab does not know: {error!r}") from None


def _fetch_modules(script: OwnScript) -> tuple[dict[str, str], str]:
    """Fetch what is missing, with what that imports.

    Returns:
        The modules that are still missing, each with the place that imports it; and why the first of them is.
    """
    for _ in range(_ROUNDS_MAX):
        missing = script.missing_modules()
        if not missing:
            break
        for url in missing:
            try:
                content = _fetch(url)
            except (OSError, ValueError) as error:
                return missing, visible(str(getattr(error, "reason", error)))
            file = script.modules.kept(url)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return {}, ""


def _fetch(url: str) -> bytes:
    # k6 itself takes modules from nowhere but https.
    if not url.startswith("https://"):
        raise ValueError(url)
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310  https alone
        content: bytes = answer.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise ValueError(f"{url} has more than {_BYTES_MAX >> 20} MiB")
    return content


# What each role's own configuration says, by the role.
Configurations = Mapping[str, ParsedConfiguration]


def examine_configurations(
    resolved: ResolvedScenario, topology: Topology, engine: Engine
) -> tuple[Configurations, list[Problem]]:
    """Return what the scenario's own configurations say, with why one cannot be run.

    A role whose image is not there yet is left out.

    Raises:
        LabError: no engine answers.
    """
    found: dict[str, ParsedConfiguration] = {}
    problems: list[Problem] = []
    for role in topology.instances:
        own = own_configuration.find_configuration(resolved, topology, role)
        if own is None:
            continue
        if faults := list(own_configuration.adaptation_faults(own, topology)):
            problems += own_configuration.fault_problems(own, faults)
            continue
        try:
            text = engine.examine_configuration(own)
        except ConfigurationRefused as refusal:
            problems.append(own_configuration.refusal(resolved, own, refusal.what))
            continue
        if text is not None:
            found[role] = own_configuration.read_configuration(resolved, topology, role, text)
            problems += own_configuration.fault_problems(own, found[role].faults)
    return found, problems


def configured_values(configurations: Configurations, roles: Mapping[str, Role]) -> dict[str, KnobValue | None]:
    """Return the knobs that configurations say, by their full names; None for one that is not known."""
    return {
        roles[role].knob(name): setting.value
        for role, found in configurations.items()
        for name, setting in found.settings.items()
    }


def describe_changes(resolved: ResolvedScenario) -> Iterator[str]:
    """Return, line by line, what is left out of Compose files, and what configurations get: what needs no program."""
    yield from resolved.registry.notices
    for role, own in own_configuration.find_all(resolved).items():
        if own.adaptation.changes:
            yield f"{role} runs {resolved.scenario.configurations[role].config}"
            yield from _describe_changes(own.adaptation.changes)


def _describe_changes(changes: Sequence[Change]) -> Iterator[str]:
    if changes:
        yield "  in the copy that runs:"
        yield from (f"    {one}" for one in changes)


def describe_configurations(resolved: ResolvedScenario, configurations: Configurations) -> Iterator[str]:
    """Return, line by line, what is left out of Compose files, what configurations get, and which knobs are theirs."""
    yield from resolved.registry.notices
    if resolved.ip_family == "ipv6":
        yield "clients come over IPv6"
    elif resolved.scenario.load and resolved.scenario.load.ip_family == "ipv6":
        yield "clients come over IPv4: the kernel has no IPv6"
    for role, found in configurations.items():
        declared = resolved.registry.roles[role]
        file, entry = resolved.scenario.configurations[role].config, resolved.entries.get(role)
        if entry is not None:
            name = f" for {entry.host}" if entry.host else ""
            image = resolved.scenario.configurations[role].image
            program = " ".join(filter(None, (declared.display_name, found.version)))
            program += f" of {image}" if image else ""
            yield f"{program} runs {file}; the load comes to port {entry.port}{name} ({entry.where})"
        yield from _describe_changes(found.changes)
        yield "  the lab adds:"
        yield from (f"    {line}" for line in found.added)
        yield "  these knobs are the file's own:"
        for name, setting in found.settings.items():
            where = f" ({', '.join(map(str, setting.where))})" if setting.where else " (default)"
            knob = declared.knob(name)
            said = (
                f"unknown: {setting.why}"
                if setting.value is None
                else format_knob(knob, setting.value, resolved.registry.knobs)
            )
            yield f"    {knob}: {said}{where if setting.value is not None or setting.where else ''}"
