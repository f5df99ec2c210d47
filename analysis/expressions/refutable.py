"""Return whether anything measured could make an expression false, tried with values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from analysis.expressions import Expression
from analysis.expressions.tree import Junction, Literal, Name, Node
from analysis.expressions.values import Kind, Value

_TRIALS = 400
# What counters, times and shares come to. Figures are never below 0.
_NUMBERS = (0, 0, 1, 2, 3, 5, 10, 99, 1_000, 28_232, 10**6, 10**9, 0.5, 12.5)
_LONGEST_LIST = 6


def idle_parts(
    expression: Expression, kind_of: Callable[[str], Kind], settled: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield the parts of a conjunction that nothing measured could make false.

    Args:
        expression: of a prediction; each part that `and` joins has to be able to fail by itself.
        kind_of: gives the kind of a name.
        settled: whether a name stands for what is known before a run.

    Yields:
        The column of such a part, and why it cannot fail.
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
