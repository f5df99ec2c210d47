"""Measured numbers as a comparison prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.compare.document import SampleEntry

_SHORT_UNITS = ("ms", "MiB")


def sample_text(sample: SampleEntry, unit: str = "") -> str:
    """Write a mean, and its interval where the runs differ."""
    has_width = sample.low is not None and sample.low != sample.high
    interval = f" [{number_text(sample.low)}, {number_text(sample.high)}]" if has_width else ""
    return f"{number_text(sample.mean)}{interval}{f' {unit}' if unit in _SHORT_UNITS else ''}"


def number_text(value: float | None, *, signed: bool = False) -> str:
    """Write a number with three digits, or as many as it has before the point."""
    if value is None:
        return "unknown"
    sign = "+" if signed and value > 0 else ""
    return f"{sign}{value:,.0f}" if float(value).is_integer() or abs(value) >= 1_000 else f"{sign}{value:.3g}"  # noqa: PLR2004  three digits tell no more there
