"""One experiment from its start to its verdict: a run, or the series of a scenario's arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from analysis.steps import Steps
from formats import sanitize
from formats import series as series_file
from formats.manifest import Guess
from formats.series import Series
from lab import paths
from lab.engine.choice import chosen
from lab.errors import BadInput, ExitCode, Problem
from lab.results import verdict_printing
from lab.run import reports, verdicts
from lab.run.lock import Lock
from lab.run.run import run
from lab.scenario import places, twins
from lab.scenario.effective import Effective
from lab.scenario.resolve import resolve
from lab.series import arms, command, printing
from lab.series.plan import Answers, Plan
from lab.teach import reveal

LIES_WHOLE = "name a run or a series that lies whole in a folder of results"


@dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        folder: the run's, or the series'.
        verdict: its derived/verdict.json.
        series: its series.json; None of a single run.
        answers: what somebody expected of the series.
    """

    folder: Path
    verdict: Mapping[str, Any]
    series: Series | None = None
    answers: Answers | None = None

    @property
    def code(self) -> ExitCode:
        """The exit code: where runs are missing the lab or the machine failed, whatever the others say."""
        if self.series and self.series.status not in ("complete", "stopped"):
            return ExitCode.LAB_FAILED
        return verdicts.exit_code(self.verdict)

    @property
    def runs(self) -> list[Path]:
        """The folders of the runs that it rests on."""
        if self.series is None:
            return [self.folder]
        # A series lies beside its runs, wherever it was copied to.
        results = self.folder.resolve().parent.parent
        return [results / str(place.run) for place in self.series.runs if place.status == "complete"]

    def as_json(self) -> dict[str, Any]:
        """Give it as a program reads it."""
        status = {} if self.series is None else {"status": self.series.status}
        return {**self.verdict, **status, "folder": str(self.folder), "exit_code": int(self.code)}

    def print(self, console: Console) -> None:
        """Print what came out, and where it all lies."""
        if self.series is None:
            verdict_printing.print_verdict(console, self.verdict, self.folder)
        else:
            printing.print_series(console, self.series, self.verdict, self.folder)
            if self.answers:
                reveal.print_series(console, self.series.runs, self.verdict, self.answers)


def of_run(
    effective: Effective,
    arguments: Sequence[str],
    console: Console,
    guesses: Sequence[Guess] = (),
    lock: Lock | None = None,
    *,
    tries_out: bool = False,
    profile: Steps | None = None,
) -> Outcome:
    """Run a scenario without arms once and judge it; the arguments are those of lab.run.run.run.

    Raises:
        BadInput, LabError: as lab.run.run.run.
    """
    folder = run(
        effective, chosen(), arguments, console, guesses=guesses, lock=lock, tries_out=tries_out, profile=profile
    )
    return Outcome(folder, reports.derive(folder))


def of_plan(
    plan: Plan,
    arguments: Sequence[str],
    console: Console,
    *,
    new: bool,
    answers: Answers | None = None,
    lock: Lock | None = None,
    profile: bool = False,
) -> Outcome:
    """Run a series, or what is left of it, and judge it; the arguments are those of lab.series.command.run_plan.

    Raises:
        BadInput, LabError: as lab.series.command.run_plan.
    """
    folder = command.run_plan(plan, chosen(), arguments, console, new=new, answers=answers, lock=lock, profile=profile)
    return Outcome(folder, verdicts.derive_series(folder), series_file.load_series(folder), answers)


def of_folder(folder: Path) -> Outcome:
    """Judge a run, or a series, that has ended.

    Raises:
        BadInput, LabError: it is none, or cannot be judged.
    """
    if (folder / series_file.FILE).is_file():
        series = _series(folder)
        return Outcome(folder, verdicts.derive_series(folder), series)
    return Outcome(folder, reports.derive(folder))


def _series(folder: Path) -> Series:
    try:
        return series_file.load_series(folder)
    except (OSError, ValueError) as error:
        raise BadInput(Problem(told(error), paths.shown(folder / series_file.FILE), LIES_WHOLE)) from None


def told(error: OSError | ValueError) -> str:
    """Say what is wrong with a file that is read through a model: the first thing, with its place."""
    return sanitize.format_validation_error(error) if isinstance(error, ValidationError) else str(error)


def of_scenario(effective: Effective, arguments: Sequence[str], console: Console, lock: Lock, *, new: bool) -> Outcome:
    """Run a scenario, or the series of its arms, and judge it, all under the lock of one command.

    Raises:
        BadInput, LabError: as the two above.
    """
    if effective.scenario.arms:
        return of_plan(arms.plan(effective, ()), arguments, console, new=new, lock=lock)
    return of_run(effective, arguments, console, lock=lock)


def planned(name: str) -> Effective:
    """Resolve a scenario, its arms with it.

    Raises:
        BadInput: something in it is wrong.
    """
    effective = resolve(name)
    if effective.scenario.arms:
        arms.plan(effective, ())
    return effective


def all_planned() -> Iterator[Effective]:
    """Give every scenario, with a twin that is there; all problems are reported together, after all were read.

    Raises:
        BadInput: something is.
    """
    problems = places.misnamed(paths.SCENARIOS)
    catalogue: dict[str, Effective] = {}
    for slug in places.slugs(paths.SCENARIOS):
        try:
            yield catalogue.setdefault(slug, planned(slug))
        except BadInput as error:
            problems += error.problems
    problems += [] if problems else twins.lacking(catalogue)
    if problems:
        raise BadInput(problems)
