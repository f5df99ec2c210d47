"""Finds predictions that notice nothing: each part of a prediction has to fail for some change of recorded figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from analysis.expressions import parse
from analysis.expressions.refutable import parts
from analysis.expressions.values import unknown
from lab.errors import Problem
from lab.experiments import lines, specimens
from lab.experiments.specimens import WHOLE, Recorded, Specimen
from lab.scenario import foreseen
from lab.scenario.effective import Effective
from lab.scenario.fields import Prediction
from lab.series import arms


@dataclass(frozen=True)
class Mutated:
    """What became of the predictions of a scenario.

    Attributes:
        tried: how many parts of predictions were tried, over all arms.
        idle: those that no change makes false or unknown, and those that are not true of what was recorded.
        why: why nothing was tried, None if something was.
    """

    slug: str
    tried: int
    idle: list[Problem]
    why: str | None = None


def mutate(scenarios: Iterable[Effective]) -> Iterator[Mutated]:
    """Change what each scenario's recorded runs measured, and judge its predictions by that."""
    for effective in scenarios:
        specimen = specimens.read(effective.slug)
        if specimen is None:
            yield Mutated(effective.slug, 0, [], "no reproduced run of it is recorded")
        elif specimen.content != lines.content(effective):
            yield Mutated(effective.slug, 0, [], "it has changed since its run was recorded")
        else:
            tried, idle = 0, []
            settings = {one.variant.arm or WHOLE: one for one in arms.variants(effective)}
            for index, prediction in enumerate(effective.scenario.predictions):
                where = effective.where("predictions", index, "expression")
                for arm, values in _about(prediction, specimen, settings):
                    parts, problems = _try(prediction, arm, values, where, effective)
                    tried += parts
                    idle += problems
            yield Mutated(effective.slug, tried, idle)


def _about(
    prediction: Prediction, specimen: Specimen, settings: Mapping[str, Effective]
) -> Iterator[tuple[str, Mapping[str, Recorded]]]:
    """Give the arms that a prediction is about, if it applies to their settings, with what was measured there."""
    if prediction.compares_arms:
        yield "", specimen.between
        return
    for arm, values in specimen.arms.items():
        if prediction.judges(None if arm == WHOLE else arm) and foreseen.applies(prediction, settings[arm]) is True:
            yield "" if arm == WHOLE else f" in the arm {arm}", values


def _try(
    prediction: Prediction, arm: str, recorded: Mapping[str, Recorded], where: str, effective: Effective
) -> tuple[int, list[Problem]]:
    # It brings numpy and duckdb, which only commands need that read predictions.
    from analysis.expressions.refutable import unmoved  # noqa: PLC0415

    values = {
        name: tuple(value) if isinstance(value, list) else unknown("not recorded") if value is None else value
        for name, value in recorded.items()
    }
    expression = parse(prediction.expression)
    named = f"prediction '{prediction.id}'{arm}"
    if expression.evaluate(values.__getitem__) is not True:
        return 1, [Problem(f"{named} is not true of the recorded run", where, "record it again")]
    knobs = effective.on_path()
    measured = [name for name in expression.names if not _is_settled(name, knobs)]
    idle = [
        Problem(
            f"{named}: no change of what was measured makes this part false: column {part.column}",
            where,
            "state it so that another behaviour would refute it",
        )
        for part in unmoved(expression, values, measured)
    ]
    return sum(1 for _ in parts(expression.tree)), idle


def _is_settled(name: str, knobs: Mapping[str, object]) -> bool:
    """Whether a name stands for what is known before a run, of an arm too."""
    figure = name.split(".", 2)[2] if name.startswith("arms.") else name
    return figure in knobs or figure.startswith("model.")


def summary(found: Iterable[Mutated]) -> Iterator[str]:
    """Say what became of all, as lines for a reader."""
    tried = 0
    for one in found:
        tried += one.tried
        if one.why:
            yield f"{one.slug}: not tried: {one.why}; record one: make record SCENARIO={one.slug}"
        yield from map(str, one.idle)
    yield f"{tried} parts of predictions were tried"
