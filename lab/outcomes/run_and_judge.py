"""A scenario from its start to its verdict: a run, or the series of its arms; and the outcome in short."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from rich.console import Console

from analysis.steps import Steps
from analysis.verdicts.verdict_file import Verdict
from formats import sanitize
from formats import series as series_file
from formats.manifest import Guess
from formats.predictions import Truth
from formats.series import Series
from lab import paths
from lab.console import run_output
from lab.engines.selection import selected_engine
from lab.errors import BadInput, ExitCode, Gathered, Problem
from lab.lessons import guesses
from lab.runs import run_results
from lab.runs.lock import Lock
from lab.runs.run import run
from lab.scenarios import places, predictions
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms, executor, printing
from lab.series.plan import Answers, Plan

STATUSES: tuple[Truth, ...] = get_args(Truth)

LIES_WHOLE = "name a complete run or series in a folder of results"


@dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        series: its series.json; None of a single run.
        answers: what somebody expected of the series.
    """

    folder: Path
    verdict: Mapping[str, Any]
    series: Series | None = None
    answers: Answers | None = None

    @property
    def code(self) -> ExitCode:
        """Return the exit code: where runs are missing the lab or the machine failed, whatever the others say."""
        if self.series and self.series.status not in ("complete", "stopped"):
            return ExitCode.LAB_FAILED
        return run_results.exit_code(self.verdict)

    @property
    def runs(self) -> list[Path]:
        """Return the folders of the runs that it rests on."""
        if self.series is None:
            return [self.folder]
        # A series lies beside its runs, wherever it was copied to.
        results = self.folder.resolve().parent.parent
        return [results / str(place.run) for place in self.series.runs if place.status == "complete"]

    def as_json(self) -> dict[str, Any]:
        """Return it as a program reads it."""
        status = {} if self.series is None else {"status": self.series.status}
        return {**self.verdict, **status, "folder": str(self.folder), "exit_code": int(self.code)}

    def print(self, console: Console) -> None:
        """Print what came out, and where it all lies."""
        if self.series is None:
            run_output.print_verdict(console, self.verdict, self.folder)
        else:
            printing.print_series(console, self.series, self.verdict, self.folder)
            if self.answers:
                guesses.print_guesses_of_series(console, self.series.runs, self.verdict, self.answers)


def run_once(
    resolved: ResolvedScenario,
    arguments: Sequence[str],
    console: Console,
    guesses: Sequence[Guess] = (),
    lock: Lock | None = None,
    *,
    tries_out: bool = False,
    profile: Steps | None = None,
) -> Outcome:
    """Run a scenario without arms once and judge it; the arguments are those of lab.runs.run.run.

    Raises:
        BadInput, LabError: as lab.runs.run.run.
    """
    folder = run(
        resolved,
        selected_engine(),
        arguments,
        console,
        guesses=guesses,
        lock=lock,
        tries_out=tries_out,
        profile=profile,
    )
    return Outcome(folder, run_results.analyse_run(folder))


def run_series(
    plan: Plan,
    arguments: Sequence[str],
    console: Console,
    *,
    new: bool,
    answers: Answers | None = None,
    lock: Lock | None = None,
    profile: bool = False,
) -> Outcome:
    """Run a series, or what is left of it, and judge it; the arguments are those of lab.series.executor.run_plan.

    Raises:
        BadInput, LabError: as lab.series.executor.run_plan.
    """
    folder = executor.run_plan(
        plan, selected_engine(), arguments, console, new=new, answers=answers, lock=lock, profile=profile
    )
    return Outcome(folder, run_results.derive_series(folder), series_file.load_series(folder), answers)


def judge_folder(folder: Path) -> Outcome:
    """Judge a run, or a series, that has ended.

    Raises:
        BadInput, LabError: it is none, or cannot be judged.
    """
    if (folder / series_file.FILE).is_file():
        series = _series(folder)
        return Outcome(folder, run_results.derive_series(folder), series)
    return Outcome(folder, run_results.analyse_run(folder))


def _series(folder: Path) -> Series:
    try:
        return series_file.load_series(folder)
    except (OSError, ValueError) as error:
        raise BadInput(Problem(format_read_error(error), paths.shown(folder / series_file.FILE), LIES_WHOLE)) from None


def format_read_error(error: OSError | ValueError) -> str:
    """Return what is wrong with a file that is read through a model: the first thing, with its place."""
    return sanitize.format_validation_error(error) if isinstance(error, ValidationError) else str(error)


def run_scenario(
    resolved: ResolvedScenario, arguments: Sequence[str], console: Console, lock: Lock, *, new: bool
) -> Outcome:
    """Run a scenario, or the series of its arms, and judge it, all under the lock of one command.

    Raises:
        BadInput, LabError: as the two above.
    """
    if resolved.scenario.arms:
        return run_series(arms.plan_arms(resolved, ()), arguments, console, new=new, lock=lock)
    return run_once(resolved, arguments, console, lock=lock)


def resolve_checked(name: str) -> ResolvedScenario:
    """Resolve a scenario, its arms with it.

    Raises:
        BadInput: something in it is wrong.
    """
    resolved = resolve(name)
    if resolved.scenario.arms:
        arms.plan_arms(resolved, ())
    return resolved


def resolve_all() -> Iterator[ResolvedScenario]:
    """Yield every scenario, with a control that is there; all problems are reported together, after all were read.

    Raises:
        BadInput: something is.
    """
    gathered = Gathered()
    gathered.extend(places.misnamed())
    catalogue: dict[str, ResolvedScenario] = {}
    for slug in places.slugs():
        with gathered:
            yield catalogue.setdefault(slug, resolve_checked(slug))
    gathered.refuse()
    gathered.extend(predictions.missing_controls(catalogue))
    gathered.refuse()


@dataclass(frozen=True)
class OutcomeSummary:
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
    identities: dict[Truth, int]


def summarize_outcome(outcome: Outcome, resolved: ResolvedScenario) -> OutcomeSummary:
    """Read the verdicts of an outcome of a scenario, and of its runs."""
    of_runs = {folder: run_results.read_derived(folder, Verdict) for folder in outcome.runs}
    judged = [(one["id"], one["status"]) for one in outcome.verdict["predictions"]] if outcome.series else []
    for folder, verdict in of_runs.items():
        name = f"{folder.parent.name}/{folder.name}"
        arm = next(f"{place.cell}/" for place in outcome.series.runs if place.run == name) if outcome.series else ""
        judged += [(arm + one.id, one.status) for one in verdict.predictions]
    judged += _never_judged(outcome.series, resolved) if outcome.series else []
    unexplained = [verdict.ledger.unexplained for verdict in of_runs.values()]
    known = [count for count in unexplained if count is not None]
    return OutcomeSummary(
        false=_ids(judged, "false"),
        unknown=_ids(judged, "unknown"),
        unexplained=sum(known) if len(known) == len(unexplained) else None,
        identities={
            status: sum(verdict.ledger.identities[status] for verdict in of_runs.values()) for status in STATUSES
        },
    )


def _never_judged(series: Series, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
    """Yield what is about the runs of arms that have none, such as those of a series that its stop rule ended."""
    ran = {place.cell for place in series.runs if place.status == "complete"}
    for arm in (cell.cell for cell in series.cells if cell.cell not in ran):
        for one in resolved.scenario.predictions:
            if one.judges(arm):
                yield f"{arm}/{one.id}", "unknown"


def _ids(judged: Iterable[tuple[str, str]], status: str) -> list[str]:
    return list(dict.fromkeys(name for name, found in judged if found == status))
