"""The verdict on a series, derived/verdict.json: its predictions over arms, and what its runs said of their own."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from analysis.compare import arm_predictions
from analysis.compare.arm_predictions import ArmPrediction
from analysis.compare.replicates import Group, SeriesRuns
from analysis.output import DerivedFile, Written
from analysis.verdicts.verdict_file import PublishedResult, Verdict, measure_published
from formats.predictions import Result


class OwnPrediction(Written):
    """One prediction of a cell's runs, each about itself."""

    id: str
    description: str
    expression: str
    true: Annotated[int, Field(description="In how many of the runs that are evidence it held")]
    false: Annotated[int, Field(description="In how many it did not")]


class CellVerdict(Written):
    """The runs of one cell."""

    planned: Annotated[int, Field(description="Repetitions that the series has of it")]
    used: Annotated[int, Field(description="Runs that are evidence: complete, and not inconclusive")]
    needed: Annotated[
        int,
        Field(description="Runs that must be evidence: the share of the planned that the scenario's tolerance states"),
    ]
    not_used: Annotated[dict[str, str], Field(description="Each run that began and is not evidence, and why")]
    verdict: Annotated[
        Result | None,
        Field(
            description="not-reproduced if a prediction is false in any run that is evidence; else inconclusive if"
            " fewer runs are evidence than needed; else reproduced; null if the runs have no predictions of their own"
        ),
    ]
    predictions: Annotated[list[OwnPrediction], Field(description="What the runs say each about itself")]


class SeriesVerdict(DerivedFile):
    """The verdict on one series."""

    file = Verdict.file
    sorts = True

    contract: Annotated[Literal["connlab.series-verdict/1"], Field(alias="schema")]
    series: str
    kind: Literal["arms", "matrix", "search"]
    name: str
    verdict: Annotated[
        Result,
        Field(
            description="not-reproduced if any prediction is false, of the series or of a run; else inconclusive if"
            " any is unknown, a cell inconclusive, or there is none; else reproduced"
        ),
    ]
    predictions: Annotated[list[ArmPrediction], Field(description="About the series as a whole")]
    published: Annotated[
        PublishedResult | None, Field(description="Beside a published experiment; null where nothing stands beside one")
    ]
    leaves_open: Annotated[
        str, Field(description="What the predictions leave open of what was published; empty if nothing says")
    ]
    cells: dict[str, CellVerdict]


def judge_series(series: SeriesRuns) -> SeriesVerdict:
    """Judge a series."""
    plan = series.plan
    by_arm = {cell.levels.get("arm", cell.cell): cell.cell for cell in plan.cells}
    groups = {arm: series.groups[cell] for arm, cell in by_arm.items() if cell in series.groups}
    predictions = [arm_predictions.judge(groups, each) for each in plan.predictions]
    cells = {cell.cell: _judge_cell(series, cell.cell) for cell in plan.cells}
    return SeriesVerdict(
        contract="connlab.series-verdict/1",
        series=plan.series,
        kind=plan.kind,
        name=plan.name,
        verdict=_worst([*(_RESULTS[each.status] for each in predictions), *(cell.verdict for cell in cells.values())]),
        predictions=predictions,
        published=measure_published(plan.published, partial(arm_predictions.compute, groups)),
        leaves_open=plan.leaves_open,
        cells=cells,
    )


# By the status of a prediction, the worst first.
_RESULTS: dict[str, Result] = {"false": "not-reproduced", "unknown": "inconclusive", "true": "reproduced"}


def _worst(found: Sequence[Result | None]) -> Result:
    return next((result for result in _RESULTS.values() if result in found), "inconclusive")


def _judge_cell(series: SeriesRuns, cell: str) -> CellVerdict:
    places = series.places(cell)
    group = series.groups.get(cell, Group(cell, ()))
    not_used = {
        place.run: f"{place.status}{f': {place.reason}' if place.reason else ''}"
        for place in places
        if place.run is not None and place.status != "complete"
    }
    not_used |= {run.name: run.unusable for run in group.runs if run.unusable is not None}
    own, needed = _own_predictions(group), _needed(group, len(places))
    verdict: Result = "reproduced" if own and len(group.used) >= needed else "inconclusive"
    if any(each.false for each in own):
        verdict = "not-reproduced"
    return CellVerdict(
        planned=len(places),
        used=len(group.used),
        needed=needed,
        not_used=not_used,
        verdict=verdict if own or not group.used else None,
        predictions=own,
    )


def _own_predictions(group: Group) -> list[OwnPrediction]:
    statuses: dict[tuple[str, str, str], Counter[str]] = {}
    for run in group.used:
        for each in run.verdict.predictions if run.verdict else ():
            statuses.setdefault((each.id, each.description, each.expression), Counter())[each.status] += 1
    return [
        OwnPrediction(
            id=id_, description=description, expression=expression, true=counts["true"], false=counts["false"]
        )
        for (id_, description, expression), counts in statuses.items()
    ]


def _needed(group: Group, planned: int) -> int:
    """Return how many runs must be evidence; a manifest without a share has the default, and no run all."""
    if not group.runs:
        return planned
    share = group.example.manifest.tolerance.evidence_share
    # What is a whole number but for its last binary digit is one.
    return max(1, math.ceil(round(share * planned, 9)))
