"""The content of comparison.json: what was compared, what was set, what moved, and for a matrix each of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, PlainSerializer

from analysis.compare.intervals import Interval
from analysis.output import Written
from formats.field_types import PlaceOfRun
from formats.knob_types import Unit
from formats.predictions import Truth

FILE = "comparison.json"
PAGE = "comparison.html"

State = Literal["clean", "failing", "mixed", "inconclusive", "missing"]


Setting: TypeAlias = bool | int | float | str | None

_DIGITS = 6


def _rounded(value: float) -> float:
    """Return a number with six digits, or as many as it has before the point."""
    return float(round(value)) if abs(value) >= 10**_DIGITS else float(f"{value:.{_DIGITS}g}")


# The file has it rounded: machines differ in the last digits.
Rounded: TypeAlias = Annotated[float, PlainSerializer(_rounded, return_type=float)]


class Stage(StrEnum):
    """Where a figure stands on the way from the cause to the user; the lab's own figures stand beside it."""

    LAB = "lab"
    MODEL = "model"
    COUNTERS = "counters"
    PACKETS = "packets"
    USERS = "users"


class Status(StrEnum):
    """What can be said of a difference."""

    CHANGED = "changed"
    UNCLEAR = "unclear"
    NOISE = "noise"
    EQUAL = "equal"
    UNKNOWN = "unknown"


class Sample(Written):
    """One figure in one group of runs."""

    values: Annotated[list[int | float], Field(description="In each run that is evidence and knows it")]
    mean: Annotated[Rounded | None, Field(description="The mean of the values; null without any")]
    low: Annotated[Rounded | None, Field(description="The interval of the mean; null with fewer than two runs")]
    high: Rounded | None

    @classmethod
    def of(cls, values: Sequence[float], interval: Interval | None) -> Sample:
        """Return the sample of these values, with the interval of their mean."""
        mean = sum(values) / len(values) if values else None
        low, high = (interval.low, interval.high) if interval else (None, None)
        return cls(values=list(values), mean=mean, low=low, high=high)


class RunEntry(Written):
    """One run."""

    run: Annotated[str, Field(description="<scenario>/<run-id>")]
    used: Annotated[bool, Field(description="Whether it is evidence")]
    why: Annotated[str | None, Field(description="Why it is not")]


class GroupEntry(Written):
    """Runs that are repetitions of one another."""

    name: Annotated[str, Field(description="A, B, or the cell")]
    runs: list[RunEntry]


class SettingChange(Written):
    """One setting that differs."""

    name: Annotated[str, Field(description="A knob, or its place in the manifest, as host.kernel")]
    a: Setting
    b: Setting
    unit: Annotated[Unit | None, Field(description="A knob's; null for what has none")] = None
    asked: Annotated[bool, Field(description="Whether somebody set it; else it differs unasked")]


class Effect(Written):
    """One figure in both groups."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    figure: str
    stage: Stage
    unit: str
    status: Annotated[
        Status,
        Field(
            description="changed: the interval excludes zero, and the difference exceeds the noise; unclear: it exceeds"
            " the noise, or that is not known, and the runs are too few; noise: it does not; unknown: a group has no"
            " value. Figures that are equal in all runs are left out"
        ),
    ]
    a: Sample
    b: Sample
    difference: Annotated[Rounded | None, Field(description="Mean of b less mean of a")] = None
    low: Annotated[
        Rounded | None, Field(description="The difference's interval; null with fewer than two runs a group")
    ] = None
    high: Rounded | None = None
    standardised: Annotated[Rounded | None, Field(description="Hedges' g; null where there is no spread")] = None
    noise: Annotated[
        Rounded | None, Field(description="What two groups of one cell, as large as these, differ by at the most")
    ] = None
    repetitions_needed: Annotated[
        int | None, Field(description="Runs of each group that would tell such a difference from none")
    ] = None
    why: Annotated[str | None, Field(description="Why it is unclear or unknown")] = None

    @property
    def relative(self) -> float:
        """Return the difference in parts of the greater mean: 0 none, 1 all of it."""
        greater = max(abs(self.a.mean or 0), abs(self.b.mean or 0))
        return abs(self.difference or 0) / greater if greater else 0.0


class Counts(Written):
    """How many figures of a stage have each status."""

    changed: int
    unclear: int
    noise: int
    equal: int
    unknown: int


class PairEntry(Written):
    """One group beside another."""

    a: Annotated[str, Field(description="The group that is compared with")]
    b: str
    settings: Annotated[list[SettingChange], Field(description="What differs, what nobody asked for first")]
    counts: dict[Stage, Counts]
    by_chance: Annotated[
        Rounded,
        Field(description="How many figures would exceed the noise if nothing differed: 5 % of those with noise"),
    ]
    references: Annotated[int, Field(description="Further runs with the same settings, used for the noise only")]
    effects: list[Effect]


class AxisEntry(Written):
    """What varies in a matrix."""

    name: str
    levels: list[str]


class CellEntry(Written):
    """One cell of a matrix."""

    cell: str
    levels: dict[str, str]
    planned: Annotated[int, Field(description="Repetitions that the series has of it")]
    used: Annotated[int, Field(description="Runs that are evidence")]
    state: Annotated[
        State,
        Field(
            description="clean: no request failed in any run that is evidence; failing: some did in each; mixed: in"
            " some of them; inconclusive: there is no such run; missing: none was run"
        ),
    ]
    predicted_users_failed: Annotated[int | None, Field(description="null where neither model nor capacity says")]
    predicted_by: Annotated[
        Literal["model", "capacity"] | None,
        Field(
            description="model: model.users_failed; capacity: where that does not hold, users less"
            " model.accept_capacity, which is max-connections + accept-count + 1 of each backend"
        ),
    ]
    agrees: Annotated[
        bool | None, Field(description="Whether the cell fails where that says so; null if either is not known")
    ]
    figures: Annotated[dict[str, Sample], Field(description="As the matrix names them, where known")]


class MatrixEntry(Written):
    """The cells of a series."""

    axes: list[AxisEntry]
    baseline: str | None
    about: Annotated[list[str], Field(description="The figures that the matrix is about; empty if it does not say")]
    figures: Annotated[
        list[str], Field(description="Those; then all others that differ between cells, the headlines first")
    ]
    cells: list[CellEntry]


class TryEntry(Written):
    """One run of a search."""

    value: Annotated[int, Field(description="The knob's; durations in ms")]
    cell: str
    holds: Annotated[Truth | None, Field(description="Whether what is looked for held; null: not run")]
    run: Annotated[PlaceOfRun | None, Field(description="<scenario>/<run-id>; null before it begins")]


class SearchEntry(Written):
    """A search as its path to the border."""

    knob: str
    until: Annotated[str, Field(description="The expression that is to hold")]
    goal: Annotated[Literal["smallest", "largest"] | None, Field(description="Which end of the values that hold")]
    predicted: Annotated[int | None, Field(description="Where the model has that end; null where it does not say")]
    found: Annotated[int | None, Field(description="Where the runs have it")]
    tries: Annotated[list[TryEntry], Field(description="In the order in which they were made")]


class TrustEntry(Written):
    """What speaks for a series, and what against it."""

    order: Annotated[list[str], Field(description="The runs in the order in which they were made")]
    says: Annotated[list[str], Field(description="In sentences: runs that count, drift over the order, noise, machine")]
    again: Annotated[str | None, Field(description="The command that makes it again; null if the series has none")]
    more: Annotated[
        str | None,
        Field(
            description="The command that adds repetitions: as many as it takes to tell; null if the series has none"
        ),
    ]
    repetitions: Annotated[int, Field(description="How often each cell is planned to run")]


class Comparison(Written):
    """What became different between groups of runs."""

    indent = 1
    sorts = True

    contract: Annotated[Literal["connlab.comparison/1"], Field(alias="schema")]
    kind: Literal["runs", "arms", "matrix", "search"]
    title: str
    question: Annotated[str, Field(description="What the series asks; empty if it does not say")]
    answer: Annotated[list[str], Field(description="What was measured, in sentences")]
    figure: Annotated[str | None, Field(description="The figure that it is about; null if nothing says")]
    figure_name: Annotated[str | None, Field(description="What people call it; null where that is its own name")]
    confidence: Annotated[float, Field(description="The confidence level of all intervals, and of the noise")]
    groups: list[GroupEntry]
    pairs: list[PairEntry]
    matrix: MatrixEntry | None
    search: Annotated[SearchEntry | None, Field(description="null except for a search")] = None
    trust: Annotated[TrustEntry | None, Field(description="null where runs are compared that are not series")]
