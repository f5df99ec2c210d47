"""Overrides: `group.knob=value`, as `--set` and make's SET take them, and the settings of arms and matrices."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from formats.knob_types import KnobValue
from formats.renamed_keys import new_name
from lab.errors import BadInput, Gathered, Problem
from lab.reading.document import Document, Location
from lab.reading.validation_messages import did_you_mean, nearest
from lab.scenarios.knobs import CATALOGUE, KnownKnob
from lab.scenarios.model import Preset, Scenario
from lab.scenarios.network import KEY, Link, is_network_knob

_EXAMPLE = "write it as backend.accept_count=10"
_SYSCTL_EXAMPLE = "write it as kernel.backend.net.ipv4.tcp_syn_retries=6"


_GROUPS = {knob.group for knob in CATALOGUE.values()}
_OF_SERVICE = r"[a-z][a-z0-9]*\.[a-z0-9]+(_[a-z0-9]+)*"

Source = Literal["set", "preset", "cell"]


@dataclass(frozen=True)
class Override:
    """One knob set beyond the scenario's own: by the user, by the preset they chose, or by the cell of a series.

    Attributes:
        value: text, number or truth value, as the text reads.
        place: where it stands in a scenario's document; None for where knobs do.
    """

    knob: str
    value: float | bool | str
    where: str
    source: Source = "set"
    place: Location | None = None

    @property
    def location(self) -> Location:
        """Return where the value stands in a scenario's document."""
        return self.place or knob_location(self.knob)


def knob_location(knob: str) -> Location:
    """Return the place of a knob in a scenario's document: `kernel.k6.net.x` has three keys, most others two."""
    if is_network_knob(knob):
        return tuple(knob.split("."))
    return ("knobs", *knob.split(".", 2 if knob.startswith("kernel.") else 1))


def parse_overrides(texts: Iterable[str]) -> list[Override]:
    """Read overrides.

    Raises:
        BadInput: an unknown knob, one that is set twice, or no `knob=value`.
    """
    overrides: dict[str, Override] = {}
    gathered = Gathered()
    for text in texts:
        with gathered:
            override = _parse(text)
            before = overrides.get(override.knob)
            overrides[override.knob] = override
            if before:
                hint = f"leave one of the two out; the other is {before.where}"
                raise BadInput(Problem(f"{override.knob} is set twice", override.where, hint))
    gathered.refuse()
    return list(overrides.values())


def _parse(text: str) -> Override:
    where = f"--set {text}"
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput(Problem("a setting needs a knob, '=' and a value", where, _EXAMPLE))
    return Override(_full_name(name.strip(), where), _scalar(value.strip()), where)


def parse_settings(
    values: Mapping[str, float | bool | str], where: Mapping[str, str], source: Source = "cell"
) -> list[Override]:
    """Read the settings of an arm, a matrix's cell or a preset: knobs by their full names, as YAML has them.

    `where` has each knob's place, to cite.

    Raises:
        BadInput: an unknown knob.
    """
    overrides: list[Override] = []
    gathered = Gathered()
    for name, value in values.items():
        with gathered:
            overrides.append(Override(_full_name(name, where[name]), value, where[name], source))
    gathered.refuse()
    return overrides


def _full_name(name: str, where: str) -> str:
    if not name.startswith("kernel."):
        if may_be_knob(name):
            return name
        raise BadInput(Problem(f"unknown knob '{name}'", where, nearest_knob(name)))
    # Quotes are what YAML and shells would want around the dots; here they mean nothing.
    name = name.replace('"', "").replace("'", "")
    if not re.fullmatch(r"kernel\.[^.]+\.[^.]+(\.[^.]+)+", name):
        raise BadInput(Problem(f"'{name}' does not name a role and a sysctl", where, _SYSCTL_EXAMPLE))
    return name


def _scalar(text: str) -> int | bool | str:
    if text in ("true", "false"):
        return text == "true"
    # 010 is ten to some and eight to others, the kernel among them: it stays a text, and no knob takes it for a number.
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,40}", text) else text.strip("\"'")


def may_be_knob(name: str) -> bool:
    """Return whether a name is a knob of the lab's, or may be one of a service that only its scenario knows."""
    group, dot, _ = name.partition(".")
    return (
        name in CATALOGUE
        or is_network_knob(name)
        or (bool(dot) and group not in _GROUPS and re.fullmatch(_OF_SERVICE, name) is not None)
    )


def nearest_knob(name: str, catalogue: Mapping[str, KnownKnob] = CATALOGUE) -> str:
    """Return which knob was meant; a field's name alone, or under another group, finds its knob."""
    if name.startswith(f"{KEY}."):
        end = nearest(name.rpartition(".")[2], Link.model_fields) or "delay"
        return f"a link's knob is {KEY}.<from>.<to>.<knob>, such as {KEY}.k6.nginx.{end}"
    by_field = {knob.field: knob.name for knob in catalogue.values()}
    group, _, field = name.rpartition(".")
    beside = {knob.field: knob.name for knob in catalogue.values() if knob.group == group}
    # The group's own name says nothing about which of its knobs was meant.
    meant = (
        by_field.get(field) or beside.get(nearest(field, beside) or "") or by_field.get(nearest(field, by_field) or "")
    )
    return f"did you mean '{meant}'?" if meant else "'connlab show' lists a scenario's knobs"


def preset_overrides(scenario: Scenario, document: Document, name: str) -> list[Override]:
    """Return what a preset sets in the scenario as a whole.

    Raises:
        BadInput: the scenario has no such preset, or it names an unknown knob.
    """
    if name not in scenario.presets:
        known = ", ".join(scenario.presets)
        hint = did_you_mean(name, scenario.presets) or (known and f"its presets: {known}") or "leave it out"
        raise BadInput(Problem(f"the scenario has no preset '{name}'", f"--preset {name}", hint))
    return read_preset(scenario.presets[name].knobs, document, ("presets", name))


def preset_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what is wrong with the presets by their names alone, whichever is asked for; their values are its own."""
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


def _problems(values: Mapping[str, KnobValue], document: Document, at: Location) -> list[Problem]:
    try:
        read_preset(values, document, at)
    except BadInput as error:
        return error.problems
    return []


def read_preset(values: Mapping[str, KnobValue], document: Document, at: Location) -> list[Override]:
    """Read what a preset sets at a place of its document.

    Raises:
        BadInput: it names an unknown knob.
    """
    where = {key: document.where((*at, key)) for key in values}
    # What is no key of a preset would be a knob.
    if renamed := [(key, new) for key in values if (new := new_name(key, Preset.model_fields))]:
        raise BadInput(Problem(f"the key '{key}' has a new name", where[key], f"write '{new}'") for key, new in renamed)
    return parse_settings(values, where, "preset")
