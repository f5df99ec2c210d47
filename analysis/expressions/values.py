"""The values that figures and expressions have: numbers, truth values, lists, texts, or unknown with its reasons."""

from __future__ import annotations

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
