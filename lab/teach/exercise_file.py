"""The model of `scenarios/<slug>/exercises.yaml`: what each exercise of a lesson turns, and its answer, kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab.errors import BadInput, Problem
from lab.reading import document as documents
from lab.reading import messages
from lab.scenarios.places import Place

FILE = "exercises.yaml"

_Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Exercise(_Strict):
    """One exercise, in the order of the lesson's list.

    One that is closed says what it sets and what must then be measured. An open one leaves the knob to the learner: it
    says what must hold, and the knob and value of the lesson's own answer.
    """

    arm: Annotated[_Text | None, Field(description="The scenario's arm that it is about, which is run alone")] = None
    set: Annotated[list[_Text], Field(description="What it turns, each as knob=value")] = Field(default_factory=list)
    answer: Annotated[list[_Text], Field(description="What must be measured: expressions over figures")] = Field(
        default_factory=list
    )
    by_hand: Annotated[_Text | None, Field(description="Why no run can judge it; it then has no answer here")] = None
    found: Annotated[
        _Text | None,
        Field(description="An open exercise: the lesson's own answer, as knob=value; the learner turns it"),
    ] = None
    turns: Annotated[
        list[_Text],
        Field(description="An open exercise: whose knobs may be turned; by default every server's and proxy's"),
    ] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_judged_one_way(self) -> Self:
        if bool(self.answer) == bool(self.by_hand):
            raise ValueError("an exercise has either an answer, which a run can be judged by, or by_hand")
        return self

    @property
    def is_open(self) -> bool:
        """Whether the learner is to find the knob."""
        return self.found is not None


class Exercises(_Strict):
    """The exercises of a lesson."""

    model_config = ConfigDict(title="connlab exercises")

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    exercises: Annotated[list[Exercise], Field(min_length=1)]


def read(place: Place) -> tuple[Exercise, ...]:
    """Read a lesson's exercises.

    Raises:
        BadInput: it has none, or its file is wrong.
    """
    file = place.home / FILE
    if not file.is_file():
        raise BadInput(Problem(f"{place.named} has no {FILE}", way_on="its README has exercises to be run by hand"))
    document = documents.read(file)
    if not isinstance(document.content, Mapping):
        raise BadInput(Problem("exercises are a mapping of keys to values", document.where(())))
    try:
        return tuple(Exercises.model_validate(document.content).exercises)
    except ValidationError as error:
        raise BadInput([_problem(one, document) for one in error.errors()]) from None


def _problem(finding: Any, document: documents.Document) -> Problem:  # noqa: ANN401 # a TypedDict of pydantic's
    location = finding["loc"]
    name = ".".join(str(part + 1) if isinstance(part, int) else part for part in location) or "the file"
    what, way_on = messages.sentence(finding, messages.siblings(Exercises, location), name)
    return Problem(what, document.where(location), way_on)
