"""docs/recorded/<slug>.json: what reproduced runs of a scenario measured of all that its predictions name.

`make mutate` changes these values, and finds the predictions that notice nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from formats import manifest
from formats.predictions import Claim
from lab import paths
from lab.errors import BadInput, Problem
from lab.outcomes.run_and_judge import LIES_WHOLE, Outcome, format_read_error
from lab.scenarios import forecast
from lab.scenarios.resolved import ResolvedScenario
from tools.recording import recorded_runs

if TYPE_CHECKING:
    from analysis.expressions.values import Value
    from analysis.figures import Run

_DIGITS = 6
Recorded = bool | int | float | str | list[int | float] | None


class Specimen(BaseModel):
    """What one run of each arm measured."""

    model_config = ConfigDict(title="connlab recorded figures", extra="forbid", frozen=True, validate_by_name=True)

    contract: Annotated[Literal["connlab.recorded/1"], Field(alias="schema")] = "connlab.recorded/1"
    scenario: str
    content: Annotated[str, Field(description="As in experiments.jsonl: of what the scenario sets and predicts")]
    run: Annotated[str, Field(description="<scenario>/<run-id>, or series/<series-id>")]
    arms: Annotated[
        dict[str, dict[str, Recorded]],
        Field(description="By arm (`all` without arms) each name of its predictions; null if unknown"),
    ]
    between: Annotated[
        dict[str, Recorded], Field(description="Each name of the predictions that compare arms: means over the runs")
    ]


WHOLE = "all"
FOLDER = paths.ROOT / "docs" / "recorded"


def file_of(slug: str) -> Path:
    """Return the file that has a scenario's recorded figures."""
    return FOLDER / f"{slug}.json"


def read(slug: str) -> Specimen | None:
    """Read a scenario's recorded figures; None if none are.

    Raises:
        BadInput: the file does not have the schema.
    """
    file = file_of(slug)
    try:
        return Specimen.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        hint = f"record it again: make record SCENARIO={slug}"
        raise BadInput(Problem(format_read_error(error), paths.shown(file), hint)) from None


def write(resolved: ResolvedScenario, outcome: Outcome) -> None:
    """Write what an outcome measured; one that is not reproduced leaves the file as it is.

    So does each after the first of a scenario's content: whether a prediction can fail is not for chance to say.

    Raises:
        BadInput: it is of another scenario, or one of its runs cannot be read.
    """
    of = outcome.series.name if outcome.series else outcome.verdict["scenario"]
    if of != resolved.slug:
        raise BadInput(Problem(f"{paths.shown(outcome.folder)} is of {of}, not of {resolved.slug}"))
    if outcome.verdict["verdict"] != "reproduced":
        return
    found = take(resolved, outcome)
    with contextlib.suppress(BadInput):  # what is damaged is written again
        first = read(resolved.slug)
        if first is not None and first.content == found.content:
            return
    file = file_of(resolved.slug)
    file.parent.mkdir(exist_ok=True)
    file.write_text(found.model_dump_json(by_alias=True, indent=1) + "\n")


def take(resolved: ResolvedScenario, outcome: Outcome) -> Specimen:
    """Read off an outcome what the scenario's predictions name."""
    runs = list(_runs(outcome))
    by_arm: dict[str, dict[str, Recorded]] = {}
    for arm, run in runs:
        claims = [one for one in resolved.scenario.predictions if one.judges(None if arm == WHOLE else arm)]
        by_arm.setdefault(arm, {}) or by_arm[arm].update(_values(run, _names(claims)))
    compared = _names(one for one in resolved.scenario.predictions if one.compares_arms)
    return Specimen(
        scenario=resolved.slug,
        content=recorded_runs.content(resolved),
        run=f"{outcome.folder.parent.name}/{outcome.folder.name}",
        arms=by_arm,
        between={name: _between(runs, name) for name in compared},
    )


def _runs(outcome: Outcome) -> Iterator[tuple[str, Run]]:
    # They bring numpy and duckdb; a list of scenarios needs none.
    from analysis.evidence.rawrun import RawRun  # noqa: PLC0415
    from analysis.figures import Run  # noqa: PLC0415

    for folder in outcome.runs:
        cell = (
            next((place.cell for place in outcome.series.runs if str(place.run).endswith(folder.name)), WHOLE)
            if outcome.series
            else WHOLE
        )
        try:
            yield cell, Run(RawRun(folder, manifest.load_manifest(folder)))
        except manifest.ManifestError as error:
            raise BadInput(Problem(str(error), hint=LIES_WHOLE)) from None


def _names(claims: Iterable[Claim]) -> list[str]:
    return sorted({name for claim in claims for name in forecast.names_in(claim.expression)})


def _values(run: Run, names: Iterable[str]) -> dict[str, Recorded]:
    from analysis import figures  # noqa: PLC0415 # as above

    return {name: _written(figures.value(run, name)) for name in names}


def _between(runs: Iterable[tuple[str, Run]], name: str) -> Recorded:
    from analysis.compare.arm_figures import arm_identifier  # noqa: PLC0415 # as above

    _, arm, figure = name.split(".", 2)
    found = [_values(run, [figure])[figure] for cell, run in runs if arm_identifier(cell) == arm]
    numbers = [each for each in found if isinstance(each, int | float)]
    return _rounded(fmean(numbers)) if numbers and len(numbers) == len(found) else next(iter(found), None)


def _written(value: Value) -> Recorded:
    if isinstance(value, tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, bool | int | str):
        return value
    return _rounded(value) if isinstance(value, float) else None


def _rounded(value: float) -> int | float:
    if isinstance(value, int) or not math.isfinite(value):
        return value
    return float(f"{value:.{_DIGITS}g}")
