"""The verdict on a run, derived/verdict.json: from the same raw files always the same bytes.

Beside it the figures of a published experiment: what was published, and what a run or a series measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from analysis.diagnosis.causes import UNEXPLAINED
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.identities import IdentityEntry
from analysis.expressions.values import Number, Unknown
from analysis.figures import Run
from analysis.output import DerivedFile, Written
from analysis.verdicts import ledger_file
from analysis.verdicts.figures_file import MeasuredValue, measured
from analysis.verdicts.ledger_file import Ledger
from analysis.verdicts.predictions import Outcome, judge, keeps_out, number
from formats.predictions import Claim, Published, Result, Truth


class MeasuredFigure(Written):
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

    description: Annotated[str | None, Field(description="What was published; null for a workshop's own scenario")]
    here: list[MeasuredFigure]


def measure_published(published: Published | None, number: Callable[[str], Number | Unknown]) -> PublishedResult | None:
    """Compute the figures that stand beside what was published; None if the scenario names none."""
    if published is None:
        return None
    here = []
    for name, expression in published.here.items():
        value = number(expression)
        known, why = (None, value.why) if isinstance(value, Unknown) else (value, None)
        there = published.there.get(name)
        here.append(MeasuredFigure(name=name, expression=expression, value=known, why=why, published=there))
    return PublishedResult(description=published.description, here=here)


_FALSE_IDENTITIES = "ledger.identities.failed"


class PredictionResult(Written):
    """One prediction of the scenario, and what became of it."""

    id: str
    description: Annotated[str, Field(description="The prediction in words")]
    expression: Annotated[str, Field(description="What decides it")]
    when: Annotated[str | None, Field(description="Under which settings it applies; null under all")] = None
    status: Annotated[Outcome, Field(description="not-applicable: `when` does not hold; neither for nor against")]
    measured: Annotated[
        dict[str, MeasuredValue],
        Field(description="Each name in the expression and its value; null where the evidence does not give one"),
    ]
    why: Annotated[str | None, Field(description="Why the status is unknown or not-applicable; else null")]


class InstrumentHealth(Written):
    """What one instrument recorded of itself."""

    healthy: Annotated[bool, Field(description="Whether all of its evidence can be used")]
    figures: Annotated[
        dict[str, bool | int | float | str | None], Field(description="Its own figures; null where not known")
    ]


class ProblemEntry(Written):
    """One thing that is wrong with an instrument."""

    instrument: str
    message: str
    spoils: Annotated[list[Evidence], Field(description="Evidence that cannot be used; empty if all can")]


class LedgerSummary(Written):
    """The ledger in short; ledger.json has it whole."""

    unexplained: Annotated[int | None, Field(description="As in ledger.json")]
    causes: Annotated[dict[str, int], Field(description="As in ledger.json")]
    identities: Annotated[dict[Truth, int], Field(description="How many hold")]


class Verdict(DerivedFile):
    """The verdict on one run."""

    file = Path("derived") / "verdict.json"
    sorts = True

    contract: Annotated[Literal["connlab.verdict/1"], Field(alias="schema")]
    scenario: str
    run: str
    verdict: Annotated[
        Result,
        Field(
            description="not-reproduced if any prediction is false; else inconclusive if any is unknown or none"
            " applies, if more requests are unexplained than the scenario tolerates, or if an identity of the ledger"
            " does not hold and no prediction that applies names ledger.identities.failed; else reproduced"
        ),
    ]
    predictions: list[PredictionResult]
    published: Annotated[
        PublishedResult | None, Field(description="Beside a published experiment; null where nothing stands beside one")
    ]
    ledger: LedgerSummary
    health: Annotated[dict[str, InstrumentHealth], Field(description="Every instrument, as sampler/backend-1")]
    problems: Annotated[list[ProblemEntry], Field(description="Everything that is wrong, ordered by instrument")]


class JudgedRun:
    """A run judged by its scenario's predictions. Each part is worked out when it is first asked for."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def account(self) -> Ledger:
        """The run's ledger."""
        return ledger_file.build_ledger(self.run)

    @cached_property
    def predictions(self) -> list[PredictionResult]:
        """What became of each prediction."""
        return [_judge(self.run, prediction) for prediction in self.run.raw.manifest.predictions]

    @cached_property
    def health(self) -> dict[str, InstrumentHealth]:
        """What each instrument recorded of itself."""
        return {
            name: InstrumentHealth(healthy=report.healthy, figures=report.figures)
            for name, report in self.run.health.reports.items()
        }

    @cached_property
    def problems(self) -> list[ProblemEntry]:
        """Everything that is wrong with the evidence."""
        return _problems(self.run, self.predictions, self._open)

    @cached_property
    def verdict(self) -> Verdict:
        """All of it."""
        manifest = self.run.raw.manifest
        return Verdict(
            contract="connlab.verdict/1",
            scenario=manifest.scenario,
            run=manifest.run,
            verdict=_result(self.predictions, explained=not self._open),
            predictions=self.predictions,
            published=measure_published(manifest.published, partial(number, self.run)),
            ledger=_summary(self.account),
            health=self.health,
            problems=self.problems,
        )

    @cached_property
    def _open(self) -> list[str]:
        """What the ledger leaves open, so that nothing is reproduced."""
        beyond = _beyond_tolerance(self.run, self.account)
        return [*([] if beyond is None else [beyond]), *_contradictions(self.predictions, self.account)]


def _summary(account: Ledger) -> LedgerSummary:
    statuses = [identity.holds for hop in account.hops for identity in hop.identities]
    counts = {status: statuses.count(status) for status in get_args(Truth)}
    return LedgerSummary(unexplained=account.unexplained, causes=account.causes, identities=counts)


def _judge(run: Run, prediction: Claim) -> PredictionResult:
    kept_out = None if prediction.when is None else keeps_out(run, prediction.when)
    if kept_out is not None:
        status, judgement = kept_out
    else:
        judgement = judge(run, prediction.expression)
        status = judgement.status
    return PredictionResult(
        id=prediction.id,
        description=prediction.description,
        expression=prediction.expression,
        when=prediction.when,
        status=status,
        measured={name: measured(value) for name, value in judgement.measured.items()},
        why=judgement.why,
    )


def _result(predictions: list[PredictionResult], *, explained: bool) -> Result:
    statuses = {prediction.status for prediction in predictions} - {"not-applicable"}
    if "false" in statuses:
        return "not-reproduced"
    return "reproduced" if statuses == {"true"} and explained else "inconclusive"


def _beyond_tolerance(run: Run, account: Ledger) -> str | None:
    """Return what to tell if the ledger leaves more open than the scenario tolerates; None if it does not."""
    manifest = run.raw.manifest
    tolerated, unexplained = manifest.tolerance.unexplained, account.unexplained
    if account.by_connection:
        return _connections_beyond(account, tolerated)
    if any(run.health.spoilt(Evidence.REQUESTS, f"{manifest.client}/{each}") for each in run.clients):
        unexplained = None
    if unexplained is None and manifest.status == "complete":
        return f"the number of unexplained requests is unknown; the scenario tolerates {tolerated}"
    if unexplained is None or unexplained <= tolerated:
        return None
    are = "request is" if unexplained == 1 else "requests are"
    return f"{unexplained} {are} unexplained; the scenario tolerates {tolerated}"


def _connections_beyond(account: Ledger, tolerated: int) -> str | None:
    found = [hop.connections.causes.get(UNEXPLAINED.name, 0) for hop in account.hops if hop.connections]
    if not found:
        return f"the number of unexplained connections is unknown; the scenario tolerates {tolerated}"
    return (
        f"{sum(found)} connections are unexplained; the scenario tolerates {tolerated}"
        if sum(found) > tolerated
        else None
    )


def _contradictions(predictions: list[PredictionResult], account: Ledger) -> Iterator[str]:
    """Yield the identities that do not hold: two observers contradict each other, unless that is what is predicted."""
    if any(each.status in {"true", "false"} and _FALSE_IDENTITIES in each.measured for each in predictions):
        return
    for hop in account.hops:
        for each in hop.identities:
            if each.holds == "false":
                yield f"observers contradict each other: {each.says} ({each.id}: {each.left.value} and {_right(each)})"


def _right(identity: IdentityEntry) -> str:
    low, high = identity.right.value, identity.right.value_max
    return str(low) if high is None else f"{low} to {high}"


def _problems(run: Run, predictions: list[PredictionResult], unsettled: list[str]) -> list[ProblemEntry]:
    found = [
        ProblemEntry(instrument=each.instrument, message=each.message, spoils=sorted(each.spoils))
        for each in run.health.problems
    ]
    found += [ProblemEntry(instrument="ledger", message=each, spoils=[]) for each in unsettled]
    if not predictions:
        found.append(ProblemEntry(instrument="manifest", message="the run has no predictions", spoils=[]))
    elif all(each.status == "not-applicable" for each in predictions):
        message = "no prediction is about these settings"
        found.append(ProblemEntry(instrument="manifest", message=message, spoils=[]))
    return found
