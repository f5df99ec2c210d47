"""Whether anything measured could make an expression false: tried with values, and with changes of a run's own.

What a run might have measured in place of what it did, and a prediction has to notice, is small and plausible: a
counter off by one, a packet lost, one request with another outcome, one observer taken for another, a time that is
half or twice as long, a few of what there was hardly any of.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.expressions import Expression
from analysis.expressions.tree import Chain, Junction, Literal, Name, Node
from analysis.expressions.values import Kind, Unknown, Value, is_number, unknown

if TYPE_CHECKING:
    from analysis.expressions import Expression
    from analysis.expressions.tree import Node


_TRIALS = 400
# What counters, times and shares come to. Figures are never below 0.
_NUMBERS = (0, 0, 1, 2, 3, 5, 10, 99, 1_000, 28_232, 10**6, 10**9, 0.5, 12.5)
_LONGEST_LIST = 6


def idle_parts(
    expression: Expression, kind_of: Callable[[str], Kind], settled: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Give the parts of a conjunction that nothing measured could make false.

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
    """Give what an `and` joins, or the whole where there is none: each part claims something of its own."""
    if isinstance(node, Junction) and node.word == "and":
        for operand in node.operands:
            yield from parts(operand)
    else:
        yield node


def _names(part: Node) -> Iterator[Name]:
    return (node for node in part.walk() if isinstance(node, Name))


def _fails(part: Node, names: Mapping[str, Kind]) -> bool:
    """Whether some values of its names make a part false."""
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


# So many more of something that there was hardly any of are no chance.
_A_FEW = 4
# A SYN that is sent again comes a second later.
_SYN_RETRY_MS = 1_000
_GOOD = (".ok", ".served", ".established", ".answered")
_BAD = (".failed", ".failed_timeout", ".unanswered", ".syn_failed", ".total_failed")


def unmoved(expression: Expression, values: Mapping[str, Value], measured: Collection[str]) -> Iterator[Node]:
    """Give the parts of a prediction that stay true, whichever measured figure of theirs is changed.

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
    """Whether a part says only that there was any, as `client.dials.failed > 0`; the parts beside it say more."""
    if not isinstance(part, Chain) or part.signs != (">",):
        return False
    return isinstance(part.operands[0], Name) and part.operands[1].value(_no_name) == 0


def _no_name(name: str) -> Value:
    return unknown(f"{name} is not a number")


def changes(values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Give what could have been measured in place of these values; each change has the values that differ."""
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
