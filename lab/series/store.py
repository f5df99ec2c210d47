"""Where series lie: opens a new one, and finds the one that a command goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab import paths
from lab.errors import BadInput, LabError, Problem
from lab.run.manifest import utc_now
from lab.run.session import make_folder, point_latest
from lab.series import fingerprint, record
from lab.series.plan import Plan
from lab.series.record import Budget as RecordedBudget
from lab.series.record import Fingerprint, PlannedRun, Series, Stop


def open_series(plan: Plan, taken: Fingerprint, command: Sequence[str], *, new: bool) -> tuple[Series, Path, bool]:
    """Find the series that this request goes on with, or make a new one.

    Args:
        plan: what is asked for.
        taken: the fingerprint of this moment.
        command: the command line.
        new: whether to make a new one whatever there is.

    Returns:
        The series, its folder, and whether it is an old one.

    Raises:
        BadInput: there is one that is not through, and what it ran with has changed since.
        LabError: the folder cannot be made.
    """
    found = None if new else _to_go_on_with(plan)
    if found is None:
        return (*_make(plan, taken, command), False)
    series, folder = found
    if plan.asked_repetitions and plan.rules.repetitions < series.repetitions:
        what = f"the series {series.series} is not through, and was begun with {series.repetitions} repetitions of each"
        way_on = f"ask for as many or for more (--repetitions {series.repetitions}); or NEW=1 (--new) starts another"
        raise BadInput(Problem(f"{what}, not with {plan.rules.repetitions}", way_on=way_on))
    changed = list(fingerprint.differences(series.fingerprint, taken))
    if changed:
        done = sum(one.status == "complete" for one in series.runs)
        what = f"the series {series.series} has {done} of {len(series.runs)} runs, and cannot go on"
        since = f"since it began, {'; '.join(changed)} changed, and their runs must not be compared"
        way_on = "NEW=1 (--new) starts another series; or bring back what changed, and repeat the command"
        raise BadInput(Problem(f"{what}: {since}", way_on=way_on))
    series.status, series.reason, series.ended = "running", None, None
    if plan.asked_repetitions:
        _extend(series, plan)
        series.command = list(command)
    return series, folder, True


def _to_go_on_with(plan: Plan) -> tuple[Series, Path] | None:
    """Give the newest series of the same request, if it is not through, or has fewer repetitions than asked for."""
    for folder in sorted(record.root().glob(f"*Z-{plan.kind}-{plan.name}"), reverse=True):
        try:
            series = record.load(folder)
        except (OSError, ValueError):
            continue  # cut short before its first line was whole, or another version's
        if (series.overrides, series.request) == (list(plan.overrides), dict(plan.request)):
            return (series, folder) if _goes_on(series, plan) else None
    return None


def _goes_on(series: Series, plan: Plan) -> bool:
    if series.status == "complete":
        return plan.asked_repetitions and plan.rules.repetitions > series.repetitions
    return series.status != "stopped"


def _extend(series: Series, plan: Plan) -> None:
    """Give a series the places that it lacks of what the user asks for, after those that it has."""
    has = {(place.cell, place.repetition) for place in series.runs}
    series.runs += [
        PlannedRun(cell=cell, repetition=number) for cell, number in plan.order() if (cell, number) not in has
    ]
    series.repetitions = plan.rules.repetitions


def _make(plan: Plan, taken: Fingerprint, command: Sequence[str]) -> tuple[Series, Path]:
    folder = _folder(f"{plan.kind}-{plan.name}")
    rules = plan.rules
    series = Series(
        series=folder.name,
        kind=plan.kind,
        name=plan.name,
        title=plan.title,
        question=plan.question,
        scenarios=plan.scenarios,
        overrides=list(plan.overrides),
        request=dict(plan.request),
        command=list(command),
        started=utc_now(),
        seed=rules.seed,
        repetitions=rules.repetitions,
        cooldown_ms=rules.cooldown,
        stop=Stop(failed_in_a_row=rules.stop.failed_in_a_row, when=rules.stop.when),
        budget=RecordedBudget(cells=rules.budget.cells, duration_ms=rules.budget.duration),
        axes=list(plan.axes),
        baseline=plan.baseline,
        cells=[planned.cell for planned in plan.cells.values()],
        runs=[PlannedRun(cell=cell, repetition=repetition) for cell, repetition in plan.order()],
        predictions=list(plan.predictions),
        published=plan.published,
        leaves_open=plan.leaves_open,
        figures=list(plan.figures),
        search=plan.search,
        fingerprint=taken,
    )
    series.save(folder)
    point_latest(folder)
    return series, folder


def _folder(name: str) -> Path:
    root = record.root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        return make_folder(root, name)
    except OSError as error:
        raise LabError(
            f"{error.filename}: {error.strerror}", way_on=f"see that {paths.shown(paths.RESULTS)} is writable"
        ) from None
