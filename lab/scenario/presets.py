"""Presets: sizes that a scenario keeps beside its own, such as the published one; `PRESET=` asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.errors import BadInput, Problem
from lab.reading.document import Document, Location
from lab.reading.nearest import did_you_mean
from lab.scenario.fields import Scenario, Value
from lab.scenario.overrides import Override, settings


def chosen(scenario: Scenario, document: Document, name: str) -> list[Override]:
    """Give what a preset sets in the scenario as a whole.

    Raises:
        BadInput: the scenario has no such preset, or it names an unknown knob.
    """
    if name not in scenario.presets:
        known = ", ".join(scenario.presets)
        hint = did_you_mean(name, scenario.presets) or (known and f"its presets: {known}") or "leave it out"
        raise BadInput(Problem(f"the scenario has no preset '{name}'", f"--preset {name}", hint))
    return _read(scenario.presets[name].knobs, document, ("presets", name))


def chosen_for_arm(scenario: Scenario, document: Document, name: str, arm: str) -> list[Override]:
    """Give what a preset of the scenario sets in one arm, over what the arm sets itself.

    Raises:
        BadInput: it names an unknown knob.
    """
    return _read(scenario.presets[name].arms.get(arm, {}), document, ("presets", name, "arms", arm))


def problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Give what is wrong with the presets by their names alone, whichever is asked for; their values are its own."""
    arms = scenario.arms.variants if scenario.arms else {}
    for name, preset in scenario.presets.items():
        at: Location = ("presets", name)
        yield from _problems(preset.knobs, document, at)
        for arm, values in preset.arms.items():
            if arm not in arms:
                hint = did_you_mean(arm, arms) or "the scenario has no arms"
                yield Problem(f"there is no arm '{arm}'", document.where((*at, "arms", arm)), hint)
            yield from _problems(values, document, (*at, "arms", arm))
        for knob in preset.knobs:
            if arms and all(knob in (*variant, *preset.arms.get(arm, {})) for arm, variant in arms.items()):
                what = f"every arm sets {knob} itself, so the preset's value has no effect"
                yield Problem(what, document.where((*at, knob)), f"set it below presets.{name}.arms")
        if not preset.knobs and not preset.arms:
            yield Problem(f"the preset '{name}' sets nothing", document.where(at), "leave it out, or give it a knob")


def _problems(values: Mapping[str, Value], document: Document, at: Location) -> list[Problem]:
    try:
        _read(values, document, at)
    except BadInput as error:
        return error.problems
    return []


def _read(values: Mapping[str, Value], document: Document, at: Location) -> list[Override]:
    return settings(values, {knob: document.where((*at, knob)) for knob in values}, "preset")
