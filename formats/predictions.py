"""What a scenario states before a run, as a manifest and a series keep it: claims, what was published, tolerance."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
# Where evidence is missing, a statement is neither.
Truth = Literal["true", "false", "unknown"]
# What a run, or a series, comes to.
Result = Literal["reproduced", "not-reproduced", "inconclusive"]


class Part(BaseModel):
    """A mapping of a scenario or of a role: unknown names are refused, and no value silently becomes another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Tolerance(Part):
    """What a run, or a series of runs, may leave open and still be judged."""

    unexplained: Annotated[int, Field(ge=0, description="Failed or slow requests without a known cause")] = 0
    evidence_share: Annotated[
        float,
        Field(
            gt=0, le=1, description="In a series, the share of a cell's repetitions that must be evidence, rounded up"
        ),
    ] = 0.8


class Claim(Part):
    """What is said will be measured, fixed before the run."""

    id: Annotated[Name, Field(description="Small letters, digits, hyphens; unique")]
    description: Annotated[Text, Field(description="The prediction in words")]
    expression: Annotated[Text, Field(description="The prediction over figures, model and knobs; see docs/figures.md")]
    when: Annotated[
        Text | None,
        Field(description="Under which settings it applies: an expression over knobs and model; by default under all"),
    ] = None


class Published(Part):
    """What was published of this experiment, and the figures of this lab that stand beside it."""

    description: Annotated[Text | None, Field(description="What was published; leave it out if nothing was")] = None
    here: Annotated[
        dict[Text, Text],
        Field(
            min_length=1,
            description="Numbers by their names in words: expressions as in predictions, over arms.<arm>.<figure> where"
            " there are arms",
        ),
    ]
    there: Annotated[
        dict[Text, float], Field(description="The published numbers of some of these, by the same names")
    ] = Field(default_factory=dict)
