"""Measured numbers as a reader gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis import formatting
from analysis.compare.intervals import REPETITIONS_MAX

if TYPE_CHECKING:
    from analysis.compare.comparison_file import EffectEntry, SampleEntry


def number(value: float | None, *, signed: bool = False) -> str:
    """Write a number, if it is known."""
    if value is None:
        return "unknown"
    return f"{'+' if signed and value > 0 else ''}{formatting.number(value)}"


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
