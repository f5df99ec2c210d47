"""The figures of a series' arms, as expressions name them: `arms.<arm>.<figure>`, and functions of lists.

A list is of one run, and lists of several runs have no mean. A function of a list, such as
`nth(arms.two.client.latency_ms.list, 2)`, is therefore computed in each run of the arm, and what it gives is a figure
of that run like any other.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analysis.compare.comparison_file import Sample
from analysis.compare.intervals import Floats, find_intervals, suffice
from analysis.compare.replicates import Group, RunRecord, figure_values
from analysis.expressions import ExpressionError
from analysis.expressions.tree import Call, Inner, Literal, Name, Node
from analysis.expressions.values import FUNCTIONS, Kind, Unknown, Value, is_number, merge, unknown
from analysis.verdicts.figures_file import ListSummary

PREFIX = "arms"
# What stands for the arms where blocks of all of them are resampled.
EACH = "each"


def arm_identifier(arm: str) -> str:
    """Return an arm's name as expressions write it."""
    return arm.replace("-", "_")


def arms_in(node: Node) -> list[str]:
    """Return the arms that the names in an expression are of, each once; an empty text for a name that is of none."""
    return list(dict.fromkeys(_arm(each.text) for each in node.walk() if isinstance(each, Name)))


def _arm(name: str) -> str:
    return name.split(".")[1] if name.startswith(f"{PREFIX}.") else ""


def name_list_functions(tree: Node) -> tuple[Node, dict[str, Call]]:
    """Return the expression with a name in the place of each function of a list, and the function of each name."""
    calls: dict[str, Call] = {}
    return _rewritten(tree, calls), calls


def _rewritten(node: Node, calls: dict[str, Call]) -> Node:
    function = FUNCTIONS.get(node.function) if isinstance(node, Call) else None
    if isinstance(node, Call) and function and Kind.LIST in function.kinds(len(node.operands)):
        name = _spelled(node)
        calls[name] = node
        return Name(node.column, name)
    if isinstance(node, Inner):
        return replace(node, operands=tuple(_rewritten(each, calls) for each in node.operands))
    return node


def _spelled(node: Node) -> str:
    """Return the spelling of a node that is a number or a list."""
    if isinstance(node, Call):
        spelled = list(map(_spelled, node.operands))
        if node.function in FUNCTIONS:
            return f"{node.function}({', '.join(spelled)})"
        return f"({f' {node.function} '.join(spelled)})" if len(spelled) > 1 else f"{node.function}{spelled[0]}"
    if isinstance(node, Literal):
        return str(node.content)
    return node.text if isinstance(node, Name) else "…"


class ArmFigures:
    """What the runs of the arms measured.

    A name is a figure of an arm, `arms.<arm>.<figure>`, or one of the given calls: a function of lists of one arm.
    """

    def __init__(self, groups: Mapping[str, Group], calls: Mapping[str, Call]) -> None:
        self._groups = groups
        self._calls = calls

    def _arm(self, name: str) -> str:
        """Return the arm that a name is of, an empty text if it is of none."""
        call = self._calls.get(name)
        return next(iter(arms_in(call)), "") if call else _arm(name)

    def sample(self, name: str) -> Sample:
        """Return what a name is in each usable run that knows it."""
        group = self._groups.get(self._arm(name))
        found = [self._value(run, name) for run in group.used] if group else []
        values = tuple(value for value in found if is_number(value))
        return Sample.of(values, find_intervals([(values,)]).get((values,)))

    def missing(self, names: list[str]) -> Unknown | None:
        """Return why some of these names have no value in any run; None if all have."""
        for name in names:
            arm = self._arm(name)
            if arm not in self._groups:
                return unknown(f"there is no arm {arm}" if arm else f"{name} names no arm")
            used = self._groups[arm].used
            if not used:
                return unknown(f"no run of {arm} is evidence")
            values = [self._value(run, name) for run in used]
            if not any(map(is_number, values)):
                why = values[0].why if isinstance(values[0], Unknown) else "it is not a number"
                return unknown(f"{name}: {why}")
        return None

    def matrices(self, names: list[str]) -> dict[str, dict[str, Floats]]:
        """Return by arm and name the values of the arm's runs, of those runs that know all the names of the arm.

        Where every arm has a run in each block, and there are enough, all stand together as if they were one arm, EACH,
        a block to a row.
        """
        names_of: dict[str, list[str]] = {}
        for name in names:
            names_of.setdefault(self._arm(name), []).append(name)
        rows = {arm: self._rows(arm, of_arm) for arm, of_arm in names_of.items()}
        blocks = sorted(next(iter(rows.values()), {}))
        if len(rows) > 1 and suffice(len(blocks)) and all(sorted(of_arm) == blocks for of_arm in rows.values()):
            names_of, rows = {EACH: names}, {EACH: {block: _joined(rows, block) for block in blocks}}
        return {
            arm: {name: np.array([row[name] for row in of_arm.values()], dtype=np.float64) for name in names_of[arm]}
            for arm, of_arm in rows.items()
        }

    def _rows(self, arm: str, names: list[str]) -> dict[int, dict[str, float]]:
        """Return by repetition what a run of the arm measured, of those runs that know all these names."""
        found = {run.repetition: {name: self._value(run, name) for name in names} for run in self._groups[arm].used}
        numbers = {at: {name: value for name, value in row.items() if is_number(value)} for at, row in found.items()}
        return {at: row for at, row in numbers.items() if len(row) == len(names)}

    def _value(self, run: RunRecord, name: str) -> Value:
        call = self._calls.get(name)
        return _figure(run, name) if call is None else _in_run(call, run)


def _in_run(call: Call, run: RunRecord) -> Value:
    """Return what a function of lists gives in a run; what a series before did not check is unknown here."""
    if len(arms_in(call)) > 1:
        return unknown(f"{call.function}() is of two arms")
    figures = {each.text: _figure(run, each.text) for each in call.walk() if isinstance(each, Name)}
    missing = [value for value in figures.values() if isinstance(value, Unknown)]
    if missing:
        return merge(*missing)
    try:
        call.kind(lambda name: Kind.LIST if isinstance(figures[name], tuple) else Kind.NUMBER)
    except ExpressionError as error:
        return unknown(str(error))
    return call.value(figures.__getitem__)


def _figure(run: RunRecord, of_arm: str) -> Value:
    name = ".".join(of_arm.split(".")[2:])
    for number in figure_values([run], name):
        return number
    value = run.figures.get(name)
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, ListSummary):
        return unknown(f"of the {value.count} values of {name} derived/figures.json has only the ends")
    return unknown(run.why.get(name, "no run has it"))


def _joined(rows: Mapping[str, Mapping[int, dict[str, float]]], block: int) -> dict[str, float]:
    return {name: value for of_arm in rows.values() for name, value in of_arm[block].items()}
