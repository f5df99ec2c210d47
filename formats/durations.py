"""Durations: text with a unit outside (`20s`), whole milliseconds inside."""

import re
from fractions import Fraction

DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$"
_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12}(\.[0-9]{1,6})?)(?P<unit>ms|s|m|h)")


def parse_duration(text: str) -> int:
    """Read `20s`, `500ms`, `2m`, `1.5h` as whole milliseconds.

    Raises:
        ValueError: there is no unit, or the text is not a whole number of milliseconds.
    """
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"'{text}' is not a duration: write a number with a unit, such as 20s, 500ms or 2m")
    ms = Fraction(match["number"]) * _MS[match["unit"]]
    if ms.denominator != 1:
        raise ValueError(f"'{text}' is not a whole number of milliseconds")
    return int(ms)


def format_duration(ms: int) -> str:
    """Return milliseconds in the largest unit that divides them: 20000 is `20s`, 1500 is `1500ms`, 0 is `0s`."""
    return next(f"{ms // each_ms}{unit}" for unit, each_ms in _MS.items() if ms % each_ms == 0) if ms else "0s"
