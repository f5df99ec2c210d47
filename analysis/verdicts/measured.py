"""How a measured value stands in the files that the analysis writes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from analysis.expressions.values import Unknown, Value
from analysis.output import Written

# A longer list is reduced to its length and its ends; the raw files have all of it.
_LIST_MAX = 100


class ListSummary(Written):
    """A list of more than 100 values."""

    count: Annotated[int, Field(description="How many values it has")]
    min: float | int
    max: float | int


MeasuredValue = bool | int | float | str | list[int | float] | ListSummary | None


def measured(value: Value) -> MeasuredValue:
    """A value as files have it: None where it is unknown, a long list by its summary."""
    if isinstance(value, Unknown):
        return None
    if not isinstance(value, tuple):
        return value
    return list(value) if len(value) <= _LIST_MAX else ListSummary(count=len(value), min=min(value), max=max(value))
