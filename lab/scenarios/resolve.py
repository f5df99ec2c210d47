"""From a scenario's name to what will be run, checked as a whole."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from analysis.expressions import Expression, ExpressionError
from analysis.expressions.values import Kind
from analysis.formatting import format_ms, format_number
from analysis.verdicts.predictions import check_known
from formats.predictions import Claim
from lab.errors import BadInput, Problem
from lab.scenarios import checks, preflight
from lab.scenarios.knobs import format_knob
from lab.scenarios.resolved import AS_WRITTEN, ResolvedScenario, Stated, Variant, load_unchecked


def resolve(
    name: str,
    overrides: Iterable[str] = (),
    folder: Path | None = None,
    variant: Variant = AS_WRITTEN,
    preset: str | None = None,
) -> ResolvedScenario:
    """Read a scenario, apply a preset, a variant and overrides (`knob=value`), and check that the whole makes sense.

    Its words are filled in from what is then set.

    The scenario is given by its name, or by the path of its folder. What the user sets goes over what the preset sets,
    and so does what the variant sets.

    Raises:
        BadInput: anything is wrong; all that was found is listed, with file, line and the nearest valid name.
    """
    effective = load_unchecked(name, overrides, folder, variant, preset)
    problems = list(checks.problems_of(effective))
    if not any(checks.path_problems(effective)):
        problems += template_problems(effective)
    if problems:
        raise BadInput(problems)
    return fill_templates(effective)


_Claim = TypeVar("_Claim", bound=Claim)

# `{{` and `}}` are braces.
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_HINT = "write a knob, or an expression over knobs and model, in braces; {{ for a brace"


def template_problems(effective: ResolvedScenario) -> Iterator[Problem]:
    """Yield each place in title, question and predictions of one run that its settings cannot fill."""
    texts = [("title", effective.scenario.title, effective.where("title"))]
    texts.append(("question", effective.scenario.question, effective.where("question")))
    for index, one in enumerate(effective.scenario.predictions):
        if effective.variant.predictions is None and one.judges(effective.variant.arm):
            texts.append(
                (f"prediction '{one.id}'", one.description, effective.where("predictions", index, "description"))
            )
    of_cell = effective.variant.predictions or ()
    texts.extend((f"prediction '{one.prediction.id}'", one.prediction.description, one.where) for one in of_cell)
    for what, text, where in texts:
        for place in _PLACE.finditer(text):
            wrong = _wrong(effective, place)
            if wrong is not None:
                yield Problem(f"{what}: {place[0]}: {wrong}", where, _HINT)


def fill_templates(effective: ResolvedScenario) -> ResolvedScenario:
    """Return the scenario with its words as its settings make them; what only an arm can fill stays as written."""
    scenario, variant = effective.scenario, effective.variant
    if variant.predictions is not None:
        stated = tuple(Stated(_said(effective, one.prediction), one.where) for one in variant.predictions)
        variant = replace(variant, predictions=stated)
    words = {
        "title": _fill(effective, scenario.title),
        "question": _fill(effective, scenario.question),
        "predictions": [_said(effective, one) for one in scenario.predictions],
    }
    return replace(effective, scenario=scenario.model_copy(update=words), variant=variant)


def _said(effective: ResolvedScenario, claim: _Claim) -> _Claim:
    return claim.model_copy(update={"description": _fill(effective, claim.description)})


def _wrong(effective: ResolvedScenario, place: re.Match[str]) -> str | None:
    if place[1] is None:
        return "this brace has no partner" if len(place[0]) == 1 else None
    try:
        _read(effective, place[1])
    except ExpressionError as error:
        return str(error)
    return None


def _read(effective: ResolvedScenario, text: str) -> Expression | None:
    """Read what stands between braces; None for the name of a knob alone, which may be text."""
    knobs = {**effective.on_path(), **effective.in_files()}
    if text in knobs:
        return None
    return check_known(text, effective.roles, knobs, Kind.NUMBER)


def _fill(effective: ResolvedScenario, text: str) -> str:
    return _PLACE.sub(lambda place: _shown(effective, place), text) if "{" in text or "}" in text else text


def _shown(effective: ResolvedScenario, place: re.Match[str]) -> str:
    if place[1] is None:
        return place[0][0]
    if _wrong(effective, place) is not None:
        return place[0]
    expression = _read(effective, place[1])
    if expression is None:
        knob, value = effective.registry.knobs.get(place[1]), effective.values[place[1]]
        if isinstance(value, bool) or not isinstance(value, int):
            return format_knob(place[1], value, effective.registry.knobs)
        return format_ms(value) if knob is not None and knob.is_duration else format_number(value)
    known = preflight.values_before_run(effective, expression.names)
    if set(expression.names) - set(known):
        return "?"
    result = expression.evaluate(known.__getitem__)
    return format_number(result) if isinstance(result, int | float) else "?"
