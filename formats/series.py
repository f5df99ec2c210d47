"""The model of series.json: what a series of runs consists of, in which order it goes, and how far it has come."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from formats.field_types import Named, PlaceOfRun, Scalar
from formats.knob_types import Unit
from formats.manifest import Status as RunStatus
from formats.manifest import tolerant
from formats.predictions import Claim, Published, Result, Truth
from formats.safe_files import atomic_write, read_regular

FILE = "series.json"
SCHEMA: Literal["connlab.series/1"] = "connlab.series/1"
Kind = Literal["arms", "matrix", "search"]
Status = Literal["running", "complete", "partial", "stopped", "interrupted"]
Outcome = Literal["found", "holds-everywhere", "holds-nowhere", "inconclusive"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_by_name=True, defer_build=True)


class Level(_Part):
    """One point of an axis, or one arm."""

    name: Annotated[str, Field(description="The value as a scenario writes it, or the variant's name")]
    scenario: Annotated[str | None, Field(description="On the axis 'scenario': its name")] = None
    path: Annotated[list[str] | None, Field(description="The path, if this level has one of its own")] = None
    knobs: Annotated[dict[str, Scalar], Field(description="What it sets; durations in ms")] = {}


class Axis(_Part):
    """What varies: a knob, several knobs moved together, the scenario, or the arm."""

    name: Annotated[str, Field(description="A knob's full name, or the axis's own; 'arm' and 'scenario' are the lab's")]
    levels: list[Level]


class Cell(_Part):
    """One combination of levels."""

    cell: Annotated[Named, Field(description="Its name, as in run ids")]
    scenario: Named
    levels: Annotated[dict[str, str], Field(description="The level on each axis")] = {}
    path: list[str] = []
    knobs: Annotated[dict[str, Scalar], Field(description="What it sets beyond the scenario; durations in ms")] = {}
    load_s: Annotated[
        float, Field(description="How long the load is expected to take; at least, where nobody knows")
    ] = 0
    model: Annotated[
        dict[str, Scalar], Field(description="The model's figures that are known before a run, such as users_failed")
    ] = {}


class PlannedRun(_Part):
    """One place in the order: a repetition of a cell, and what became of it."""

    cell: Named
    repetition: Annotated[int, Field(ge=1)]
    status: Annotated[Literal["planned"] | RunStatus, Field(description="planned, or as the run's manifest has it")] = (
        "planned"
    )
    run: Annotated[PlaceOfRun | None, Field(description="<scenario>/<run-id>, a folder below results/")] = None
    verdict: Annotated[
        Result | None, Field(description="The run's own; null if it has none, or no prediction about it alone")
    ] = None
    holds: Annotated[Truth | None, Field(description="In a search: whether search.until held")] = None
    reason: Annotated[str | None, Field(description="Why it was aborted or failed")] = None
    lost: Annotated[list[str], Field(description="Earlier runs of this place that did not complete")] = []


# Where nothing else is said.
FAILED_IN_A_ROW = 3


class Stop(_Part):
    """When the series ends before its last run."""

    failed_in_a_row: Annotated[int, Field(description="After this many runs in a row that did not complete")] = (
        FAILED_IN_A_ROW
    )
    when: Annotated[str | None, Field(description="After a run in which this expression holds")] = None


class Budget(_Part):
    """What the series may take at most; more is refused before it begins."""

    cells: int
    duration_ms: int


class ExpectedArm(_Part):
    """What the person at the terminal expected of two arms, told before the series."""

    prediction: Annotated[str, Field(description="The id of the prediction that it is taken from")]
    asks: str
    arms: list[str]
    less: Annotated[str, Field(description="The arm of which the prediction says that it has less")]
    value: Annotated[str | None, Field(description="The arm that was named; null if the question was passed over")]


class Fingerprint(_Part):
    """What must be the same for two runs to be compared.

    Attributes:
        plan: of the scenarios, the cells and their order.
        code: of the lab's program and the topology.
        analysis: of the program that derives; where it alone changed, the recorded runs are derived again.
        images: ids by role.
        kernel: the release.
        machine: what else of machine and lab is alike in all manifests, by its place there, as `host.cpus`.
    """

    plan: str = ""
    code: str = ""
    analysis: str = ""
    images: dict[str, str]
    kernel: str
    machine: dict[str, Scalar | None] = {}


class Search(_Part):
    """What a search looks for, and what it found."""

    knob: str
    unit: Annotated[Unit | None, Field(description="The knob's; null for what has none")] = None
    until: Annotated[str, Field(description="The expression that is to hold")]
    low: int
    high: int
    step: Annotated[
        int, Field(description="How near to each other the value that holds and the one that fails come")
    ] = 1
    confirm: Annotated[int, Field(description="Runs at each of the two values")] = 1
    predicted: Annotated[int | None, Field(description="The value by the model; null where it does not say")] = None
    goal: Annotated[
        Literal["smallest", "largest"] | None, Field(description="Which end of the values that hold; null: not known")
    ] = None
    found: Annotated[int | None, Field(description="The smallest or largest value that holds")] = None
    outcome: Annotated[Outcome | None, Field(description="null while it lasts")] = None
    why: str | None = None


class Series(_Part):
    """The whole file."""

    model_config = ConfigDict(title="connlab series")

    contract: Annotated[Literal["connlab.series/1"], Field(alias="schema")]
    series: Annotated[Named, Field(description="<UTC start>-<kind>-<name>, the folder's name")]
    kind: Kind
    name: Annotated[Named, Field(description="The matrix, or the scenario")]
    title: str = ""
    question: str = ""
    scenarios: list[Named] = []
    overrides: Annotated[list[str], Field(description="What the user set for every cell, as knob=value")] = []
    request: Annotated[
        dict[str, Scalar], Field(description="What else the command asked for; another request is another series")
    ] = {}
    command: list[str] = []
    started: str = ""
    ended: Annotated[str | None, Field(description="null while it runs, and after it was killed")] = None
    status: Annotated[
        Status,
        Field(
            description="running (or killed); complete: every place has a run that completed; partial: some runs did"
            " not; stopped: stop.when held; interrupted. Unless it is complete"
            " or stopped, the same command goes on"
        ),
    ]
    reason: str | None = None
    seed: int = 1
    repetitions: int
    cooldown_ms: Annotated[int, Field(description="Pause before each run but the first")] = 0
    stop: Stop = Stop()
    budget: Budget | None = None
    axes: list[Axis] = []
    baseline: Annotated[str | None, Field(description="The cell that others are compared with")] = None
    cells: Annotated[list[Cell], Field(min_length=1)]
    runs: Annotated[list[PlannedRun], Field(description="In the order in which they are run")]
    predictions: Annotated[
        list[Annotated[Claim, tolerant(Claim)]],
        Field(description="Those about the series as a whole, over arms.<arm>.<figure>"),
    ] = []
    published: Annotated[
        Published | None,
        tolerant(Published),
        Field(description="For arms: what was published, and figures over arms.<arm>.<figure>"),
    ] = None
    leaves_open: Annotated[
        str, Field(description="What the claims leave open of what was published; empty if the scenario does not say")
    ] = ""
    guesses: Annotated[
        list[ExpectedArm], Field(description="In a lesson: what was expected of arms beside each other")
    ] = []
    figures: Annotated[
        list[str], Field(description="The figures that it is about, shown first; empty where nothing names any")
    ] = []
    search: Annotated[Search | None, Field(description="For a search only")] = None
    fingerprint: Fingerprint

    def save(self, folder: Path) -> None:
        """Write the file so that a reader sees the old one or the new one, whole, even after a power cut."""
        atomic_write(folder / FILE, self.model_dump_json(by_alias=True, indent=2) + "\n")


def split_id(series: str) -> tuple[str, str]:
    """Return the kind and the name that are in a series' id, <UTC start>-<kind>-<name>."""
    _, kind, name = series.split("-", 2)
    return kind, name


def load_series(folder: Path) -> Series:
    """Return the series of a folder.

    Raises:
        OSError, ValueError: there is none, or it is not one of ours.
    """
    return Series.model_validate_json(read_regular(folder / FILE))
