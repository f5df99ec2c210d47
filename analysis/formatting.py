"""How numbers, durations and counts are written for a reader."""

from __future__ import annotations

from decimal import Decimal

from analysis.expressions.values import Number

_MS_PER_S = 1000


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number(value: Number, digits: int = 3) -> str:
    """A number with so many digits, or as many as it has before the point; a whole one has all. Never an exponent."""
    if float(value).is_integer() or abs(value) >= 10**digits:
        return f"{round(value):,}"
    return f"{Decimal(f'{value:.{digits}g}'):,f}"


def spoken(ms: Number) -> str:
    """A duration in a sentence."""
    return f"{number(ms)} ms" if abs(ms) < _MS_PER_S else f"{number(ms / _MS_PER_S)} s"
