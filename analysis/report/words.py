"""How values are written for a reader."""

from __future__ import annotations

import re

# Manifests have these in milliseconds.
_DURATION = re.compile(r"^(?!kernel\.).*(_timeout|_delay|_gap|_time|_period|duration|\.ramp_\w+)$")

_MS_PER_S, _MS_PER_MIN = 1000, 60_000


def is_duration(knob: str) -> bool:
    """Whether a knob is a duration."""
    return _DURATION.match(knob) is not None


def knob_value(knob: str, value: object) -> str:
    """The value of a knob, as a scenario may write it."""
    if isinstance(value, int) and not isinstance(value, bool) and is_duration(knob):
        return duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return '""' if value == "" else str(value)


def duration(ms: int) -> str:
    """A duration in its greatest whole unit."""
    for unit, per_unit in (("m", _MS_PER_MIN), ("s", _MS_PER_S)):
        if ms and ms % per_unit == 0:
            return f"{ms // per_unit}{unit}"
    return f"{ms}ms"


def spoken(ms: float) -> str:
    """A duration in a sentence."""
    if ms < 1:
        return f"{ms:.3g} ms"
    return f"{ms:.3g} ms" if ms < _MS_PER_S else f"{ms / _MS_PER_S:,.3g} s"


def number(value: object) -> str:
    """A number with three digits, or as many as it has before the point; other values as they are."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= _MS_PER_S or value.is_integer() else f"{value:.3g}"
    return str(value)


_LIST_SHOWN = 6


def measured(value: object) -> str:
    """A measured value: lists by what they have in common, or by their first values."""
    if isinstance(value, list):
        if len(value) > _LIST_SHOWN and len(set(value)) == 1:
            return f"{len(value):,} times {number(value[0])}"
        rest = f", … {len(value):,} in all" if len(value) > _LIST_SHOWN else ""
        return f"[{', '.join(map(number, value[:_LIST_SHOWN]))}{rest}]"
    if isinstance(value, dict):
        if value.get("min") is not None and value.get("min") == value.get("max"):
            return f"{number(value['count'])} times {number(value['min'])}"
        return ", ".join(f"{key} {number(inner)}" for key, inner in value.items())
    return number(value)
