"""Finds predictions that notice nothing: each part of a prediction has to fail for some change of recorded figures.

What a run might have measured in place of what it did, and a prediction has to notice, is small and plausible: a
counter off by one, a packet lost, one request with another outcome, one observer taken for another, a time that is
half or twice as long, a few of what there was hardly any of.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from analysis.expressions import Expression, parse, parts
from analysis.expressions.tree import Chain, Name, Node
from analysis.expressions.values import Unknown, Value, is_number, unknown
from lab.errors import Problem
from lab.scenarios import forecast
from lab.scenarios.model import Prediction
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms
from tools.recording import recorded_figures, recorded_runs
from tools.recording.recorded_figures import WHOLE, Recorded, Specimen

# So many more of something that there was hardly any of are no chance.
_A_FEW = 4
# A SYN that is sent again comes a second later.
_SYN_RETRY_MS = 1_000
_GOOD = (".ok", ".served", ".established", ".answered")
_BAD = (".failed", ".failed_timeout", ".unanswered", ".syn_failed", ".total_failed")


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


def mutate(scenarios: Iterable[ResolvedScenario]) -> Iterator[Mutated]:
    """Change what each scenario's recorded runs measured, and judge its predictions by that."""
    for resolved in scenarios:
        specimen = recorded_figures.read(resolved.slug)
        if specimen is None:
            yield Mutated(resolved.slug, 0, [], "no reproduced run of it is recorded")
        elif specimen.content != recorded_runs.content(resolved):
            yield Mutated(resolved.slug, 0, [], "it has changed since its run was recorded")
        else:
            tried, idle = 0, []
            settings = {one.variant.arm or WHOLE: one for one in arms.resolve_variants(resolved)}
            for index, prediction in enumerate(resolved.scenario.predictions):
                where = resolved.where("predictions", index, "expression")
                for arm, values in _about(prediction, specimen, settings):
                    parts, problems = _try(prediction, arm, values, where, resolved)
                    tried += parts
                    idle += problems
            yield Mutated(resolved.slug, tried, idle)


def _about(
    prediction: Prediction, specimen: Specimen, settings: Mapping[str, ResolvedScenario]
) -> Iterator[tuple[str, Mapping[str, Recorded]]]:
    """Return the arms that a prediction is about, if it applies to their settings, with what was measured there."""
    if prediction.compares_arms:
        yield "", specimen.between
        return
    for arm, values in specimen.arms.items():
        if prediction.judges(None if arm == WHOLE else arm) and forecast.applies(prediction, settings[arm]) is True:
            yield "" if arm == WHOLE else f" in the arm {arm}", values


def _try(
    prediction: Prediction, arm: str, recorded: Mapping[str, Recorded], where: str, resolved: ResolvedScenario
) -> tuple[int, list[Problem]]:
    values = {
        name: tuple(value) if isinstance(value, list) else unknown("not recorded") if value is None else value
        for name, value in recorded.items()
    }
    expression = parse(prediction.expression)
    named = f"prediction '{prediction.id}'{arm}"
    if expression.evaluate(values.__getitem__) is not True:
        return 1, [Problem(f"{named} is not true of the recorded run", where, "record it again")]
    knobs = resolved.on_path
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
    """Return whether a name stands for what is known before a run, of an arm too."""
    figure = name.split(".", 2)[2] if name.startswith("arms.") else name
    return figure in knobs or figure.startswith("model.")


def summary(found: Iterable[Mutated]) -> Iterator[str]:
    """Return what became of all, as lines for a reader."""
    tried = 0
    for one in found:
        tried += one.tried
        if one.why:
            yield f"{one.slug}: not tried: {one.why}; record one: make record SCENARIO={one.slug}"
        yield from map(str, one.idle)
    yield f"{tried} parts of predictions were tried"


def unmoved(expression: Expression, values: Mapping[str, Value], measured: Collection[str]) -> Iterator[Node]:
    """Return the parts of a prediction that stay true, whichever measured figure of theirs is changed.

    A part that says only that there was any, beside other parts, is left out.

    Args:
        expression: the prediction's, true of these values.
        values: of each name in it, as a run measured them or its settings say.
        measured: the names that a run measures.
    """
    stated = list(parts(expression.tree))
    known = {name: values[name] for name in measured}
    for part in stated:
        if len(stated) > 1 and _says_some(part):
            continue
        if all(part.value({**values, **change}.__getitem__) is True for change in changes(known)):
            yield part


def _says_some(part: Node) -> bool:
    """Return whether a part says only that there was any: `client.dials.failed > 0`; those beside it say more."""
    if not isinstance(part, Chain) or part.signs != (">",):
        return False
    return isinstance(part.operands[0], Name) and part.operands[1].value(_no_name) == 0


def _no_name(name: str) -> Value:
    return unknown(f"{name} is not a number")


def changes(values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Return what could have been measured in place of these values; each change has the values that differ."""
    for name, value in values.items():
        yield from ({name: other} for other in _others(value))
        if is_number(value) and "_ms." in name:
            yield {name: value + _SYN_RETRY_MS}
    yield _moved(values, "flows.", -1)
    yield _moved(values, "kernel.", +1)
    yield {**_ending(values, _GOOD, -1), **_ending(values, _BAD, +1)}
    yield from _swapped(values)


def _others(value: Value) -> Iterator[Value]:
    if isinstance(value, Unknown | str):
        return
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, tuple):
        yield from (value[:-1], tuple(2 * each for each in value), tuple(each / 2 for each in value))
        if value:
            yield (*value[:-1], value[-1] + _SYN_RETRY_MS)
            yield tuple(each + _SYN_RETRY_MS for each in value)
    else:
        yield from (value + 1, value - 1)
        yield from (2 * value, value / 2)
        if value < _A_FEW:
            yield value + _A_FEW


def _moved(values: Mapping[str, Value], prefix: str, by: int) -> dict[str, Value]:
    """All that one observer counted, by one."""
    return {name: value + by for name, value in values.items() if name.startswith(prefix) and is_number(value)}


def _ending(values: Mapping[str, Value], endings: tuple[str, ...], by: int) -> dict[str, Value]:
    return {name: value + by for name, value in values.items() if name.endswith(endings) and is_number(value)}


def _swapped(values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Two observers of the same kind, such as sockets.k6 and sockets.nginx, or two arms, taken for each other."""
    names = sorted(values)
    for at, name in enumerate(names):
        for other in names[at + 1 :]:
            if name.partition(".")[0] == other.partition(".")[0] and values[name] != values[other]:
                yield {name: values[other], other: values[name]}
