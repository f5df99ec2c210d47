"""The questions of a lesson: a few numbers that the scenario's predictions are about, and which arm has more of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.compare.arm_figures import arm_identifier
from analysis.expressions import parse
from analysis.expressions.tree import Call, Chain, Name, Node
from analysis.expressions.values import Kind
from formats.predictions import Claim
from lab.scenarios.resolved import ResolvedScenario
from lab.series.plan import Plan
from lab.teach import wording

_MOST = 4
_MOST_OF_SERIES = 6
# Functions that compare their first argument with the others.
_COMPARING = frozenset({"between", "near"})
_MODEL = "model."
# What the ledger leaves open and how sure it is of itself is nobody's to foresee.
_NOT_ASKED = (_MODEL, "ledger.", "process.")
# What the captures say often repeats what another observer said.
_LAST = frozenset({"flows"})


@dataclass(frozen=True)
class Question:
    """A number that is asked for.

    Attributes:
        prediction: the id of the prediction that it is taken from.
        arm: the arm whose runs it is about; None for all runs.
    """

    prediction: str
    figure: str
    asks: str
    unit: str
    arm: str | None = None


@dataclass(frozen=True)
class WhichArm:
    """In which of two arms a figure is less.

    Attributes:
        prediction: the id of the prediction that says so of one of them.
        less: that one.
        arms: the two, in the order of their names.
    """

    prediction: str
    asks: str
    less: str
    arms: tuple[str, str]


def of_run(effective: ResolvedScenario, most: int = _MOST) -> list[Question]:
    """Give the questions about one run, the most telling first.

    First come figures that a prediction computes from the settings alone: these can be worked out beforehand, and of
    them those that take a model say more than those that repeat a setting. What only relates two measured figures comes
    after them, if it is about another observer. For an arm, predictions about this arm come before those about all.
    """
    everywhere = {one.id for one in effective.scenario.predictions if one.arms is None}
    found: dict[str, Question] = {}
    compared = [
        (one.prediction, name, others)
        for one in effective.predictions
        for name, others in _compared(parse(one.prediction.expression).tree)
        if _can_be_asked(effective, name)
    ]
    compared.sort(key=lambda one: (one[0].id in everywhere, not any(other.startswith(_MODEL) for other in one[2])))
    candidates = [(prediction, name, _is_settled(effective, others)) for prediction, name, others in compared]
    observers: set[str] = set()
    predictions: set[str] = set()
    for settled, last in ((True, False), (False, False), (True, True)):
        for prediction, name, is_settled in candidates:
            observer = name.partition(".")[0]
            if is_settled is not settled or (observer in _LAST) is not last or len(found) == most:
                continue
            if name in found or prediction.id in predictions or (not settled and observer in observers):
                continue
            observers.add(observer)
            predictions.add(prediction.id)
            found[name] = Question(prediction.id, name, *wording.question(name), effective.variant.arm)
    return list(found.values())


def of_answer(effective: ResolvedScenario, expressions: Iterable[str], prediction: str) -> list[Question]:
    """Give the questions about an exercise: the figures that its answer compares with something."""
    names = dict.fromkeys(name for text in expressions for name, _ in _compared(parse(text).tree))
    asked = [name for name in names if _can_be_asked(effective, name)]
    return [Question(prediction, name, *wording.question(name), effective.variant.arm) for name in asked[:_MOST]]


def of_series(plan: Plan) -> tuple[list[Question], list[WhichArm]]:
    """Give the questions about the runs of each arm, and those about the arms beside each other."""
    choices = [choice for claim in plan.predictions for choice in _choices(claim, plan.cells)]
    left = max(_MOST_OF_SERIES - len(choices), len(plan.cells))
    each = max(1, left // len(plan.cells))
    return [one for planned in plan.cells.values() for one in of_run(planned.effective, each)], choices


def _compared(tree: Node) -> Iterator[tuple[str, list[str]]]:
    """Each name that stands by itself in a comparison, with the names that it is compared with."""
    for node in tree.walk():
        if isinstance(node, Chain):
            operands: tuple[Node, ...] = node.operands
            asked: Iterable[Node] = operands
        elif isinstance(node, Call) and node.function in _COMPARING:
            operands = node.arguments
            asked = operands[:1]
        else:
            continue
        for operand in asked:
            if isinstance(operand, Name):
                others = [one.text for other in operands if other is not operand for one in _names(other)]
                yield operand.text, others


def _names(node: Node) -> Iterator[Name]:
    return (one for one in node.walk() if isinstance(one, Name))


def _can_be_asked(effective: ResolvedScenario, name: str) -> bool:
    if name in effective.values or name.startswith(_NOT_ASKED):
        return False
    found = wording.declared(name)
    return found is not None and found[0].kind is Kind.NUMBER


def _is_settled(effective: ResolvedScenario, names: Iterable[str]) -> bool:
    return all(name in effective.values or name.startswith(_MODEL) for name in names)


def _choices(claim: Claim, cells: Iterable[str]) -> Iterator[WhichArm]:
    arms = {arm_identifier(cell): cell for cell in cells}
    for node in parse(claim.expression).tree.walk():
        if not isinstance(node, Chain) or len(node.operands) != 2 or node.signs[0] not in ("<", ">"):  # noqa: PLR2004  two sides
            continue
        less, more = node.operands if node.signs[0] == "<" else node.operands[::-1]
        if not (isinstance(less, Name) and isinstance(more, Name)):
            continue
        (one, figure), (other, same) = (_of_arm(less.text), _of_arm(more.text))
        if figure == same and one in arms and other in arms:
            first, second = sorted((arms[one], arms[other]))
            yield WhichArm(claim.id, wording.question(figure)[0], arms[one], (first, second))


def _of_arm(name: str) -> tuple[str, str]:
    arm, _, figure = name.removeprefix("arms.").partition(".")
    return arm, figure
