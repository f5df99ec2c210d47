"""A scenario: the model of `scenarios/<slug>/scenario.yaml`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from lab.knob_types import Duration
from lab.knobs import Group, Knobs, Role

Text = Annotated[str, Field(min_length=1)]


class Warmup(Group):
    """Requests before the measurement, one at a time, each on a connection of its own that leaves nothing behind."""

    requests: Annotated[int, Field(ge=0, le=10_000, description="How many; 0 = no warm-up")] = 0


class Tolerance(Group):
    """What a run may leave open and still be judged."""

    unexplained: Annotated[int, Field(ge=0, description="Failed or slow requests without a known cause")] = 0


class Prediction(Group):
    """What the scenario says will be measured, fixed before the run."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Small letters, digits, hyphens; unique")]
    says: Annotated[Text, Field(description="The prediction in words")]
    expression: Annotated[Text, Field(description="The prediction over figures, model and knobs; see docs/figures.md")]


class Scenario(Group):
    """One experiment of the lab."""

    model_config = ConfigDict(title="connlab scenario", validate_by_name=True)

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    title: Annotated[Text, Field(description="The phenomenon, in a few words")]
    experiment: Annotated[Text, Field(description="Which published experiment this reproduces, such as B1")]
    question: Annotated[Text, Field(description="What the run answers")]
    path: Annotated[
        list[Role],
        Field(min_length=2, description="The roles from the client to the last server, such as [k6, nginx, backend]"),
    ]
    knobs: Annotated[Knobs, Field(description="What differs from the defaults")] = Knobs()
    warmup: Warmup = Warmup()
    drain: Annotated[
        Duration, Field(ge=0, le=600_000, description="How long the sockets are watched after the load")
    ] = 2_000
    slow: Annotated[
        Annotated[Duration, Field(ge=1)] | None, Field(description="A request slower than this must have a cause")
    ] = None
    tolerance: Tolerance = Tolerance()
    predictions: Annotated[list[Prediction], Field(min_length=1, description="Each gives true, false or unknown")]
