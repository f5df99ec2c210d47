"""The language of predictions: arithmetic and comparisons over named figures, in three-valued logic.

In: a text of numbers, names with dots, `+ - * / // %`, comparisons (chained as in `0 < a <= b`), `and`, `or`, `not`,
`true`, `false`, texts in quotes for `==` and `!=`, parentheses and the functions of analysis.expressions.values.
Out: a value, unknown with a reason.
It must not know what a name stands for, and can do nothing but compute.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from analysis.expressions.parser import parse_tree
from analysis.expressions.tree import ExpressionError, Junction, KindOf, Literal, Name, Node, ValueOf
from analysis.expressions.values import Kind, Value

__all__ = ["Expression", "ExpressionError", "parse", "respelled"]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    text: str
    tree: Node

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in it, once, in order of appearance."""
        return tuple(dict.fromkeys(text for text, _ in self.names_with_columns))

    @property
    def names_with_columns(self) -> tuple[tuple[str, int], ...]:
        """Every appearance of a name, with the column it begins at, counted from 1."""
        return tuple((node.text, node.column) for node in self.tree.walk() if isinstance(node, Name))

    def check(self, kind_of: KindOf, wanted: Kind = Kind.TRUTH) -> None:
        """Raise ExpressionError unless its kinds fit together and it is of the wanted one."""
        kind = self.tree.kind(kind_of)
        if kind is wanted:
            return
        if wanted is Kind.TRUTH:
            raise ExpressionError(f"a prediction must compare something; this is {kind}", self.tree.column)
        raise ExpressionError(f"{wanted} is wanted; this is {kind}", self.tree.column)

    def evaluate(self, value_of: ValueOf) -> Value:
        """Return the value, given the value of each name."""
        return self.tree.value(value_of)


_HYPHENED = re.compile(r"[A-Za-z_][\w.]*(?:-[\w.]+)+", re.ASCII)


def respelled(text: str, column: int, exists: Callable[[str], bool]) -> str | None:
    """Return how the name at a column, from 1, is written, if hyphens are all that is wrong with it; else None.

    Causes, arms and instances have hyphens in their own names, and an expression takes those for minus signs.
    """
    found = _HYPHENED.match(text, column - 1)
    written = found.group().replace("-", "_") if found else ""
    return f"{found.group()} is written {written}: a - would subtract" if found and exists(written) else None


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Return the expression that a text spells; raise ExpressionError with the column of what is wrong."""
    return Expression(text, parse_tree(text))


_TRIALS = 400
# What counters, times and shares come to. Figures are never below 0.
_NUMBERS = (0, 0, 1, 2, 3, 5, 10, 99, 1_000, 28_232, 10**6, 10**9, 0.5, 12.5)
_LONGEST_LIST = 6


def idle_parts(
    expression: Expression, kind_of: Callable[[str], Kind], settled: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield the parts of a conjunction that nothing measured could make false: the column of each, and why.

    Each part that `and` joins has to be able to fail by itself. `settled`: whether a name is known before a run.
    """
    for part in parts(expression.tree):
        names = {node.text: kind_of(node.text) for node in _names(part)}
        if all(map(settled, names)):
            yield part.column, "it names no figure that is measured, so nothing that is measured could refute it"
        elif not _fails(part, names):
            yield part.column, "it is true whatever is measured"


def parts(node: Node) -> Iterator[Node]:
    """Yield what an `and` joins, or the whole where there is none: each part claims something of its own."""
    if isinstance(node, Junction) and node.word == "and":
        for operand in node.operands:
            yield from parts(operand)
    else:
        yield node


def _names(part: Node) -> Iterator[Name]:
    return (node for node in part.walk() if isinstance(node, Name))


def _fails(part: Node, names: Mapping[str, Kind]) -> bool:
    """Return whether some values of its names make a part false."""
    chance = random.Random(1)  # noqa: S311 # no secret: the same trials each time
    # A text that the part names, or another.
    texts = [each.content for each in part.walk() if isinstance(each, Literal) and isinstance(each.content, str)]
    drawn = (
        {name: _value(chance, kind, [*texts, "", "another"]) for name, kind in names.items()} for _ in range(_TRIALS)
    )
    return any(part.value(each.__getitem__) is False for each in drawn)


def _value(chance: random.Random, kind: Kind, texts: Sequence[str]) -> Value:
    if kind is Kind.TEXT:
        return chance.choice(texts)
    if kind is Kind.TRUTH:
        return chance.random() < 0.5  # noqa: PLR2004 # one of two
    if kind is Kind.LIST:
        return tuple(sorted(chance.choices(_NUMBERS, k=chance.randint(0, _LONGEST_LIST))))
    return chance.choice(_NUMBERS)
