"""Reads an expression into its syntax tree, with Python's precedence; what is wrong is answered with what to write."""

import math
import re
from difflib import get_close_matches
from functools import cache
from typing import Any

from lark import Lark, Token, Tree, UnexpectedToken

from analysis.expressions.tree import Call, Chain, ExpressionError, Junction, Literal, Name, Node
from analysis.expressions.values import FUNCTIONS

# Evaluating recurses; these bounds keep it far from Python's recursion limit.
_TOKENS_MAX = 400
_DEPTH_MAX = 40

# After the first, a part of a name may begin with a digit: `client.requests.error.1211`. `FOREIGN`, `OTHER`
# and `NO_NUMBER` are no part of the language: they are here to be answered.
_GRAMMAR = r"""
    ?start: or_
    ?or_: and_ ("or" and_)*
    ?and_: denial ("and" denial)*
    ?denial: "not" denial -> not_
        | comparison
    ?comparison: sum (COMPARISON sum)*
    ?sum: product ((PLUS | MINUS) product)*
    ?product: signed (PRODUCT signed)*
    ?signed: MINUS signed -> negative
        | operand
    ?operand: NUMBER | TEXT | TRUE | FALSE | NAME | call | "(" or_ ")" | FOREIGN | OTHER | NO_NUMBER
    call: NAME "(" [or_ ("," or_)*] ")"

    COMPARISON: "==" | "!=" | "<=" | ">=" | "<" | ">"
    PLUS: "+"
    MINUS: "-"
    PRODUCT: "//" | "*" | "/" | "%"
    TRUE: "true"
    FALSE: "false"
    NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?(?![\w.])/
    NO_NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?[\w.]+/
    NAME: /[A-Za-z_]\w*(\.\w+)*/
    TEXT: /"[^"]*"|'[^']*'/
    FOREIGN.2: /\*\*|&&|\|\||=(?!=)|!(?!=)|[&|^]/
    OTHER.-2: /./s
    %ignore /\s+/
"""

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


def parse_tree(text: str) -> Node:
    """Return the syntax tree of an expression; raise ExpressionError with the column of what is wrong."""
    _check_tokens(text)
    try:
        parsed = _parser().parse(text)
    except UnexpectedToken as error:
        raise ExpressionError(_explain(error), _column(error.token, text)) from None
    return _node(parsed, 0)


@cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR,
        parser="lalr",
        lexer="basic",
        maybe_placeholders=False,
        propagate_positions=True,
        g_regex_flags=re.ASCII,
    )


def _check_tokens(text: str) -> None:
    """Refuse an expression with what is no part of the language, none at all, or too much."""
    count = 0
    for token in _parser().lex(text):
        count += 1
        if token.type in ("FOREIGN", "OTHER"):
            instead = _INSTEAD.get(str(token))
            hint = f"; {instead}" if instead else ""
            raise ExpressionError(f"{token} is no part of an expression{hint}", _column(token, text))
        if token.type == "NO_NUMBER":
            hint = "durations are plain milliseconds, so 20 s is 20000"
            raise ExpressionError(f"{token} is not a number; {hint}", _column(token, text))
    if not count:
        raise ExpressionError("the expression is empty", 1)
    if count > _TOKENS_MAX:
        raise ExpressionError(f"the expression is too long; {_TOKENS_MAX} names, numbers and signs are the most", 1)


def _column(token: Token, text: str) -> int:
    return len(text) + 1 if token.type == "$END" else (token.start_pos or 0) + 1


def _explain(error: UnexpectedToken) -> str:
    """Return what was expected in a token's place."""
    found = "the end" if error.token.type == "$END" else str(error.token)
    expected = error.accepts
    if "NUMBER" in expected:
        return f"a number, a name or a parenthesis is expected, not {found}"
    if "COMMA" in expected:
        return f", is expected between arguments, not {found}"
    if "RPAR" in expected:
        return f") is expected to close the parenthesis, not {found}"
    return f"{found} is not expected here"


def _node(parsed: Tree[Token] | Token, depth: int) -> Node:
    if isinstance(parsed, Token):
        return _leaf(parsed)
    first = parsed.children[0]
    if depth == _DEPTH_MAX:
        raise ExpressionError(f"nested deeper than {_DEPTH_MAX} levels", _start(parsed))
    if parsed.data == "call":
        return _call(parsed, depth)
    if parsed.data == "negative":
        return Call(_start(parsed), (_node(parsed.children[1], depth + 1),), "-")
    if parsed.data == "not_":
        return Call(_start(parsed), (_node(first, depth + 1),), "not")
    nodes: list[Any] = [each if _is_sign(each) else _node(each, depth + 1) for each in parsed.children]
    if parsed.data in ("or_", "and_"):
        return Junction(nodes[0].column, tuple(nodes), parsed.data.removesuffix("_"))
    if parsed.data == "comparison":
        return Chain(nodes[0].column, tuple(nodes[::2]), tuple(map(str, nodes[1::2])))
    left: Node = nodes[0]
    for sign, right in zip(nodes[1::2], nodes[2::2], strict=True):
        left = Call(left.column, (left, right), str(sign))
    return left


def _start(parsed: Tree[Token]) -> int:
    return parsed.meta.start_pos + 1


def _is_sign(child: Tree[Token] | Token) -> bool:
    return isinstance(child, Token) and child.type in ("COMPARISON", "PLUS", "MINUS", "PRODUCT")


def _leaf(token: Token) -> Node:
    column = (token.start_pos or 0) + 1
    if token.type == "NAME":
        return Name(column, str(token))
    if token.type in ("TRUE", "FALSE"):
        return Literal(column, token.type == "TRUE")
    if token.type == "TEXT":
        return Literal(column, str(token[1:-1]))
    value = float(token)
    if math.isinf(value):
        raise ExpressionError("the number is too large", column)
    return Literal(column, int(token) if token.isdigit() else value)


def _call(parsed: Tree[Token], depth: int) -> Node:
    name, *arguments = parsed.children
    function = FUNCTIONS.get(str(name))
    if function is None:
        nearest = get_close_matches(str(name), FUNCTIONS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(FUNCTIONS)}"
        raise ExpressionError(f"there is no function {name}; {hint}", _start(parsed))
    if not function.takes(len(arguments)):
        raise ExpressionError(f"{name}() is written {function.usage}", _start(parsed))
    return Call(_start(parsed), tuple(_node(each, depth + 1) for each in arguments), str(name))
