"""From a scenario's name to what will be run, checked as a whole."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from analysis.expressions import Expression, ExpressionError
from analysis.expressions.values import Kind
from analysis.formatting import format_ms, format_number
from analysis.verdicts.predictions import check_known
from formats.predictions import Claim
from lab.errors import BadInput, Problem
from lab.scenarios import checks, forecast
from lab.scenarios.knobs import format_knob
from lab.scenarios.overrides import Override
from lab.scenarios.resolved import AS_WRITTEN, PlacedPrediction, ResolvedScenario, Variant, load_unchecked


def resolve(
    name: str,
    overrides: Iterable[str] = (),
    variant: Variant = AS_WRITTEN,
    preset: str | None = None,
    found: tuple[Override, ...] = (),
) -> ResolvedScenario:
    """Read a scenario, apply a preset, a variant and overrides (`knob=value`), and check that the whole makes sense.

    Its words are filled in from what is then set.

    The scenario is given by its name, or by the path of its folder. What the user sets goes over what the preset sets,
    and so does what the variant sets. `found` is what the engine found of services that run already.

    Raises:
        BadInput: anything is wrong; all that was found is listed, with file, line and the nearest valid name.
    """
    resolved = load_unchecked(name, overrides, variant, preset, found)
    problems = list(checks.problems_of(resolved))
    if not any(checks.path_problems(resolved)):
        problems += template_problems(resolved)
    if problems:
        raise BadInput(problems)
    return fill_templates(resolved)


_Claim = TypeVar("_Claim", bound=Claim)

# `{{` and `}}` are braces.
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_HINT = "write a knob, or an expression over knobs and model, in braces; {{ for a brace"


def template_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield each place in title, question and predictions of one run that its settings cannot fill."""
    texts = [("title", resolved.scenario.title, resolved.where("title"))]
    texts.append(("question", resolved.scenario.question, resolved.where("question")))
    for index, one in enumerate(resolved.scenario.predictions):
        if resolved.variant.predictions is None and one.judges(resolved.variant.arm):
            texts.append(
                (f"prediction '{one.id}'", one.description, resolved.where("predictions", index, "description"))
            )
    of_cell = resolved.variant.predictions or ()
    texts.extend((f"prediction '{one.prediction.id}'", one.prediction.description, one.where) for one in of_cell)
    for what, text, where in texts:
        for place in _PLACE.finditer(text):
            wrong = _wrong(resolved, place)
            if wrong is not None:
                yield Problem(f"{what}: {place[0]}: {wrong}", where, _HINT)


def fill_templates(resolved: ResolvedScenario) -> ResolvedScenario:
    """Return the scenario with its words as its settings make them; what only an arm can fill stays as written."""
    scenario, variant = resolved.scenario, resolved.variant
    if variant.predictions is not None:
        stated = tuple(PlacedPrediction(_said(resolved, one.prediction), one.where) for one in variant.predictions)
        variant = replace(variant, predictions=stated)
    words = {
        "title": _fill(resolved, scenario.title),
        "question": _fill(resolved, scenario.question),
        "predictions": [_said(resolved, one) for one in scenario.predictions],
    }
    return replace(resolved, scenario=scenario.model_copy(update=words), variant=variant)


def _said(resolved: ResolvedScenario, claim: _Claim) -> _Claim:
    return claim.model_copy(update={"description": _fill(resolved, claim.description)})


def _wrong(resolved: ResolvedScenario, place: re.Match[str]) -> str | None:
    if place[1] is None:
        return "this brace has no partner" if len(place[0]) == 1 else None
    try:
        _read(resolved, place[1])
    except ExpressionError as error:
        return str(error)
    return None


def _read(resolved: ResolvedScenario, text: str) -> Expression | None:
    """Read what stands between braces; None for the name of a knob alone, which may be text."""
    knobs = {**resolved.on_path, **resolved.in_files()}
    if text in knobs:
        return None
    return check_known(text, resolved.roles, knobs, Kind.NUMBER)


def _fill(resolved: ResolvedScenario, text: str) -> str:
    return _PLACE.sub(lambda place: _shown(resolved, place), text) if "{" in text or "}" in text else text


def _shown(resolved: ResolvedScenario, place: re.Match[str]) -> str:
    if place[1] is None:
        return place[0][0]
    if _wrong(resolved, place) is not None:
        return place[0]
    expression = _read(resolved, place[1])
    if expression is None:
        knob, value = resolved.registry.knobs.get(place[1]), resolved.values[place[1]]
        if isinstance(value, bool) or not isinstance(value, int):
            return format_knob(place[1], value, resolved.registry.knobs)
        return format_ms(value) if knob is not None and knob.is_duration else format_number(value)
    known = forecast.values_before_run(resolved, expression.names)
    if set(expression.names) - set(known):
        return "?"
    result = expression.evaluate(known.__getitem__)
    return format_number(result) if isinstance(result, int | float) else "?"
