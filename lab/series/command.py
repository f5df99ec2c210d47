"""From a plan to a series that has been run: checks, lock, fingerprint, executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from analysis.expressions import ExpressionError
from formats.series import Fingerprint, PlannedRun
from lab import paths
from lab.engines.protocol import Engine
from lab.errors import Problem
from lab.runs import capacity, user_files
from lab.runs.lock import Lock, machine_lock
from lab.runs.run import clear_up_after
from lab.runs.signals import interruptible
from lab.runs.user_files import Configurations
from lab.scenarios.resolved import ResolvedScenario
from lab.series import store
from lab.series.executor import Executor, RealRunner
from lab.series.plan import Answers, Gathered, Plan
from lab.series.printing import Progress


def run_plan(
    plan: Plan,
    engine: Engine,
    command: Sequence[str],
    console: Console,
    *,
    new: bool,
    answers: Answers | None = None,
    places: Callable[[Executor], Iterable[PlannedRun]] | None = None,
    lock: Lock | None = None,
    profile: bool = False,
) -> Path:
    """Run a series, or what is left of it, and give its folder.

    Args:
        plan: what is asked for.
        engine: what runs it.
        command: the command line.
        console: where progress is printed.
        new: whether to begin a new series although there is one to go on with.
        answers: what somebody expects of it, kept in its record and in those of its runs.
        places: what is to be run; by default every place of the plan that has no complete run.
        lock: the machine's lock, where the command holds it for more than this series.
        profile: whether each run's manifest is to say how long its steps took.

    Raises:
        BadInput: this machine cannot do what a cell asks, or an unfinished series must not be mixed with this one.
        LabError: the lab or the machine failed as a whole, or the user interrupted the series.
    """
    found = check(plan, engine)
    # Arms mostly have the same configuration.
    for lines in dict.fromkeys(
        tuple(user_files.describe_configurations(plan.cells[cell].effective, one)) for cell, one in found.items()
    ):
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    if plan.remark:
        console.print(Text(plan.remark, "yellow"), soft_wrap=True)
    with machine_lock(f"the series of {plan.name}", held=lock) as held, interruptible():
        clear_up_after(held, engine)
        texts = user_files.configuration_texts(found.values())
        own = store.with_own(plan.digest(), texts, [planned.effective for planned in plan.cells.values()])
        taken = store.now(own, plan.roles, engine, plan.with_services)
        series, folder, resumed = store.open_series(plan, taken, command, new=new)
        answers = answers or Answers()
        series.guesses = answers.chosen or series.guesses
        cells: dict[str, ResolvedScenario] = {name: planned.effective for name, planned in plan.cells.items()}
        executor = Executor(
            series,
            folder,
            cells,
            RealRunner(
                engine, command, console, lock=held, images=taken.images, guesses=answers.of_arm, profile=profile
            ),
            Progress(series, cells, console),
        )
        if resumed:
            _resume(executor, taken, console)
        executor.go((places or open_places)(executor))
        return folder


def _resume(executor: Executor, taken: Fingerprint, console: Console) -> None:
    series = executor.series
    derive_again = series.fingerprint.analysis != taken.analysis
    series.fingerprint = taken
    executor.take_over(derive_again=derive_again)
    done = sum(place.status == "complete" for place in series.runs)
    again = "; the analysis changed, so these were derived again" if derive_again and done else ""
    where = paths.shown(executor.folder)
    console.print(f"going on with {where}: {done} of {len(series.runs)} runs are complete{again}", soft_wrap=True)


def open_places(executor: Executor) -> Iterator[PlannedRun]:
    """Give every place that has no complete run yet, in the order of the plan."""
    yield from [place for place in executor.series.runs if place.status != "complete"]


def check(plan: Plan, engine: Engine) -> Mapping[str, Configurations]:
    """Refuse what this machine cannot hold in any of the cells, and a stop rule that cannot be judged.

    Returns:
        What the configurations of the scenario's own say, by cell; without cells that have none.

    Raises:
        BadInput: with the numbers, for all cells at once.
    """
    gathered = Gathered()
    found: dict[str, Configurations] = {}
    for cell, planned in plan.cells.items():
        with gathered:
            found[cell] = capacity.check_capacity(planned.effective, engine)
    gathered.extend(_stop_rule(plan))
    gathered.refuse()
    return {cell: one for cell, one in found.items() if one}


def _stop_rule(plan: Plan) -> Iterator[Problem]:
    from analysis.verdicts import predictions  # noqa: PLC0415 # as in prediction_checks

    if plan.rules.stop.when is None:
        return
    for planned in plan.cells.values():
        effective = planned.effective
        try:
            predictions.check(plan.rules.stop.when, effective.roles, effective.on_path())
        except ExpressionError as error:
            yield Problem(f"stop.when: {error}")
