"""The axes of a matrix as its file has them: each with its levels, and what a level changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import BadInput, Problem
from lab.reading.document import Document
from lab.scenario.fields import NAME_PATTERN
from lab.scenario.overrides import may_be_knob, nearest_knob
from lab.series import arm_settings
from lab.series.arm_settings import Change
from lab.series.gather import Gathered
from lab.series.matrix_file import Matrix

_SCENARIO = "scenario"
# An arm and a scenario are axes that the lab itself makes.
_OWN_AXES = ("arm", _SCENARIO)


@dataclass(frozen=True)
class AxisChanges:
    """An axis: its levels by name, each with what it changes."""

    name: str
    levels: Mapping[str, Change]
    is_knob: bool


def read_sides(matrix: Matrix, document: Document, gathered: Gathered) -> list[AxisChanges]:
    """Read the axes, that of several scenarios first; what is wrong with one is gathered."""
    sides = []
    if len(matrix.scenarios) > 1:
        for index, one in enumerate(matrix.scenarios):
            if one in matrix.scenarios[:index]:
                gathered.extend([Problem(f"the scenario '{one}' stands twice", document.where(("scenarios", index)))])
        sides.append(AxisChanges(_SCENARIO, {one: Change(scenario=one) for one in matrix.scenarios}, is_knob=False))
    for axis, content in matrix.axes.items():
        with gathered:
            sides.append(_side(axis, content, document))
    return sides


def _side(axis: str, content: object, document: Document) -> AxisChanges:
    where = document.where(("axes", axis))
    if not isinstance(content, list | dict):
        raise BadInput(Problem(f"the axis '{axis}' takes a list of values, or named variants", where))
    if not content:
        what = f"the axis '{axis}' is empty: it has no value to take, and the matrix no cell"
        raise BadInput(Problem(what, where, "give it values, or leave it out"))
    return _knob_side(axis, content, document) if isinstance(content, list) else _named_side(axis, content, document)


def _knob_side(axis: str, values: list[Any], document: Document) -> AxisChanges:
    location = ("axes", axis)
    if not may_be_knob(axis) and not axis.startswith("kernel."):
        way_on = nearest_knob(axis)
        raise BadInput(
            Problem(f"the axis '{axis}' has a list of values, and is not a knob", document.where(location), way_on)
        )
    levels: dict[str, Change] = {}
    for index, value in enumerate(values):
        where = document.where((*location, index))
        if not isinstance(value, bool | int | float | str):
            raise BadInput(Problem(f"{axis} takes one value in each cell", where))
        level = spelled(value)
        if level in levels:
            raise BadInput(Problem(f"{axis} has the value {level} twice", where))
        levels[level] = arm_settings.read({axis: value}, {axis: where})
    return AxisChanges(axis, levels, is_knob=True)


def spelled(value: float | bool | str) -> str:  # noqa: FBT001 # a scalar of YAML's
    """Write a value as the name of a level, as a scenario would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else '""'


def _named_side(axis: str, content: Mapping[str, Any], document: Document) -> AxisChanges:
    location = ("axes", axis)
    where = document.where(location)
    if axis in _OWN_AXES:
        raise BadInput(Problem(f"an axis of named variants cannot be called '{axis}': the lab makes that one", where))
    if not re.fullmatch(NAME_PATTERN, axis):
        what = f"the axis '{axis}' has named variants, so its own name holds small letters, digits and hyphens"
        way_on = "a knob's axis takes a list of values" if may_be_knob(axis) else None
        raise BadInput(Problem(what, where, way_on))
    levels: dict[str, Change] = {}
    for level, values in content.items():
        place = document.where((*location, level))
        if not isinstance(values, Mapping):
            raise BadInput(Problem(f"the variant '{level}' takes knobs and their values", place))
        levels[level] = arm_settings.read(values, arm_settings.places(values, document, (*location, level)))
    return AxisChanges(axis, levels, is_knob=False)


def contradictions(sides: Sequence[AxisChanges], fixed: Change) -> Iterator[Problem]:
    """Give a problem for each setting that two axes move, or that an axis moves and the matrix fixes."""
    owners: dict[str, str] = {}
    for side in sides:
        touched = {what: where for change in side.levels.values() for what, where in change.touched.items()}
        for what, where in touched.items():
            if what in owners:
                fault = f"{what} is moved by two axes, '{owners[what]}' and '{side.name}': their cells contradict"
                yield Problem(fault, where, "move it by one of them")
            elif what in fixed.touched:
                fault = f"{what} is moved by the axis '{side.name}', and fixed at {fixed.touched[what]}"
                yield Problem(fault, where, "leave one of the two out")
            owners.setdefault(what, side.name)
