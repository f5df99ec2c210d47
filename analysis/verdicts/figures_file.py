"""All figures of a run, derived/figures.json: what comparisons and series read instead of the raw files."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from analysis import figures
from analysis.expressions.values import Unknown, Value
from analysis.figures.catalogue import figure_names
from analysis.figures.run import Run
from analysis.output import DerivedFile, Written

# A longer list is reduced to its length and its ends; the raw files have all of it.
_LIST_MAX = 100


class ListSummary(Written):
    """A list of more than 100 values."""

    count: Annotated[int, Field(description="How many values it has")]
    min: float | int
    max: float | int


MeasuredValue = bool | int | float | str | list[int | float] | ListSummary | None


def measured(value: Value) -> MeasuredValue:
    """Return a value as files have it: None where it is unknown, a long list by its summary."""
    if isinstance(value, Unknown):
        return None
    if not isinstance(value, tuple):
        return value
    return list(value) if len(value) <= _LIST_MAX else ListSummary(count=len(value), min=min(value), max=max(value))


class FiguresFile(DerivedFile):
    """Every figure of one run."""

    file = Path("derived") / "figures.json"
    indent = 1
    sorts = True

    contract: Annotated[Literal["connlab.figures/1"], Field(alias="schema")]
    scenario: str
    run: str
    figures: Annotated[
        dict[str, MeasuredValue],
        Field(
            description="Each figure and its value; null if the evidence does not give one; a list of more than 100"
            " values by its length and ends. If a role has one instance, the role is named, not the instance"
        ),
    ]
    why: Annotated[dict[str, str], Field(description="Why, for each figure that is null")]


def build_figures_file(run: Run) -> FiguresFile:
    """Compute every figure of a run."""
    values = {name: figures.value(run, name) for name in figure_names(run)}
    return FiguresFile(
        contract="connlab.figures/1",
        scenario=run.raw.manifest.scenario,
        run=run.raw.manifest.run,
        figures={name: measured(value) for name, value in values.items()},
        why={name: value.why for name, value in values.items() if isinstance(value, Unknown)},
    )
