"""Cuts an expression into tokens, and answers what is no part of the language with what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Parsing and evaluating recurse; this bound keeps both far from Python's recursion limit.
TOKENS_MAX = 400


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


class Type(Enum):
    """The kinds of token."""

    NUMBER = auto()
    NAME = auto()
    TEXT = auto()
    OPERATOR = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its type, its text and the column it begins at, counted from 1."""

    type: Type
    text: str
    column: int


# After the first, a part of a name may begin with a digit: `client.requests.error.1211`.
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
  | (?P<text>"[^"]*"|'[^']*')
  | (?P<operator>\*\*|&&|\|\||==|!=|<=|>=|//|[-+*/%<>(),=!&|^])
    """,
    re.VERBOSE | re.ASCII,
)

_INSTEAD = {
    "=": "write == to compare",
    "!": "write not",
    "&": "write and",
    "&&": "write and",
    "|": "write or",
    "||": "write or",
    "^": "there is no power operator",
    "**": "there is no power operator",
    "[": "write nth(list, k) for the k-th smallest value of a list",
    '"': "a text ends with the quote that it begins with",
    "'": "a text ends with the quote that it begins with",
}


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression, the last of type END; raise ExpressionError for what is none."""
    found = list(_scan(text))
    if len(found) > TOKENS_MAX:
        raise ExpressionError(f"the expression is too long; {TOKENS_MAX} names, numbers and signs are the most", 1)
    return found


def _scan(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        column = position + 1
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(_explain(text[position]), column)
        position = match.end()
        found = match.group()
        if match.lastgroup == "number":
            _refuse_suffix(text, position, found, column)
            yield Token(Type.NUMBER, found, column)
        elif match.lastgroup == "name":
            yield Token(Type.NAME, found, column)
        elif match.lastgroup == "text":
            yield Token(Type.TEXT, found, column)
        elif match.lastgroup == "operator":
            if found in _INSTEAD:
                raise ExpressionError(_explain(found), column)
            yield Token(Type.OPERATOR, found, column)
    yield Token(Type.END, "", len(text) + 1)


def _explain(sign: str) -> str:
    instead = _INSTEAD.get(sign)
    return f"{sign} is no part of an expression" + (f"; {instead}" if instead else "")


def _refuse_suffix(text: str, position: int, number: str, column: int) -> None:
    suffix = re.compile(r"[\w.]+", re.ASCII).match(text, position)
    if suffix is None:
        return
    raise ExpressionError(
        f"{number}{suffix.group()} is not a number; durations are plain milliseconds, so 20 s is 20000", column
    )
