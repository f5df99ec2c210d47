"""Judges predictions: checks an expression before a run, and finds its status after one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from analysis import figures
from analysis.diagnosis.health import Evidence
from analysis.expressions import Expression, ExpressionError, idle_parts, parse, respelled
from analysis.expressions.values import Kind, Number, Unknown, Value, is_number, unknown
from analysis.figures import Run, Scope
from formats.predictions import Truth
from formats.role import Role

# A prediction may be about some settings only.
Outcome = Literal[Truth, "not-applicable"]

# What begins the names of figures that are what they are whatever load was put on: the kernel's settings, and of the
# ledger what has to add up for any load. How many requests it counts depends on the load as all else does.
_OF_ANY_LOAD = ("ledger.identities.", "ledger.unexplained", "sysctl.")


_MODELLED = "model."


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a prediction held, the value of each name in it, and why the status is unknown where it is."""

    status: Truth
    measured: dict[str, Value]
    why: str | None


def check_prediction(text: str, path: Mapping[str, Role], knobs: Mapping[str, object]) -> Expression:
    """Return the expression of a prediction, if a run could refute each part of it; raise ExpressionError if not."""
    expression = check(text, path, knobs)
    kind_of = figures.scope(path, knobs).kind_of
    for column, why in idle_parts(expression, kind_of, lambda name: name in knobs or name.startswith(_MODELLED)):
        raise ExpressionError(why, column)
    return expression


def check(text: str, path: Mapping[str, Role], knobs: Mapping[str, object], wanted: Kind = Kind.TRUTH) -> Expression:
    """Return an expression, if a run of this path with these knobs can decide it, and it is of the wanted kind.

    Raise ExpressionError with the column if not.
    """
    expression = parse(text)
    _check_names(expression, figures.scope(path, knobs), wanted)
    return expression


def check_known(
    text: str, path: Mapping[str, Role], knobs: Mapping[str, object], wanted: Kind = Kind.TRUTH
) -> Expression:
    """Return an expression whose value settings decide before a run; raise ExpressionError for any other."""
    expression = check(text, path, knobs, wanted)
    for name, column in expression.names_with_columns:
        if name not in knobs and not name.startswith(_MODELLED):
            raise ExpressionError(f"{name} is measured; only knobs and model are known before a run", column)
    return expression


def _check_names(expression: Expression, scope: Scope, wanted: Kind = Kind.TRUTH) -> None:
    kinds: dict[str, Kind] = {}
    for name, column in expression.names_with_columns:
        try:
            kinds[name] = scope.kind_of(name)
        except figures.UnknownFigure as error:
            raise ExpressionError(respelled(expression.text, column, scope.has) or str(error), column) from error
    expression.check(kinds.__getitem__, wanted)


def judge(run: Run, text: str) -> Judgement:
    """Find whether a prediction held in a run; a run that did not complete decides none.

    If the load was not the requested one, predictions about it are unknown, whichever observer counted.
    """
    value, measured = _evaluate(run, text, Kind.TRUTH)
    if isinstance(value, bool) and any(_depends_on_load(run, name) for name in measured):
        value = run.health.spoilt(Evidence.LOAD) or value
    if isinstance(value, bool):
        return Judgement("true" if value else "false", measured, None)
    why = value if isinstance(value, Unknown) else unknown("the expression is not a truth value")
    return Judgement("unknown", measured, why.why)


def keeps_out(run: Run, when: str) -> tuple[Outcome, Judgement] | None:
    """Find whether the condition of a prediction keeps it out of the verdict on a run.

    Returns:
        The prediction's outcome, and what is known of the condition; None if the prediction applies.
    """
    # Settings decide it, also where the load was not the one that was asked for.
    value, measured = _evaluate(run, when, Kind.TRUTH)
    if value is True:
        return None
    if value is False:
        return "not-applicable", Judgement("false", measured, f"it is about other settings: {when}")
    why = value.why if isinstance(value, Unknown) else "the condition is not a truth value"
    return "unknown", Judgement("unknown", measured, f"whether it applies is unknown: {why}")


def _depends_on_load(run: Run, name: str) -> bool:
    return name not in run.raw.manifest.knobs and not name.startswith(_OF_ANY_LOAD)


def number(run: Run, text: str) -> Number | Unknown:
    """Return what an expression that is a number comes to in a run; a run that did not complete gives none."""
    value, _ = _evaluate(run, text, Kind.NUMBER)
    return value if is_number(value) or isinstance(value, Unknown) else unknown("the expression is not a number")


def _evaluate(run: Run, text: str, wanted: Kind) -> tuple[Value, dict[str, Value]]:
    """Return the value of an expression in a run, and those of the names in it."""
    manifest = run.raw.manifest
    knobs = {name: knob.value for name, knob in manifest.knobs.items()}
    try:
        expression = parse(text)
        # Another machine's kernel may have other counters than this one's: what is not there is unknown by itself.
        scope = figures.Scope(manifest.roles, knobs, frozenset())
        for name in filter(scope.leaves_open, expression.names):
            return unknown(f"{name} has no value: the scenario's own configuration leaves it open, or says several"), {}
        _check_names(expression, scope, wanted)
    except ExpressionError as error:
        return unknown(f"the expression is wrong: {error}"), {}
    measured = {name: figures.value(run, name) for name in expression.names}
    if isinstance(run.raw.window, Unknown):
        return run.raw.window, measured
    return expression.evaluate(measured.__getitem__), measured
