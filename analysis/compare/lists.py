"""Functions of lists in expressions over arms, as `nth(arms.two.client.latency_ms.list, 2)`.

A list is of one run, and lists of several have no mean: such a function is therefore taken in each run of the arm, and
what it gives is a figure of that run like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from analysis.expressions.functions import FUNCTIONS
from analysis.expressions.tree import Arithmetic, Call, Literal, Name, Negative, Node
from analysis.expressions.values import Kind


@dataclass(frozen=True, slots=True)
class PerRun:
    """An expression whose functions of lists became names.

    Attributes:
        tree: the expression.
        calls: what each of these names stands for.
    """

    tree: Node
    calls: Mapping[str, Call]


def taken_in_each_run(tree: Node) -> PerRun:
    """Put a name in the place of each function of a list; functions within it go along."""
    calls: dict[str, Call] = {}
    return PerRun(_rewritten(tree, calls), calls)


def _rewritten(node: Node, calls: dict[str, Call]) -> Node:
    if isinstance(node, Call) and Kind.LIST in FUNCTIONS[node.function].kinds(len(node.arguments)):
        name = _written(node)
        calls[name] = node
        return Name(node.column, name)
    changed: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = _rewritten(value, calls)
        elif isinstance(value, tuple) and all(isinstance(each, Node) for each in value):
            changed[field.name] = tuple(_rewritten(each, calls) for each in value)
    return replace(node, **changed) if changed else node


def _written(node: Node) -> str:
    """Spell a node that is a number or a list."""
    if isinstance(node, Call):
        return f"{node.function}({', '.join(map(_written, node.arguments))})"
    if isinstance(node, Arithmetic):
        return f"({_written(node.left)} {node.sign} {_written(node.right)})"
    if isinstance(node, Negative):
        return f"-{_written(node.operand)}"
    if isinstance(node, Literal):
        return str(node.content)
    return node.text if isinstance(node, Name) else "…"
