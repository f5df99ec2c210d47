"""The syntax tree of an expression: each node says its kind and computes its value.

Truth follows Kleene's three-valued logic: `false and unknown` is false, `true or unknown` is true, and whatever else
an unknown touches is unknown, with the reasons carried along.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from analysis.expressions.values import (
    FUNCTIONS,
    OPERATORS,
    Function,
    Kind,
    Number,
    Unknown,
    Value,
    is_number,
    merge,
    unknown,
)

KindOf: TypeAlias = Callable[[str], Kind]
ValueOf: TypeAlias = Callable[[str], Value]


class ExpressionError(ValueError):
    """A wrong expression.

    Attributes:
        message: what is wrong and, where it is clear, what to write instead.
        column: where in the text it stands, counted from 1.
    """

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"column {column}: {message}")
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True)
class Node(ABC):
    """A part of an expression; `column` is where it begins in the text."""

    column: int

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one."""
        return ()

    def walk(self) -> Iterator[Node]:
        """This node and all below it, from left to right."""
        yield self
        for child in self.children:
            yield from child.walk()

    @abstractmethod
    def kind(self, kind_of: KindOf) -> Kind:
        """Return what sort of value this has; raises ExpressionError where kinds do not fit together."""

    @abstractmethod
    def value(self, value_of: ValueOf) -> Value:
        """Return the value, unknown where the evidence does not give one."""


def _expect(node: Node, kind_of: KindOf, expected: Kind, where: str) -> None:
    kind = node.kind(kind_of)
    if kind is not expected:
        hint = "; use nth(list, k), count(list), …" if kind is Kind.LIST else ""
        raise ExpressionError(f"{where} takes {expected}, not {kind}{hint}", node.column)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, a text, `true` or `false`."""

    content: Number | bool | str

    def kind(self, kind_of: KindOf) -> Kind:  # noqa: ARG002  a literal looks nothing up
        """See Node."""
        if isinstance(self.content, str):
            return Kind.TEXT
        return Kind.TRUTH if isinstance(self.content, bool) else Kind.NUMBER

    def value(self, value_of: ValueOf) -> Value:  # noqa: ARG002  a literal looks nothing up
        """See Node."""
        return self.content


@dataclass(frozen=True, slots=True)
class Name(Node):
    """The name of a figure or knob."""

    text: str

    def kind(self, kind_of: KindOf) -> Kind:
        """See Node."""
        return kind_of(self.text)

    def value(self, value_of: ValueOf) -> Value:
        """See Node."""
        return value_of(self.text)


@dataclass(frozen=True, slots=True)
class Inner(Node):
    """A node with others below it."""

    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """See Node."""
        return self.operands


@dataclass(frozen=True, slots=True)
class Chain(Inner):
    """A chain of comparisons, as in `0 < a <= b`: all of them must hold."""

    signs: tuple[str, ...]

    def kind(self, kind_of: KindOf) -> Kind:
        """See Node."""
        kinds = [node.kind(kind_of) for node in self.operands]
        for index, sign in enumerate(self.signs):
            left, right = kinds[index], kinds[index + 1]
            node = self.operands[index + 1]
            if Kind.LIST in (left, right):
                listed = self.operands[index] if left is Kind.LIST else node
                _expect(listed, kind_of, Kind.NUMBER, sign)
            if left is not right:
                raise ExpressionError(f"{sign} cannot compare {left} with {right}", node.column)
            if left in (Kind.TRUTH, Kind.TEXT) and sign not in ("==", "!="):
                raise ExpressionError(f"{sign} compares numbers, not {left.removeprefix('a ')}s", node.column)
        return Kind.TRUTH

    def value(self, value_of: ValueOf) -> Value:
        """See Node."""
        values = [node.value(value_of) for node in self.operands]
        pairs = zip(self.signs, values, values[1:], strict=False)
        return conjunction([_strict([left, right], _COMPARE[sign]) for sign, left, right in pairs])


@dataclass(frozen=True, slots=True)
class Junction(Inner):
    """Truth values joined by `and` or by `or`."""

    word: str

    def kind(self, kind_of: KindOf) -> Kind:
        """See Node."""
        for node in self.operands:
            _expect(node, kind_of, Kind.TRUTH, self.word)
        return Kind.TRUTH

    def value(self, value_of: ValueOf) -> Value:
        """See Node."""
        values = [node.value(value_of) for node in self.operands]
        return conjunction(values) if self.word == "and" else disjunction(values)


@dataclass(frozen=True, slots=True)
class Call(Inner):
    """A sign with its operands, `not`, or a function with its arguments, in the number that the parser has checked."""

    function: str

    def kind(self, kind_of: KindOf) -> Kind:
        """See Node."""
        function, name = self._called(), self.function
        for node, expected in zip(self.operands, function.kinds(len(self.operands)), strict=True):
            _expect(node, kind_of, expected, f"{name}()" if name in FUNCTIONS else name)
        return function.result

    def value(self, value_of: ValueOf) -> Value:
        """See Node."""
        return _strict([node.value(value_of) for node in self.operands], self._called().compute)

    def _called(self) -> Function:
        return FUNCTIONS.get(self.function) or OPERATORS[self.function, len(self.operands)]


_COMPARE: dict[str, Callable[..., Value]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def conjunction(values: Sequence[Value]) -> Value:
    """Kleene's `and`: false if any is false, else unknown if any is unknown, else true."""
    if any(value is False for value in values):
        return False
    missing = [value for value in values if isinstance(value, Unknown)]
    return merge(*missing) if missing else True


def disjunction(values: Sequence[Value]) -> Value:
    """Kleene's `or`: true if any is true, else unknown if any is unknown, else false."""
    if any(value is True for value in values):
        return True
    missing = [value for value in values if isinstance(value, Unknown)]
    return merge(*missing) if missing else False


def _strict(values: Sequence[Value], compute: Callable[..., Value]) -> Value:
    """Return what `compute` makes of the values, or unknown if any of them is or if the result has no finite value."""
    missing = [value for value in values if isinstance(value, Unknown)]
    if missing:
        return merge(*missing)
    try:
        result = compute(*values)
        # An integer too large for a float raises OverflowError here, and no comparison with a float could bear it.
        finite = not is_number(result) or math.isfinite(result)
    except ZeroDivisionError:
        return unknown("division by zero")
    except OverflowError:
        finite = False
        result = 0
    return result if finite else unknown("a number too large to compute with")
