"""The verdict on a series, derived/verdict.json: its predictions over arms, and what its runs said of their own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from analysis.compare import arm_predictions
from analysis.compare.arm_predictions import ArmPrediction
from analysis.output import Written
from analysis.verdicts.verdict_file import FILE, PublishedResult, measure_published
from formats.predictions import Tolerance

if TYPE_CHECKING:
    from analysis.compare.replicates import Group
    from analysis.compare.series import Series

SCHEMA: Literal["connlab.series-verdict/1"] = "connlab.series-verdict/1"

Result = Literal["reproduced", "not-reproduced", "inconclusive"]

__all__ = ["FILE", "SCHEMA", "SeriesVerdict", "judge_series"]


class OwnPrediction(Written):
    """One prediction of a cell's runs, each about itself."""

    id: str
    says: str
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


class SeriesVerdict(Written):
    """The verdict on one series."""

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


def judge_series(series: Series) -> SeriesVerdict:
    """Judge a series."""
    by_arm = {cell.levels.get("arm", cell.cell): cell.cell for cell in series.plan.cells}
    groups = {arm: series.groups[cell] for arm, cell in by_arm.items() if cell in series.groups}
    predictions = [arm_predictions.judge(groups, each) for each in series.plan.predictions]
    cells = {cell.cell: _cell(series, cell.cell) for cell in series.plan.cells}
    return SeriesVerdict(
        contract=SCHEMA,
        series=series.plan.series,
        kind=series.plan.kind,
        name=series.plan.name,
        verdict=_result(
            [
                *(each.status for each in predictions),
                *(_STATUSES[cell.verdict] for cell in cells.values() if cell.verdict),
            ]
        ),
        predictions=predictions,
        published=measure_published(series.plan.published, partial(arm_predictions.compute, groups)),
        leaves_open=series.plan.leaves_open,
        cells=cells,
    )


_STATUSES = {"reproduced": "true", "not-reproduced": "false", "inconclusive": "unknown"}


def _result(statuses: Iterable[str]) -> Result:
    found = set(statuses)
    if "false" in found:
        return "not-reproduced"
    return "reproduced" if found == {"true"} else "inconclusive"


def _cell(series: Series, cell: str) -> CellVerdict:
    places = series.places(cell)
    group = series.groups.get(cell)
    not_used = {
        place.run: f"{place.status}{f': {place.reason}' if place.reason else ''}"
        for place in places
        if place.run is not None and place.status != "complete"
    }
    if group:
        not_used |= {run.name: run.unusable for run in group.runs if run.unusable is not None}
    own = _own(group) if group else []
    used, needed = len(group.used) if group else 0, _needed(group, len(places))
    judged = group is None or not group.used or any(run.verdict and run.verdict.predictions for run in group.used)
    return CellVerdict(
        planned=len(places),
        used=used,
        needed=needed,
        not_used=not_used,
        verdict=_own_verdict(own, enough=used >= needed) if judged else None,
        predictions=own,
    )


def _own(group: Group) -> list[OwnPrediction]:
    statuses: dict[tuple[str, str, str], Counter[str]] = {}
    for run in group.used:
        for each in run.verdict.predictions if run.verdict else ():
            statuses.setdefault((each.id, each.says, each.expression), Counter())[each.status] += 1
    return [
        OwnPrediction(id=id_, says=says, expression=expression, true=counts["true"], false=counts["false"])
        for (id_, says, expression), counts in statuses.items()
    ]


def _needed(group: Group | None, planned: int) -> int:
    """Return how many runs must be evidence; a manifest without a share has the default, and no run all."""
    if group is None:
        return planned
    share = Tolerance.model_validate(group.example.manifest["tolerance"]).evidence_share
    # What is a whole number but for its last binary digit is one.
    return max(1, math.ceil(round(share * planned, 9)))


def _own_verdict(own: list[OwnPrediction], *, enough: bool) -> Result:
    if any(each.false for each in own):
        return "not-reproduced"
    return "reproduced" if own and enough else "inconclusive"
