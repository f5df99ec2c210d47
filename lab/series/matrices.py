"""A matrix: its file, and its plan, in which every combination of its axes' levels is a cell and is checked."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, WithJsonSchema

from formats.knob_types import format_knob_value
from formats.predictions import NAME_PATTERN, Claim, Text
from formats.series import Axis, Level
from lab import paths
from lab.errors import BadInput, Gathered, Problem
from lab.reading import document as documents
from lab.reading.document import Document, Location
from lab.reading.validation_messages import did_you_mean, refuse_findings, siblings
from lab.scenarios import places
from lab.scenarios.model import Series as Rules
from lab.scenarios.model import Settings
from lab.scenarios.overrides import may_be_knob, nearest_knob
from lab.scenarios.places import Place
from lab.scenarios.predictions import compared_problems
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import PlacedPrediction, ResolvedScenario, Variant, knob_sentence
from lab.series import arms
from lab.series.arms import Change
from lab.series.plan import (
    Plan,
    PlannedCell,
    build_cell,
    find_same_cells,
    refuse_user_settings,
    remark_on_arms,
    require_duration,
    short_names,
    slugify,
)

_SUFFIX = ".yaml"
_VALUE = {"type": ["integer", "boolean", "string", "number"]}


class Matrix(Rules):
    """A cross product of knobs over one scenario or several."""

    model_config = ConfigDict(title="connlab matrix", validate_by_name=True)

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    title: Annotated[Text, Field(description="What it shows, in a few words")]
    experiment: Annotated[Text, Field(description="Which published experiment this reproduces, such as B2")]
    question: Annotated[Text, Field(description="What the matrix answers")]
    scenarios: Annotated[
        list[Text],
        Field(
            min_length=1,
            description="What each cell runs, by name or, with a slash, by its folder from here; several are an axis",
        ),
    ]
    knobs: Annotated[Settings, Field(description="What is the same in all cells, and differs from the scenario")] = (
        Field(default_factory=dict)
    )
    axes: Annotated[
        dict[str, Any],
        Field(min_length=1, description="What varies: a knob and its values, or a name and its named variants"),
        WithJsonSchema(
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "anyOf": [
                        {"type": "array", "minItems": 1, "items": _VALUE},
                        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
                    ]
                },
            }
        ),
    ]
    baseline: Annotated[
        dict[str, bool | int | float | str],
        Field(description="The level on each axis of the cell that others are compared with; the first of each"),
    ] = Field(default_factory=dict)
    figures: Annotated[
        list[Text], Field(description="What it is about: figures of its cells that a comparison tells first")
    ] = Field(default_factory=list)
    predictions: Annotated[
        Annotated[list[Claim], Field(min_length=1)] | None,
        Field(description="What is predicted of each run; the scenario's own predictions"),
    ] = None


def matrix_names() -> list[str]:
    """Return the names of all matrices."""
    return sorted(file.stem for file in (paths.SCENARIOS / "matrices").glob("*.yaml"))


def read_matrix(name: str) -> tuple[Matrix, Document]:
    """Read a matrix by its name in the folder of scenarios, or by its file, wherever that lies.

    Raises:
        BadInput: there is none of that name, or its file is wrong.
    """
    file = _file(name)
    document = documents.read(file)
    if not re.fullmatch(NAME_PATTERN, file.stem):
        raise BadInput(Problem("a matrix's name holds small letters, digits and hyphens", paths.shown(file)))
    if not isinstance(document.content, Mapping):
        raise BadInput(Problem("a matrix is a mapping of keys to values", document.where(())))
    try:
        return Matrix.model_validate(document.content), document
    except ValidationError as error:
        raise refuse_findings(error, document, lambda one, at: knob_sentence(one, siblings(Matrix, at))) from None


def _file(name: str) -> Path:
    if name.endswith(_SUFFIX):
        if not Path(name).is_file():
            raise BadInput(Problem(f"there is no file '{name}'", hint="'connlab matrix' lists the matrices"))
        return Path(name).resolve()
    known = matrix_names()
    if name not in known:
        what = f"unknown matrix '{name}'" if name else "no matrix is named"
        hint = did_you_mean(name, known) or "'connlab matrix' lists them"
        raise BadInput(Problem(what, hint=hint))
    return paths.SCENARIOS / "matrices" / f"{name}{_SUFFIX}"


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
                gathered.extend([Problem(f"the scenario '{one}' appears twice", document.where(("scenarios", index)))])
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
        hint = nearest_knob(axis)
        raise BadInput(
            Problem(f"the axis '{axis}' has a list of values, and is not a knob", document.where(location), hint)
        )
    levels: dict[str, Change] = {}
    for index, value in enumerate(values):
        where = document.where((*location, index))
        if not isinstance(value, bool | int | float | str):
            raise BadInput(Problem(f"{axis} takes one value in each cell", where))
        level = format_knob_value(value, None)
        if level in levels:
            raise BadInput(Problem(f"{axis} has the value {level} twice", where))
        levels[level] = arms.read_change({axis: value}, {axis: where})
    return AxisChanges(axis, levels, is_knob=True)


def _named_side(axis: str, content: Mapping[str, Any], document: Document) -> AxisChanges:
    location = ("axes", axis)
    where = document.where(location)
    if axis in _OWN_AXES:
        raise BadInput(Problem(f"an axis of named variants cannot be called '{axis}': the lab makes that one", where))
    if not re.fullmatch(NAME_PATTERN, axis):
        what = f"the axis '{axis}' has named variants, so its own name holds small letters, digits and hyphens"
        hint = "a knob's axis takes a list of values" if may_be_knob(axis) else None
        raise BadInput(Problem(what, where, hint))
    levels: dict[str, Change] = {}
    for level, values in content.items():
        place = document.where((*location, level))
        if not isinstance(values, Mapping):
            raise BadInput(Problem(f"the variant '{level}' takes knobs and their values", place))
        levels[level] = arms.read_change(values, arms.locate_settings(values, document, (*location, level)))
    return AxisChanges(axis, levels, is_knob=False)


def contradictions(sides: Sequence[AxisChanges], fixed: Change) -> Iterator[Problem]:
    """Yield a problem for each setting that two axes move, or that an axis moves and the matrix fixes."""
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


# The longest name of a folder, less the time and the repetition in a run's id, with room to spare.
_CELL_NAME_MAX = 200


def plan_matrix(name: str, overrides: Iterable[str] = ()) -> Plan:
    """Read a matrix, by its name or its file, and plan its series.

    Raises:
        BadInput: anything is wrong with it or with one of its cells; all is listed, with file and line.
    """
    user = tuple(overrides)
    matrix, document = read_matrix(name)
    name = Path(name).stem if name.endswith(_SUFFIX) else name
    gathered = Gathered()
    sides = read_sides(matrix, document, gathered)
    fixed = Change()
    with gathered:
        fixed = arms.read_change(matrix.knobs, arms.locate_settings(matrix.knobs, document, ("knobs",)))
    gathered.extend(contradictions(sides, fixed))
    for one in (fixed, *(change for side in sides for change in side.levels.values())):
        with gathered:
            refuse_user_settings(user, one.touched, f"the matrix '{name}'")
    gathered.refuse()
    _within_cells(matrix, sides, document)
    stated = _stated(matrix, document)
    resolved: dict[str, tuple[ResolvedScenario, dict[str, str]]] = {}
    for cell, levels in _combinations(document, sides).items():
        change = _change(levels, sides, fixed)
        variant = Variant(change.overrides, change.path, predictions=stated)
        with gathered:
            where = ("axes",) if change.scenario else ("scenarios", 0)
            scenario = _from(document, change.scenario or matrix.scenarios[0], where)
            resolved[cell] = (resolve(scenario, user, variant), levels)
    gathered.refuse()
    gathered.extend(_same_results(document, {one.place for one, _ in resolved.values()}))
    gathered.extend(
        find_same_cells({cell: one for cell, (one, _) in resolved.items()}, lambda _: document.where(("axes",)))
    )
    cells = [one for one, _ in resolved.values()]
    gathered.extend(_without_predictions(cells, document))
    gathered.extend(compared_problems(matrix.figures, cells, lambda index: document.where(("figures", index))))
    gathered.refuse()
    planned = Plan(
        kind="matrix",
        name=name,
        title=matrix.title,
        question=matrix.question,
        overrides=user,
        rules=matrix,
        axes=tuple(_axis(side, resolved.values()) for side in sides),
        cells={cell: PlannedCell(build_cell(cell, one, levels), one) for cell, (one, levels) in resolved.items()},
        baseline=_baseline(matrix, document, sides),
        figures=tuple(matrix.figures),
        remark=remark_on_arms(cells),
    )
    require_duration(planned, document.where(("axes",)))
    return planned


def _within_cells(matrix: Matrix, sides: Sequence[AxisChanges], document: Document) -> None:
    count = math.prod(len(side.levels) for side in sides)
    if count > matrix.budget.cells:
        shape = " x ".join(str(len(side.levels)) for side in sides)
        what = f"the matrix has {shape} = {count:,} cells, and its budget is {matrix.budget.cells:,}"
        raise BadInput(Problem(what, document.where(("axes",)), "take values away, or raise budget.cells"))


def _from(document: Document, scenario: str, where: Location) -> str:
    """Read the path of a scenario's folder as the matrix writes it: from its own folder.

    Raises:
        BadInput: there is no such scenario; it cites the matrix.
    """
    named = scenario
    if places.is_path(scenario):
        named = str(paths.real(Path(document.file).parent / scenario))
    try:
        places.find(named)
    except BadInput as error:
        raise BadInput([replace(one, where=document.where(where)) for one in error.problems]) from None
    return named


def _same_results(document: Document, found: Collection[Place]) -> Iterator[Problem]:
    """Yield a problem where two folders of one name would share the folder of their results."""
    for name, count in Counter(place.slug for place in found).items():
        if count > 1:
            where = document.where(("scenarios",))
            yield Problem(f"{count} of the scenarios' folders are named {name}", where, "rename one of them")


def _combinations(document: Document, sides: Sequence[AxisChanges]) -> dict[str, dict[str, str]]:
    """Name every cell, and return its level on each axis."""
    short = short_names([side.name for side in sides])
    cells: dict[str, dict[str, str]] = {}
    for combination in itertools.product(*(side.levels for side in sides)):
        levels = {side.name: level for side, level in zip(sides, combination, strict=True)}
        name = "-".join(_part(side, short[side.name], levels[side.name]) for side in sides)
        if name in cells or not name or len(name) > _CELL_NAME_MAX:
            fault = "two cells would both be called" if name in cells else "a cell would be called"
            hint = "use named variants, with short names that differ in letters and digits"
            raise BadInput(Problem(f"{fault} '{name}'", document.where(("axes",)), hint))
        cells[name] = levels
    return cells


def _change(levels: Mapping[str, str], sides: Sequence[AxisChanges], fixed: Change) -> Change:
    """Put together what a cell changes: what is fixed, and its level on each axis. They touch different things."""
    changes = [fixed, *(side.levels[levels[side.name]] for side in sides)]
    return Change(
        overrides=tuple(override for change in changes for override in change.overrides),
        path=next((change.path for change in changes if change.path), None),
        scenario=next((change.scenario for change in changes if change.scenario), None),
    )


def _stated(matrix: Matrix, document: Document) -> tuple[PlacedPrediction, ...] | None:
    if matrix.predictions is None:
        return None
    return tuple(
        PlacedPrediction(one, document.where(("predictions", index, "expression")))
        for index, one in enumerate(matrix.predictions)
    )


def _without_predictions(cells: Iterable[ResolvedScenario], document: Document) -> Iterator[Problem]:
    """Yield a problem for each scenario that predicts something about its arms alone, which no cell has."""
    for scenario in dict.fromkeys(one.slug for one in cells if not one.predictions):
        what = f"all that {scenario} predicts is about its arms, and a matrix runs it without them"
        yield Problem(what, document.where(("scenarios",)), "write predictions into the matrix")


def _part(side: AxisChanges, short: str, level: str) -> str:
    return f"{short}-{slugify(level)}" if side.is_knob else slugify(level)


def _axis(side: AxisChanges, cells: Iterable[tuple[ResolvedScenario, dict[str, str]]]) -> Axis:
    """Describe an axis; a level's values are read off a cell that has it."""
    sample = {levels[side.name]: one for one, levels in cells}
    return Axis(
        name=side.name,
        levels=[
            Level(
                name=level,
                scenario=change.scenario,
                path=list(sample[level].scenario.path) if change.path else None,
                knobs={override.knob: sample[level].values[override.knob] for override in change.overrides},
            )
            for level, change in side.levels.items()
        ],
    )


def _baseline(matrix: Matrix, document: Document, sides: Sequence[AxisChanges]) -> str:
    short = short_names([side.name for side in sides])
    asked = {axis: format_knob_value(level, None) for axis, level in matrix.baseline.items()}
    by_name = {side.name: side for side in sides}
    for axis, level in asked.items():
        where = document.where(("baseline", axis))
        if axis not in by_name:
            raise BadInput(Problem(f"the baseline names no axis '{axis}'", where, did_you_mean(axis, by_name)))
        if level not in by_name[axis].levels:
            known = ", ".join(by_name[axis].levels)
            raise BadInput(Problem(f"the axis '{axis}' has no level '{level}'", where, f"it has {known}"))
    chosen = {side.name: asked.get(side.name, next(iter(side.levels))) for side in sides}
    return "-".join(_part(side, short[side.name], chosen[side.name]) for side in sides)
