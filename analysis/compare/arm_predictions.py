"""Judges predictions that compare the arms of a series, as `arms.on.client.latency_ms.mean < arms.off.…`.

A figure of an arm is the mean over its runs. A comparison is true or false only where the bootstrap interval of its two
sides' difference lies on one side of zero; else it is unknown, and says how many repetitions it would take.

A series runs its arms in blocks: the first repetition of each, in shuffled order, then the second of each. Where every
arm has its run in enough blocks, blocks are resampled and not the arms' runs apart, so that what befell the machine in
a block befalls all arms of a resample alike.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Annotated

import numpy as np
from pydantic import Field

from analysis import formatting
from analysis.compare import intervals
from analysis.compare.arm_figures import PREFIX, ArmFigures, arm_identifier, arms_in, name_list_functions
from analysis.compare.comparison_file import Sample
from analysis.compare.intervals import FEWEST_OF_ONE, FEWEST_OF_TWO, Floats, Interval, suffice
from analysis.compare.replicates import Group
from analysis.expressions import Expression, ExpressionError, parse, respelled
from analysis.expressions.tree import Call, Chain, Junction, Name, Node, conjunction, disjunction
from analysis.expressions.values import Kind, Number, Unknown, Value, is_number, merge, unknown
from analysis.figures import Scope, UnknownFigure
from analysis.figures.catalogue import nearest
from analysis.output import Written
from formats.predictions import Claim, Truth

# Resamples of one arm alone, by which its share in the variance is known: to 3 %.
_SHARE_RESAMPLES = 1_999
# Significant digits of a difference, and of its bounds.
_DIGITS = 4


class ArmPrediction(Written):
    """One prediction over arms, and what became of it."""

    id: str
    description: Annotated[str, Field(description="The prediction in words")]
    expression: Annotated[str, Field(description="What decides it")]
    status: Truth
    measured: Annotated[dict[str, Sample], Field(description="Each name in the expression")]
    repetitions_needed: Annotated[
        int | None,
        Field(
            description="How many runs of each arm would decide it, if what was observed is the truth; null where it"
            " is decided, or where no number would"
        ),
    ]
    why: Annotated[str | None, Field(description="Why the status is unknown; null where it is not")]


def check(text: str, arms: Mapping[str, Scope], wanted: Kind = Kind.TRUTH) -> Expression:
    """Return the expression of a prediction over arms, or of what else is wanted, if a series can decide it.

    Raise ExpressionError if not. Of each arm the scope says what names can refer to in its runs.
    """
    expression = parse(text)
    scopes = {arm_identifier(arm): scope for arm, scope in arms.items()}
    kinds = {}
    for name, column in expression.names_with_columns:
        try:
            kinds[name] = _kind(name, column, scopes)
        except ExpressionError as error:
            spelling = respelled(text, column, partial(_has, scopes))
            raise ExpressionError(spelling or error.message, column) from error
    expression.check(kinds.__getitem__, wanted)
    for call in name_list_functions(expression.tree)[1].values():
        if len(arms_in(call)) > 1:
            raise ExpressionError(f"{call.function}() is taken in each run: of one arm, not of two", call.column)
    return expression


def _has(scopes: Mapping[str, Scope], name: str) -> bool:
    _, arm, figure = _parts(name)
    return arm in scopes and scopes[arm].has(figure)


def _parts(name: str) -> tuple[str, str, str]:
    prefix, arm, figure = (*name.split(".", 2), "", "")[:3]
    return prefix, arm, figure


def _kind(name: str, column: int, scopes: Mapping[str, Scope]) -> Kind:
    prefix, arm, figure = _parts(name)
    known = f"there are {', '.join(scopes)}"
    if prefix != PREFIX:
        raise ExpressionError(f"{name}: of which arm? Write arms.<arm>.{name}; {known}", column)
    if not figure:
        raise ExpressionError(f"{name} names no figure; write {PREFIX}.<arm>.<figure>", column)
    if arm not in scopes:
        near = nearest(arm, scopes)
        raise ExpressionError(f"there is no arm {arm}; {f'did you mean {near}?' if near else known}", column)
    try:
        kind = scopes[arm].kind_of(figure)
    except UnknownFigure as error:
        raise ExpressionError(str(error), column) from error
    if kind in (Kind.TRUTH, Kind.TEXT):
        raise ExpressionError(f"{figure} is {kind}; of an arm take a number", column)
    return kind


def judge(groups: Mapping[str, Group], prediction: Claim) -> ArmPrediction:
    """Return whether a prediction held in a series, of each arm's runs; one whose expression is wrong is unknown."""
    measured: dict[str, Sample] = {}
    needed = None
    try:
        expression, figures = _parse(groups, prediction.expression, Kind.TRUTH)
    except ExpressionError as error:
        value: Value = unknown(f"the expression is wrong: {error}")
    else:
        measured = {name: figures.sample(name) for name in expression.names}
        value, needed = _Judge(figures).judge(expression.tree)
    return ArmPrediction(
        id=prediction.id,
        description=prediction.description,
        expression=prediction.expression,
        status="unknown" if isinstance(value, Unknown) else "true" if value else "false",
        measured=measured,
        repetitions_needed=needed if isinstance(value, Unknown) else None,
        why=value.why if isinstance(value, Unknown) else None,
    )


def compute(groups: Mapping[str, Group], text: str) -> Number | Unknown:
    """Return what an expression over the arms' means comes to, if it is a number; one that is wrong is unknown."""
    try:
        expression, figures = _parse(groups, text, Kind.NUMBER)
    except ExpressionError as error:
        return unknown(f"the expression is wrong: {error}")
    missing = figures.missing(list(expression.names))
    if missing:
        return missing
    means = {name: figures.sample(name).mean or 0.0 for name in expression.names}
    value = expression.evaluate(means.__getitem__)
    return value if is_number(value) or isinstance(value, Unknown) else unknown("the expression is not a number")


def _parse(groups: Mapping[str, Group], text: str, wanted: Kind) -> tuple[Expression, ArmFigures]:
    """Read an expression over arms; functions of lists stand in it as names. Raise ExpressionError."""
    tree, calls = name_list_functions(parse(text).tree)
    expression = Expression(text, tree)
    expression.check(_is_number, wanted)
    return expression, ArmFigures({arm_identifier(arm): group for arm, group in groups.items()}, calls)


class _NoNumber(Exception):
    """Why the sides of a comparison have no difference."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The difference of a comparison's sides, right less left."""

    point: float
    interval: Interval
    variance: float


class _Judge:
    """Finds the truth of an expression from that of its comparisons; keeps how many repetitions they would take."""

    def __init__(self, figures: ArmFigures) -> None:
        self._figures = figures
        self._needed: list[int] = []

    def judge(self, tree: Node) -> tuple[Value, int | None]:
        """Return the truth, and the repetitions that the most demanding comparison needs; None if none says."""
        value = self._truth(tree)
        if not isinstance(value, bool | Unknown):
            value = unknown("the expression is not a truth value")
        return value, max(self._needed, default=None)

    def _truth(self, node: Node) -> Value:
        if isinstance(node, Junction):
            values = [self._truth(operand) for operand in node.operands]
            return conjunction(values) if node.word == "and" else disjunction(values)
        if isinstance(node, Call) and node.function == "not":
            value = self._truth(node.operands[0])
            return value if isinstance(value, Unknown) else not value
        kind = node.operands[0].kind(_is_number) if isinstance(node, Chain) else None
        if isinstance(node, Chain) and kind is Kind.TRUTH:
            return self._agree(node)
        if kind is Kind.TEXT:
            return node.value(_no_value)
        if isinstance(node, Chain | Call):
            return conjunction([self._compare(*each) for each in _comparisons(node)])
        return node.value(_no_value)

    def _agree(self, node: Chain) -> Value:
        """Compare truth values, which know but == and !=."""
        values = [self._truth(operand) for operand in node.operands]
        missing = [value for value in values if isinstance(value, Unknown)]
        if missing:
            return merge(*missing)
        pairs = zip(pairwise(values), node.signs, strict=True)
        return all((left == right) == (sign == "==") for (left, right), sign in pairs)

    def _compare(self, left: Node, sign: str, right: Node) -> Value:
        difference = Call(left.column, (right, left), "-")
        nodes = (each for side in (left, right) for each in side.walk())
        names = list(dict.fromkeys(each.text for each in nodes if isinstance(each, Name)))
        missing = self._figures.missing(names)
        if missing:
            return missing
        arms = self._figures.matrices(names)
        sizes = {arm: len(next(iter(columns.values()))) for arm, columns in arms.items()}
        if not all(sizes.values()):
            return unknown(f"no run of {min(sizes, key=lambda arm: sizes[arm])} has all figures of the comparison")
        if min(sizes.values(), default=2) == 1:
            self._needed.append(_fewest(len(sizes)))
            return unknown("one run of an arm has no spread")
        try:
            return self._decide(sign, _estimate(difference, arms), sizes)
        except _NoNumber as error:
            return unknown(str(error))

    def _decide(self, sign: str, estimate: _Estimate, sizes: Mapping[str, int]) -> Value:
        interval = estimate.interval
        truth = _decide(sign, interval)
        # Where every run came out the same, there is no chance for more of them to average out.
        if interval.width > 0 and not _suffice(list(sizes.values())):
            truth = None
        if truth is not None:
            return truth
        point, low, high = (
            formatting.format_number(each, _DIGITS) for each in (estimate.point, interval.low, interval.high)
        )
        shown = f"the difference is {point}, from {low} to {high}"
        counts = " and ".join(f"{size} of {arm}" for arm, size in sizes.items())
        if sign in ("==", "!=") and interval.has(0):
            return unknown(f"{shown}: runs that differ cannot prove equality; near() allows a difference")
        needed = _needed(estimate, min(sizes.values()), len(sizes))
        if needed is None:
            return unknown(f"{shown} with {counts} runs: no number of runs would prove it")
        self._needed.append(needed)
        more = f"more than {needed}" if needed == intervals.REPETITIONS_MAX else f"about {needed}"
        return unknown(f"{shown} with {counts} runs; it would take {more} of each")


def _is_number(_name: str) -> Kind:
    """Return that a name is a number, as `check` sees to it."""
    return Kind.NUMBER


def _no_value(name: str) -> Value:
    return unknown(f"{name} is not a truth value")


def _comparisons(node: Node) -> Iterator[tuple[Node, str, Node]]:
    """Yield the comparisons of two numbers that a comparison, `near` or `between` consists of."""
    if isinstance(node, Chain):
        for (left, right), sign in zip(pairwise(node.operands), node.signs, strict=True):
            yield left, sign, right
    elif isinstance(node, Call) and node.function == "between":
        number, low, high = node.operands
        yield low, "<=", number
        yield number, "<=", high
    elif isinstance(node, Call) and node.function == "near":
        number, other, tolerance = node.operands
        yield Call(node.column, (number, other), "-"), "<=", tolerance
        yield Call(node.column, (other, number), "-"), "<=", tolerance


def _decide(sign: str, interval: Interval) -> bool | None:
    """Return what the interval of right less left says of a comparison; None: it does not."""
    low, high = interval.low, interval.high
    if sign in (">", ">="):
        low, high, sign = -high, -low, sign.replace(">", "<")
    if sign == "<":
        return True if low > 0 else False if high <= 0 else None
    if sign == "<=":
        return True if low >= 0 else False if high < 0 else None
    if interval.has(0) and interval.width > 0:
        return None
    return interval.has(0) == (sign == "==")


def _estimate(difference: Node, arms: Mapping[str, Mapping[str, Floats]]) -> _Estimate:
    """Return the difference and its interval, by resampling the runs of each arm; raise _NoNumber."""
    means = {name: float(values.mean()) for columns in arms.values() for name, values in columns.items()}
    point = _number(difference, means)
    if all(np.ptp(values) == 0 for columns in arms.values() for values in columns.values()):
        return _Estimate(point, Interval(point, point), 0.0)
    together: dict[str, Floats] = {}
    variances, sizes = [], []
    for stream, (_, columns) in enumerate(sorted(arms.items())):
        size = len(next(iter(columns.values())))
        taken = intervals.resamples(size, stream)
        drawn = {name: values[taken].mean(axis=1) for name, values in columns.items()}
        alone = _distribution(difference, means, drawn, _SHARE_RESAMPLES)
        variances.append(float(alone.var()) * size / (size - 1))
        sizes.append(size)
        together |= drawn
    distribution = _distribution(difference, means, together, intervals.RESAMPLES)
    quantile = intervals.expanded_quantile(variances, sizes)
    return _Estimate(point, intervals.interval_of(distribution, quantile), sum(variances))


def _distribution(node: Node, means: Mapping[str, float], drawn: Mapping[str, Floats], count: int) -> Floats:
    columns = {name: values.tolist() for name, values in drawn.items()}
    rows = ({**means, **{name: values[at] for name, values in columns.items()}} for at in range(count))
    return np.array([_number(node, row) for row in rows], dtype=np.float64)


def _number(node: Node, values: Mapping[str, float]) -> float:
    value = node.value(values.__getitem__)
    if is_number(value):
        return float(value)
    raise _NoNumber(value.why if isinstance(value, Unknown) else "the sides are not numbers")


def _suffice(sizes: list[int]) -> bool:
    return all(suffice(*each) for each in combinations(sizes, min(len(sizes), 2)))


def _fewest(arms: int) -> int:
    return FEWEST_OF_ONE if arms == 1 else FEWEST_OF_TWO


def _needed(estimate: _Estimate, size: int, arms: int) -> int | None:
    """Return how many runs of each arm would tell the difference from none with the probability POWER."""
    if estimate.point == 0:
        return None
    quantile = NormalDist().inv_cdf
    reach = quantile((1 + intervals.CONFIDENCE) / 2) + quantile(intervals.POWER)
    needed = math.ceil(size * estimate.variance * (reach / estimate.point) ** 2)
    return min(max(needed, _fewest(arms)), intervals.REPETITIONS_MAX)
