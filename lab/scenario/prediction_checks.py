"""Checks a scenario's expressions before a run: their grammar, and that the lab measures what they name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lab.errors import Problem
from lab.scenario import twins
from lab.scenario.effective import Effective
from lab.scenario.fields import Published

if TYPE_CHECKING:
    from analysis.expressions import Expression


def prediction_problems(effective: Effective) -> Iterator[Problem]:
    """Give every prediction that could not be judged, whatever the run brought."""
    # analysis is loaded only by the commands that read predictions.
    from analysis.expressions import ExpressionError  # noqa: PLC0415
    from analysis.expressions.values import Kind  # noqa: PLC0415
    from analysis.verdict import predictions  # noqa: PLC0415

    knobs = {**effective.on_path(), **effective.in_files()}
    seen: set[str] = set()
    for index, prediction in enumerate(effective.scenario.predictions):
        if prediction.id in seen:
            yield Problem(f"two predictions are named '{prediction.id}'", effective.where("predictions", index, "id"))
        seen.add(prediction.id)
        if effective.scenario.arms is None and (prediction.arms or prediction.compares_arms):
            what = f"prediction '{prediction.id}' is about arms, and the scenario has none"
            yield Problem(what, effective.where("predictions", index), "write arms, or leave it to every run")
        if prediction.when is not None and prediction.compares_arms:
            what = f"prediction '{prediction.id}' compares arms, each with settings of its own: it has no one condition"
            yield Problem(what, effective.where("predictions", index, "when"), "leave 'when' out")
    yield from _claim_problems(effective, seen)
    yield from twins.problems(effective)
    for stated in effective.predictions:
        try:
            predictions.check_prediction(stated.prediction.expression, effective.roles, knobs)
            if stated.prediction.when is not None:
                predictions.check_known(stated.prediction.when, effective.roles, knobs)
        except ExpressionError as error:
            yield Problem(f"prediction '{stated.prediction.id}': {error}", stated.where)
    check = partial(predictions.check, path=effective.roles, knobs=knobs, wanted=Kind.NUMBER)
    yield from published_problems(effective, effective.published, check)


def _claim_problems(effective: Effective, predictions: Collection[str]) -> Iterator[Problem]:
    claim = effective.scenario.claim
    if claim is None:
        return
    if sum(map(bool, (claim.borne_out_by, claim.refuted_by, claim.undecided))) != 1:
        yield Problem(
            "a claim names predictions that confirm it, or predictions that refute it, or why it stays undecided",
            effective.where("claim"),
            "write borne_out_by, refuted_by or undecided",
        )
    for key, names in (("borne_out_by", claim.borne_out_by), ("refuted_by", claim.refuted_by)):
        for index, name in enumerate(names):
            if name not in predictions:
                yield Problem(f"no prediction is named '{name}'", effective.where("claim", key, index))


def published_problems(
    effective: Effective, published: Published | None, check: Callable[[str], Expression]
) -> Iterator[Problem]:
    """Give every figure beside a published experiment that could not be measured.

    Args:
        effective: where it stands.
        published: the figures; None if there are none.
        check: refuses a wrong expression by an ExpressionError.
    """
    from analysis.expressions import ExpressionError  # noqa: PLC0415

    for name, expression in published.here.items() if published else ():
        where = effective.where("published", "here", name)
        try:
            if not check(expression).names:
                yield Problem(f"published.here '{name}' names no figure", where, "docs/figures.md has the figures")
        except ExpressionError as error:
            yield Problem(f"published.here '{name}': {error}", where)
