"""The language of predictions: arithmetic and comparisons over named figures, in three-valued logic.

In: a text of numbers, names with dots, `+ - * / // %`, comparisons (chained as in `0 < a <= b`), `and`, `or`, `not`,
`true`, `false`, texts in quotes for `==` and `!=`, parentheses and the functions of analysis.expressions.functions.
Out: a value, unknown with a reason.
It must not know what a name stands for, and can do nothing but compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from analysis.expressions.parser import parse_tree
from analysis.expressions.tree import ExpressionError, KindOf, Name, Node, ValueOf
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
        """Raise ExpressionError unless its kinds fit together and it is a truth value, as a prediction must be.

        Args:
            kind_of: gives the kind of a name.
            wanted: another kind that the whole must have.
        """
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
    """Return how the name at a column is written, if hyphens are all that is wrong with it; else None.

    Causes, arms and instances have hyphens in their own names, and an expression takes those for minus signs.

    Args:
        text: the expression.
        column: where the name begins, from 1.
        exists: whether there is such a name.
    """
    found = _HYPHENED.match(text, column - 1)
    written = found.group().replace("-", "_") if found else ""
    return f"{found.group()} is written {written}: a - would subtract" if found and exists(written) else None


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Return the expression that a text spells; raise ExpressionError with the column of what is wrong."""
    return Expression(text, parse_tree(text))
