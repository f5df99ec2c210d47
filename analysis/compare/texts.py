"""Measured numbers as a reader gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.compare.statistics import REPETITIONS_MAX

if TYPE_CHECKING:
    from analysis.compare.document import EffectEntry, SampleEntry

# Beyond this three digits would hide some before the point.
_WHOLE_FROM = 1_000


def number(value: float | None, *, signed: bool = False) -> str:
    """Write a number with three digits, or as many as it has before the point."""
    if value is None:
        return "unknown"
    sign = "+" if signed and value > 0 else ""
    whole = float(value).is_integer() or abs(value) >= _WHOLE_FROM
    return f"{sign}{value:,.0f}" if whole else f"{sign}{value:.3g}"


def sample(entry: SampleEntry | None) -> str:
    """Write a mean, and its interval where the runs differ."""
    if entry is None or entry.mean is None:
        return "unknown"
    has_width = entry.low is not None and entry.low != entry.high
    return f"{number(entry.mean)}{f' [{number(entry.low)}, {number(entry.high)}]' if has_width else ''}"


def difference(effect: EffectEntry) -> str:
    """Write a difference with its interval."""
    if effect.difference is None:
        return ""
    interval = f" [{number(effect.low)}, {number(effect.high)}]" if effect.low is not None else ""
    return f"{number(effect.difference, signed=True)}{interval}"


def remark(effect: EffectEntry) -> str:
    """Say why a difference is none to build on, and how many runs it would take; nothing of one that is."""
    if effect.status == "changed":
        return ""
    if effect.status == "noise":
        return "within the noise"
    needed = effect.repetitions_needed
    takes = f"; it takes {'more than ' if needed == REPETITIONS_MAX else ''}{needed} of each" if needed else ""
    return f"{effect.why}{takes}"
