"""A scenario's words over its settings: `{load.users} users` is `103 users`, and `9 users` after `SET=load.users=9`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from analysis.expressions import ExpressionError
from analysis.expressions.values import Kind
from analysis.formatting import number, spoken
from formats.predictions import Claim
from lab.errors import Problem
from lab.scenario.catalogue import show_value
from lab.scenario.effective import Effective, Stated

if TYPE_CHECKING:
    from analysis.expressions import Expression

_Says = TypeVar("_Says", bound=Claim)

# `{{` and `}}` are braces.
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_WAY_ON = "write a knob, or an expression over knobs and model, in braces; {{ for a brace"


def problems(effective: Effective) -> Iterator[Problem]:
    """Give each place in title, question and predictions of one run that its settings cannot fill."""
    texts = [("title", effective.scenario.title, effective.where("title"))]
    texts.append(("question", effective.scenario.question, effective.where("question")))
    for index, one in enumerate(effective.scenario.predictions):
        if effective.variant.predictions is None and one.judges(effective.variant.arm):
            texts.append((f"prediction '{one.id}'", one.says, effective.where("predictions", index, "says")))
    of_cell = effective.variant.predictions or ()
    texts.extend((f"prediction '{one.prediction.id}'", one.prediction.says, one.where) for one in of_cell)
    for what, text, where in texts:
        for place in _PLACE.finditer(text):
            wrong = _wrong(effective, place)
            if wrong is not None:
                yield Problem(f"{what}: {place[0]}: {wrong}", where, _WAY_ON)


def filled(effective: Effective) -> Effective:
    """Give the scenario with its words as its settings make them; what only an arm can fill stays as it is written."""
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


def _said(effective: Effective, claim: _Says) -> _Says:
    return claim.model_copy(update={"says": _fill(effective, claim.says)})


def _wrong(effective: Effective, place: re.Match[str]) -> str | None:
    if place[1] is None:
        return "this brace has no partner" if len(place[0]) == 1 else None
    try:
        _read(effective, place[1])
    except ExpressionError as error:
        return str(error)
    return None


def _read(effective: Effective, text: str) -> Expression | None:
    """Read what stands between braces; None for the name of a knob alone, which may be text."""
    # It brings numpy and duckdb, which only commands need that read predictions.
    from analysis.verdicts import predictions  # noqa: PLC0415

    knobs = {**effective.on_path(), **effective.in_files()}
    if text in knobs:
        return None
    return predictions.check_known(text, effective.roles, knobs, Kind.NUMBER)


def _fill(effective: Effective, text: str) -> str:
    return _PLACE.sub(lambda place: _shown(effective, place), text) if "{" in text or "}" in text else text


def _shown(effective: Effective, place: re.Match[str]) -> str:
    from lab.scenario import foreseen  # noqa: PLC0415 # as above

    if place[1] is None:
        return place[0][0]
    if _wrong(effective, place) is not None:
        return place[0]
    expression = _read(effective, place[1])
    if expression is None:
        knob, value = effective.world.catalogue.get(place[1]), effective.values[place[1]]
        if isinstance(value, bool) or not isinstance(value, int):
            return show_value(place[1], value)
        return spoken(value) if knob is not None and knob.is_duration else number(value)
    known = foreseen.values_before_run(effective, expression.names)
    if set(expression.names) - set(known):
        return "?"
    result = expression.evaluate(known.__getitem__)
    return number(result) if isinstance(result, int | float) else "?"
