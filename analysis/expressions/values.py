"""The values that figures and expressions have: numbers, truth values, lists, texts, or unknown with its reasons."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeGuard

Number: TypeAlias = int | float
Numbers: TypeAlias = tuple[Number, ...]


class Kind(StrEnum):
    """What sort of value a figure or an expression has, worded as an error message names it."""

    NUMBER = "a number"
    TRUTH = "a truth value"
    LIST = "a list"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the evidence does not give, with the reasons; it is neither true nor false, nor zero."""

    reasons: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reasons in one line."""
        return "; ".join(self.reasons)


Value: TypeAlias = bool | int | float | str | Numbers | Unknown


def unknown(reason: str) -> Unknown:
    """Return an unknown value with one reason."""
    return Unknown((reason,))


def merge(*unknowns: Unknown) -> Unknown:
    """Return one unknown with every distinct reason of several, in order."""
    return Unknown(tuple(dict.fromkeys(reason for each in unknowns for reason in each.reasons)))


def is_number(value: object) -> TypeGuard[Number]:
    """Return whether a value is a number; Python's `bool` is an `int`, a truth value is not a number here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        parameters: the kinds of its arguments; the last repeats if `repeats`.
        repeats: whether it takes two or more numbers, or one list instead.
    """

    usage: str
    meaning: str
    parameters: tuple[Kind, ...]
    result: Kind
    compute: Callable[..., Value]
    repeats: bool = False

    def takes(self, count: int) -> bool:
        """Return whether it can be called with so many arguments."""
        return count >= 1 if self.repeats else count == len(self.parameters)

    def kinds(self, count: int) -> Sequence[Kind]:
        """Return the kinds that so many arguments must have."""
        if not self.repeats:
            return self.parameters
        return (Kind.LIST,) if count == 1 else self.parameters * count


def _nth(numbers: Numbers, position: Number) -> Value:
    if position != int(position) or position < 1:
        return unknown(f"nth() counts from 1 in whole steps; there is no value at {position}")
    if position > len(numbers):
        return unknown(f"nth() asked for value {int(position)} of a list of {len(numbers)}")
    return sorted(numbers)[int(position) - 1]


def _extreme(choose: Callable[[Sequence[Number]], Number]) -> Callable[..., Value]:
    def compute(*arguments: Number | Numbers) -> Value:
        numbers = [number for each in arguments for number in (each if isinstance(each, tuple) else (each,))]
        return choose(numbers) if numbers else unknown("an empty list has no least or greatest value")

    return compute


def _between(number: Number, low: Number, high: Number) -> Value:
    return low <= number <= high


def _near(number: Number, other: Number, tolerance: Number) -> Value:
    return abs(number - other) <= tolerance


_N = Kind.NUMBER

# Signs and `not`, with how many operands each takes.
OPERATORS: dict[tuple[str, int], Function] = {
    ("not", 1): Function("not x", "the contrary", (Kind.TRUTH,), Kind.TRUTH, operator.not_),
    ("-", 1): Function("-x", "below zero", (_N,), _N, operator.neg),
} | {
    (sign, 2): Function(f"x {sign} y", "arithmetic", (_N, _N), _N, compute)
    for sign, compute in (
        ("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("/", operator.truediv),
        ("//", operator.floordiv), ("%", operator.mod),
    )
}  # fmt: skip

FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", "x without its sign", (_N,), _N, abs),
    "between": Function(
        "between(x, low, high)", "whether x lies from low to high, both included", (_N, _N, _N), Kind.TRUTH, _between
    ),
    "count": Function("count(list)", "how many values a list has", (Kind.LIST,), _N, len),
    "max": Function("max(x, y, …) or max(list)", "the greatest", (_N,), _N, _extreme(max), repeats=True),
    "min": Function("min(x, y, …) or min(list)", "the least", (_N,), _N, _extreme(min), repeats=True),
    "near": Function(
        "near(x, y, tolerance)", "whether x and y differ by no more than tolerance", (_N, _N, _N), Kind.TRUTH, _near
    ),
    "nth": Function("nth(list, k)", "the k-th smallest value, from 1", (Kind.LIST, _N), _N, _nth),
    "round": Function("round(x)", "the nearest whole number; halves go to the even one", (_N,), _N, round),
}
