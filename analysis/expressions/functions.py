"""The functions of the expression language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.expressions.values import Kind, Number, Numbers, Value, unknown


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        usage: how it is written, for error messages and the documentation.
        meaning: what it gives.
        parameters: the kinds of its arguments; the last repeats if `repeats`.
        result: the kind of what it gives.
        compute: its value for known arguments.
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
