"""Turns pydantic's findings into sentences about scenarios and knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.reading import findings
from lab.reading.nearest import did_you_mean
from lab.scenario.catalogue import CATALOGUE, Knob, show_value
from lab.scenario.overrides import nearest_knob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from lab.reading.document import Location


def name_of(location: Location) -> str:
    """Name what stands at `location`: a knob by its full name, another key by its way down, items from 1."""
    parts = [part for part in location if part != "[key]"]
    if parts[:1] == ["knobs"] and len(parts) > 1:
        parts = parts[1:]
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in parts) or "the scenario"


def sentence(
    error: ErrorDetails, siblings: list[str], catalogue: Mapping[str, Knob] = CATALOGUE
) -> tuple[str, str | None]:
    """Say what is wrong and the way on.

    Args:
        error: one finding of pydantic's.
        siblings: the names that are valid where this one stands.
        catalogue: the knobs that there are.
    """
    location, name = error["loc"], name_of(error["loc"])
    if error["type"] == "extra_forbidden" and location[0] == "knobs":
        if len(location) == len(("knobs", "group")):
            return f"unknown group of knobs '{name}'", did_you_mean(name, siblings)
        return f"unknown knob '{name}'", nearest_knob(name, catalogue)
    if error["type"] == "literal_error" and (location[-1] == "[key]" or location[0] == "path"):
        return f"unknown role '{error['input']}'", did_you_mean(str(error["input"]), findings.expected(error))
    return findings.sentence(error, siblings, name, show_value)
