"""How the values of a run are written for a reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analysis import formatting
from analysis.expressions.values import is_number
from formats.durations import format_duration

# A manifest of an earlier version has no units, and knobs of the lab's own roles alone: these are its durations.
_EARLIER_DURATION = re.compile(
    r"^(?!kernel\.).*(_timeout|_delay|_gap|_interval|_time|_period|duration|\.(ramp|timeout)_\w+)$"
)


def is_duration(name: str, knob: Mapping[str, Any]) -> bool:
    """Return whether a manifest's knob is a duration, in milliseconds."""
    return knob["unit"] == "ms" if "unit" in knob else _EARLIER_DURATION.match(name) is not None


def knob_value(name: str, knob: Mapping[str, Any], which: str = "value") -> str:
    """Return the value of a manifest's knob, its default or what was read back, as a scenario may write it."""
    value = knob[which]
    if isinstance(value, int) and not isinstance(value, bool) and is_duration(name, knob):
        return format_duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return '""' if value == "" else str(value)


def number(value: object) -> str:
    """A number as a reader gets it; other values as they are."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    return formatting.number(value) if is_number(value) else str(value)


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
