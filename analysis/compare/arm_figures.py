"""What the runs of a series' arms measured, under the names of expressions over arms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from analysis.compare import replicates
from analysis.compare.intervals import Floats, suffices
from analysis.compare.replicates import Sample
from analysis.expressions import ExpressionError
from analysis.expressions.tree import Call, Name, Node
from analysis.expressions.values import Kind, Number, Unknown, Value, is_number, merge, unknown
from analysis.verdicts.measured import ListSummary

if TYPE_CHECKING:
    from analysis.compare.groups import Group
    from analysis.compare.runs import RunRecord

PREFIX = "arms"
# What stands for the arms where blocks of all of them are resampled.
EACH = "each"


def arm_word(arm: str) -> str:
    """An arm's name as expressions write it."""
    return arm.replace("-", "_")


def arms_in(node: Node) -> list[str]:
    """The arms that the names in an expression are of, each once; an empty text for a name that is of none."""
    return list(dict.fromkeys(_arm(each.text) for each in node.walk() if isinstance(each, Name)))


def _arm(name: str) -> str:
    return name.split(".")[1] if name.startswith(f"{PREFIX}.") else ""


class Measurement:
    """The runs of the arms.

    A name is a figure of an arm, `arms.<arm>.<figure>`, or one of the given calls: a function of lists of one arm.
    """

    def __init__(self, groups: Mapping[str, Group], calls: Mapping[str, Call]) -> None:
        self._groups = groups
        self._calls = calls

    def arm(self, name: str) -> str:
        """The arm that a name is of, an empty text if it is of none."""
        call = self._calls.get(name)
        return next(iter(arms_in(call)), "") if call else _arm(name)

    def sample(self, name: str) -> Sample:
        """What a name is in each usable run that knows it."""
        group = self._groups.get(self.arm(name))
        values = tuple(value for run in group.used for value in self._known(run, name)) if group else ()
        return Sample(values, replicates.mean_intervals([values]).get(values))

    def missing(self, names: list[str]) -> Unknown | None:
        """Why some of these names have no value in any run; None if all have."""
        for name in names:
            arm = self.arm(name)
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
        """By arm and name the values of the arm's runs, of those runs that know all the names of the arm.

        Where every arm has a run in each block, and there are enough, all stand together as if they were one arm, EACH,
        a block to a row.
        """
        rows = {arm: self._rows(arm, names) for arm in dict.fromkeys(map(self.arm, names))}
        blocks = sorted(next(iter(rows.values()), {}))
        if len(rows) > 1 and suffices(len(blocks)) and all(sorted(of_arm) == blocks for of_arm in rows.values()):
            together = [_joined(of_arm[block] for of_arm in rows.values()) for block in blocks]
            return {EACH: _columns(names, together)}
        return {arm: _columns(self._of(arm, names), of_arm.values()) for arm, of_arm in rows.items()}

    def _of(self, arm: str, names: list[str]) -> list[str]:
        return [name for name in names if self.arm(name) == arm]

    def _rows(self, arm: str, names: list[str]) -> dict[int, dict[str, float]]:
        """By repetition what a run of the arm measured, of those runs that know all the names of the arm."""
        of_arm = self._of(arm, names)
        found = {}
        for run in self._groups[arm].used:
            row = {name: value for name in of_arm for value in self._known(run, name)}
            if len(row) == len(of_arm):
                found[run.repetition] = row
        return found

    def _known(self, run: RunRecord, name: str) -> list[Number]:
        value = self._value(run, name)
        return [value] if is_number(value) else []

    def _value(self, run: RunRecord, name: str) -> Value:
        call = self._calls.get(name)
        return _figure(run, name) if call is None else _in_run(call, run)


def _in_run(call: Call, run: RunRecord) -> Value:
    """What a function of lists gives in a run; what a series before did not check is unknown here."""
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
    for number in replicates.values([run], name):
        return number
    value = run.figures.get(name)
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, ListSummary):
        return unknown(f"of the {value.count} values of {name} derived/figures.json has only the ends")
    return unknown(run.why.get(name, "no run has it"))


def _joined(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    return {name: value for row in rows for name, value in row.items()}


def _columns(names: Iterable[str], rows: Collection[Mapping[str, float]]) -> dict[str, Floats]:
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}
