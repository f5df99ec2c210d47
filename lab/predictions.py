"""Checks a scenario's predictions before a run: their grammar, and that the lab measures what they name."""

from __future__ import annotations

from collections.abc import Iterator

from lab.effective import Effective
from lab.errors import Problem


def prediction_problems(effective: Effective) -> Iterator[Problem]:
    """Give every prediction that could not be judged, whatever the run brought."""
    # analysis is loaded only by the commands that read predictions.
    from analysis import predictions  # noqa: PLC0415
    from analysis.expressions import ExpressionError, parse  # noqa: PLC0415

    knobs = effective.on_path()
    seen: set[str] = set()
    for index, prediction in enumerate(effective.scenario.predictions):
        if prediction.id in seen:
            yield Problem(f"two predictions are named '{prediction.id}'", effective.where("predictions", index, "id"))
        seen.add(prediction.id)
    for stated in effective.predictions:
        try:
            predictions.check(stated.prediction.expression, effective.scenario.path, knobs)
            if not parse(stated.prediction.expression).names:
                what = f"prediction '{stated.prediction.id}' names no figure: nothing that is measured could refute it"
                yield Problem(what, stated.where, "docs/figures.md has the figures")
        except ExpressionError as error:
            yield Problem(f"prediction '{stated.prediction.id}': {error}", stated.where)
