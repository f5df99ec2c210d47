"""An outcome in short: which predictions failed it, what the ledger left open, and how many identities hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formats.series import Series
from lab.experiments.outcome import Outcome
from lab.run import verdicts
from lab.scenario.effective import Effective

Status = Literal["true", "false", "unknown"]
STATUSES: tuple[Status, ...] = ("true", "false", "unknown")


@dataclass(frozen=True)
class Brief:
    """An outcome in short.

    Attributes:
        false: the predictions that did not hold; those about runs of an arm as `<arm>/<id>`.
        unknown: those that could not be decided; of an arm that has no run, all that are about its runs.
        unexplained: failed and slow requests without a cause, over all runs; None where that is not known.
        identities: how many hold (`true`), do not (`false`), or are `unknown`, over all runs.
    """

    false: list[str]
    unknown: list[str]
    unexplained: int | None
    identities: dict[Status, int]


def of(outcome: Outcome, effective: Effective) -> Brief:
    """Read the verdicts of an outcome of a scenario, and of its runs."""
    # It brings numpy and duckdb; a list of scenarios needs none.
    from analysis.verdicts.verdict_file import FILE, Verdict  # noqa: PLC0415

    of_runs = {folder: verdicts.read(folder, FILE, Verdict) for folder in outcome.runs}
    judged = [(one["id"], one["status"]) for one in outcome.verdict["predictions"]] if outcome.series else []
    for folder, verdict in of_runs.items():
        arm = f"{_arm(outcome.series, folder)}/" if outcome.series else ""
        judged += [(arm + one.id, one.status) for one in verdict.predictions]
    judged += _never_judged(outcome.series, effective) if outcome.series else []
    unexplained = [verdict.ledger.unexplained for verdict in of_runs.values()]
    known = [count for count in unexplained if count is not None]
    return Brief(
        false=_ids(judged, "false"),
        unknown=_ids(judged, "unknown"),
        unexplained=sum(known) if len(known) == len(unexplained) else None,
        identities={
            status: sum(verdict.ledger.identities[status] for verdict in of_runs.values()) for status in STATUSES
        },
    )


def _never_judged(series: Series, effective: Effective) -> Iterator[tuple[str, str]]:
    """Give what is about the runs of arms that have none, such as those of a series that its stop rule ended."""
    ran = {place.cell for place in series.runs if place.status == "complete"}
    for arm in (cell.cell for cell in series.cells if cell.cell not in ran):
        for one in effective.scenario.predictions:
            if one.judges(arm):
                yield f"{arm}/{one.id}", "unknown"


def _ids(judged: Iterable[tuple[str, str]], status: str) -> list[str]:
    return list(dict.fromkeys(name for name, found in judged if found == status))


def _arm(series: Series, folder: Path) -> str:
    return next(place.cell for place in series.runs if place.run == f"{folder.parent.name}/{folder.name}")
