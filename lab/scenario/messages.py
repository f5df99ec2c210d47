"""Turns pydantic's findings into sentences about scenarios and knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.scenario.catalogue import show_value
from lab.scenario.nearest import did_you_mean
from lab.scenario.overrides import nearest_knob

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from lab.scenario.document import Location


def name_of(location: Location) -> str:
    """Name what stands at `location`: a knob by its full name, another key by its way down, items from 1."""
    parts = [part for part in location if part != "[key]"]
    if parts[:1] == ["knobs"] and len(parts) > 1:
        parts = parts[1:]
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in parts) or "the scenario"


def sentence(error: ErrorDetails, siblings: list[str]) -> tuple[str, str | None]:
    """Say what is wrong and the way on.

    Args:
        error: one finding of pydantic's.
        siblings: the names that are valid where this one stands.
    """
    location, value = error["loc"], error["input"]
    name, context = name_of(location), error.get("ctx", {})
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown(location, name, siblings)
    if kind == "literal_error":
        return _not_among(location, name, value, context)
    if kind == "missing":
        return f"'{name}' is missing", None
    if kind in _BOUNDS:
        bound = show_value(name, next(iter(context.values())))
        return f"{name} must be {_BOUNDS[kind]} {bound}, not {_shown(value, name)}", None
    if kind in _TAKES:
        return f"{name} takes {_TAKES[kind]}, not {_shown(value, name)}", None
    if kind in ("string_too_short", "too_short"):
        return f"{name} is empty" if not value else f"{name} is too short", None
    return f"{name}: {error['msg']}", None


_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most"}
_TAKES = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
    "string_pattern_mismatch": "small letters, digits and hyphens",
}


def _unknown(location: Location, name: str, siblings: list[str]) -> tuple[str, str | None]:
    if location[0] != "knobs":
        return f"unknown key '{name}'", did_you_mean(str(location[-1]), siblings)
    if len(location) == len(("knobs", "group")):
        return f"unknown group of knobs '{name}'", did_you_mean(name, siblings)
    return f"unknown knob '{name}'", nearest_knob(name)


def _not_among(location: Location, name: str, value: object, context: dict[str, Any]) -> tuple[str, str | None]:
    valid = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
    if location[-1] == "[key]" or location[0] == "path":
        return f"unknown role '{value}'", did_you_mean(str(value), valid)
    return f"{name} cannot be {_shown(value, name)}", did_you_mean(str(value), valid)


_SHOWN_MAX = 60


def _shown(value: object, name: str) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool | int):
        return show_value(name, value)
    text = str(value)
    return f"'{text}'" if len(text) <= _SHOWN_MAX else f"'{text[:_SHOWN_MAX]}…'"
