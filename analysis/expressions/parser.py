"""Reads an expression into its syntax tree, with Python's precedence.

expression := conjunction ("or" conjunction)*
conjunction := denial ("and" denial)*
denial := "not" denial | comparison
comparison := sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum)*
sum := product (("+" | "-") product)*
product := signed (("*" | "/" | "//" | "%") signed)*
signed := "-" signed | operand
operand := number | text | "true" | "false" | name | function "(" expression ("," expression)* ")" | "(" expression ")"
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import TYPE_CHECKING

from analysis.expressions.functions import FUNCTIONS
from analysis.expressions.tokens import ExpressionError, Token, Type, tokens
from analysis.expressions.tree import Arithmetic, Call, Chain, Junction, Literal, Name, Negative, Node, Not

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = ("and", "or", "not")
# Each parenthesis, minus and `not` recurses through every rule of the grammar.
_DEPTH_MAX = 40


class Parser:
    """Parses one expression."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._position = 0
        self._depth = 0

    def parse(self) -> Node:
        """Return the syntax tree; raise ExpressionError."""
        if self._ended():
            raise ExpressionError("the expression is empty", 1)
        node = self._expression()
        if not self._ended():
            raise ExpressionError(f"{self._token.text} is not expected here", self._token.column)
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _ended(self) -> bool:
        return self._token.type is Type.END

    def _advance(self) -> Token:
        token = self._token
        self._position += 1
        return token

    def _at(self, *texts: str) -> bool:
        return not self._ended() and self._token.text in texts

    def _take(self, text: str, why: str) -> Token:
        if not self._at(text):
            found = self._token.text or "the end"
            raise ExpressionError(f"{text} is expected {why}, not {found}", self._token.column)
        return self._advance()

    def _deeper(self, rule: Callable[[], Node]) -> Node:
        if self._depth == _DEPTH_MAX:
            raise ExpressionError(f"nested deeper than {_DEPTH_MAX} levels", self._token.column)
        self._depth += 1
        node = rule()
        self._depth -= 1
        return node

    def _expression(self) -> Node:
        return self._junction("or", lambda: self._junction("and", self._denial))

    def _junction(self, word: str, rule: Callable[[], Node]) -> Node:
        operands = [rule()]
        while self._at(word):
            self._advance()
            operands.append(rule())
        return operands[0] if len(operands) == 1 else Junction(operands[0].column, word, tuple(operands))

    def _denial(self) -> Node:
        if self._at("not"):
            return Not(self._advance().column, self._deeper(self._denial))
        return self._comparison()

    def _comparison(self) -> Node:
        operands, signs = [self._sum()], []
        while self._at(*_COMPARISONS):
            signs.append(self._advance().text)
            operands.append(self._sum())
        return Chain(operands[0].column, tuple(operands), tuple(signs)) if signs else operands[0]

    def _sum(self) -> Node:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "//", "%"), self._signed))

    def _chain(self, signs: tuple[str, ...], rule: Callable[[], Node]) -> Node:
        left = rule()
        while self._at(*signs):
            sign = self._advance().text
            left = Arithmetic(left.column, sign, left, rule())
        return left

    def _signed(self) -> Node:
        if self._at("-"):
            return Negative(self._advance().column, self._deeper(self._signed))
        return self._operand()

    def _operand(self) -> Node:
        token = self._token
        if token.type is Type.NUMBER:
            self._advance()
            return Literal(token.column, _number(token))
        if token.type is Type.TEXT:
            return Literal(self._advance().column, token.text[1:-1])
        if token.type is Type.NAME and token.text not in _WORDS:
            return self._named()
        if self._at("("):
            self._advance()
            node = self._deeper(self._expression)
            self._take(")", "to close the parenthesis")
            return node
        found = token.text or "the end"
        raise ExpressionError(f"a number, a name or a parenthesis is expected, not {found}", token.column)

    def _named(self) -> Node:
        token = self._advance()
        if token.text in ("true", "false"):
            return Literal(token.column, token.text == "true")
        if not self._at("("):
            return Name(token.column, token.text)
        function = FUNCTIONS.get(token.text)
        if function is None:
            raise ExpressionError(f"there is no function {token.text}{_suggest(token.text)}", token.column)
        arguments = self._arguments()
        if not function.takes(len(arguments)):
            raise ExpressionError(f"{token.text}() is written {function.usage}", token.column)
        return Call(token.column, token.text, tuple(arguments))

    def _arguments(self) -> list[Node]:
        self._advance()
        arguments: list[Node] = []
        while not self._at(")"):
            if arguments:
                self._take(",", "between arguments")
            arguments.append(self._deeper(self._expression))
        self._advance()
        return arguments


def _number(token: Token) -> int | float:
    value = float(token.text)
    if math.isinf(value):
        raise ExpressionError("the number is too large", token.column)
    return int(token.text) if token.text.isdigit() else value


def _suggest(name: str) -> str:
    nearest = get_close_matches(name, FUNCTIONS, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else f"; there are {', '.join(FUNCTIONS)}"
