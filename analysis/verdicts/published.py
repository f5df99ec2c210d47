"""The figures that stand beside a published experiment: what was published, and what a run or a series measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from analysis.expressions.values import Unknown
from analysis.output import Written

if TYPE_CHECKING:
    from analysis.evidence.manifest import Published
    from analysis.expressions.values import Number


class Here(Written):
    """One figure of this lab."""

    name: Annotated[str, Field(description="What it is, in words")]
    expression: Annotated[str, Field(description="What it is computed by")]
    value: Annotated[int | float | None, Field(description="null where the evidence does not give it")]
    why: Annotated[str | None, Field(description="Why it is unknown; null where it is not")]
    published: Annotated[
        int | float | None, Field(description="The published number of it; null where the scenario names none")
    ] = None


class PublishedResult(Written):
    """What was published, and the figures of this lab that stand beside it."""

    says: Annotated[str | None, Field(description="What was published; null for a workshop's own scenario")]
    here: list[Here]


def measured(published: Published | None, number: Callable[[str], Number | Unknown]) -> PublishedResult | None:
    """Compute the figures that stand beside what was published.

    Args:
        published: as the scenario has it; None if it names none.
        number: gives what an expression comes to.
    """
    if published is None:
        return None
    here = [
        _here(name, expression, number(expression), published.there.get(name))
        for name, expression in published.here.items()
    ]
    return PublishedResult(says=published.says, here=here)


def _here(name: str, expression: str, value: Number | Unknown, there: float | None) -> Here:
    if isinstance(value, Unknown):
        return Here(name=name, expression=expression, value=None, why=value.why, published=there)
    return Here(name=name, expression=expression, value=value, why=None, published=there)
