"""Overrides: `group.knob=value`, as `--set` and make's SET take them, and the settings of arms and matrices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from lab.errors import BadInput, Problem
from lab.reading.document import Location
from lab.reading.nearest import nearest
from lab.scenario.catalogue import CATALOGUE, Knob

_EXAMPLE = "write it as backend.accept_count=10"
_SYSCTL_EXAMPLE = "write it as kernel.backend.net.ipv4.tcp_syn_retries=6"


_GROUPS = {knob.group for knob in CATALOGUE.values()}
_OF_SERVICE = r"[a-z][a-z0-9]*\.[a-z0-9]+(_[a-z0-9]+)*"

Source = Literal["set", "preset", "cell"]


@dataclass(frozen=True)
class Override:
    """One knob set beyond the scenario's own: by the user, by the preset they chose, or by the cell of a series.

    Attributes:
        knob: its full name.
        value: text, number or truth value, as the text reads.
        where: what to cite in a message.
    """

    knob: str
    value: float | bool | str
    where: str
    source: Source = "set"

    @property
    def location(self) -> Location:
        """Where the knob stands in a scenario's document."""
        return knob_location(self.knob)


def knob_location(knob: str) -> Location:
    """Give the place of a knob in a scenario's document: `kernel.k6.net.x` has three keys, others two."""
    return ("knobs", *knob.split(".", 2 if knob.startswith("kernel.") else 1))


def parse_overrides(texts: Iterable[str]) -> list[Override]:
    """Read overrides.

    Raises:
        BadInput: an unknown knob, one that is set twice, or no `knob=value`.
    """
    overrides: dict[str, Override] = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            override = _parse(text)
        except BadInput as error:
            problems += error.problems
        else:
            if override.knob in overrides:
                before = overrides[override.knob].where
                way_on = f"leave one of the two out; the other is {before}"
                problems.append(Problem(f"{override.knob} is set twice", override.where, way_on))
            overrides[override.knob] = override
    if problems:
        raise BadInput(problems)
    return list(overrides.values())


def _parse(text: str) -> Override:
    where = f"--set {text}"
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise BadInput(Problem("a setting needs a knob, '=' and a value", where, _EXAMPLE))
    if name.startswith("kernel."):
        name = _sysctl_knob(name, where)
    elif not may_be_knob(name):
        raise BadInput(Problem(f"unknown knob '{name}'", where, nearest_knob(name)))
    return Override(name, _scalar(value.strip()), where)


def settings(
    values: Mapping[str, float | bool | str], where: Mapping[str, str], source: Source = "cell"
) -> list[Override]:
    """Read the settings of an arm, a matrix's cell or a preset: knobs by their full names, as YAML has them.

    Args:
        values: each knob's value.
        where: each knob's place, to cite.
        source: who sets them.

    Raises:
        BadInput: an unknown knob.
    """
    overrides: list[Override] = []
    problems: list[Problem] = []
    for name, value in values.items():
        if name.startswith("kernel.") or may_be_knob(name):
            try:
                knob = _sysctl_knob(name, where[name]) if name.startswith("kernel.") else name
            except BadInput as error:
                problems += error.problems
            else:
                overrides.append(Override(knob, value, where[name], source))
        else:
            problems.append(Problem(f"unknown knob '{name}'", where[name], nearest_knob(name)))
    if problems:
        raise BadInput(problems)
    return overrides


def _sysctl_knob(name: str, where: str) -> str:
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
    """Tell whether a name is a knob of the lab's, or may be one of a service that only its scenario knows."""
    group, dot, _ = name.partition(".")
    return name in CATALOGUE or (bool(dot) and group not in _GROUPS and re.fullmatch(_OF_SERVICE, name) is not None)


def nearest_knob(name: str, catalogue: Mapping[str, Knob] = CATALOGUE) -> str:
    """Say which knob was meant; a field's name alone, or under another group, finds its knob."""
    by_field = {knob.field: knob.name for knob in catalogue.values()}
    group, _, field = name.rpartition(".")
    beside = {knob.field: knob.name for knob in catalogue.values() if knob.group == group}
    # The group's own name says nothing about which of its knobs was meant.
    meant = (
        by_field.get(field) or beside.get(nearest(field, beside) or "") or by_field.get(nearest(field, by_field) or "")
    )
    return f"did you mean '{meant}'?" if meant else "'connlab show' lists a scenario's knobs"
