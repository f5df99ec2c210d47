"""Asks k6 what a scenario's own script is about to do, before anything starts."""

from __future__ import annotations

from lab.engines.protocol import Engine
from lab.errors import LabError, Problem, ScriptRefused
from lab.scenarios import own_script
from lab.scenarios.own_script import Options
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology


def examine(effective: ResolvedScenario, topology: Topology, engine: Engine) -> tuple[Options | None, list[Problem]]:
    """Give the options as `options` does, with why k6 does not take the script, or what they contradict.

    Raises:
        LabError: no engine answers.
    """
    try:
        found = options(effective, topology, engine)
    except ScriptRefused as refusal:
        script = own_script.find_script(effective, topology)
        return None, [own_script.refusal(effective, script, refusal.what)] if script else []
    return found, [*own_script.contradictions(effective, found)] if found else []


def options(effective: ResolvedScenario, topology: Topology, engine: Engine) -> Options | None:
    """Give the options of a scenario's own script; None if it has none, or there is no k6 to ask yet.

    Raises:
        ScriptRefused: k6 does not take it.
        LabError: no engine answers.
    """
    script = own_script.find_script(effective, topology)
    said = engine.examine_script(script) if script else None
    if said is None:
        return None
    try:
        return own_script.read_options(said)
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"k6 described the script in a way that the lab does not know: {error!r}") from None
