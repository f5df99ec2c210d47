"""Runs arms, matrices and searches alike: checks, lock, fingerprint, and place after place with each step recorded."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from analysis.evidence.rawrun import RawRun
from analysis.expressions import ExpressionError
from analysis.figures import Run
from analysis.steps import Steps
from analysis.verdicts import predictions
from analysis.verdicts.verdict_file import Verdict
from formats import manifest
from formats.manifest import Guess, utc_now
from formats.predictions import Result, Truth
from formats.series import Fingerprint, PlannedRun, Series, Status
from lab import paths
from lab.engines.protocol import Engine
from lab.errors import ConnlabError, Gathered, Interruption, LabError, Problem
from lab.runs import capacity, run_results, user_files
from lab.runs.lock import Lock, machine_lock
from lab.runs.run import clear_up_after, record
from lab.runs.run_context import RunPosition, open_run
from lab.runs.user_files import Configurations
from lab.scenarios.resolved import ResolvedScenario
from lab.series import store
from lab.series.plan import Answers, Plan
from lab.series.printing import Progress
from lab.series.store import is_service_image
from lab.signals import Interrupted, interruptible


class Runner:
    """Runs and judges one place."""

    def __init__(
        self,
        engine: Engine,
        command: Sequence[str],
        console: Console,
        *,
        lock: Lock,
        images: Mapping[str, str],
        guesses: Mapping[str | None, Sequence[Guess]],
        profile: bool,
    ) -> None:
        self._engine = engine
        self._command = command
        self._console = console
        self._lock = lock
        self._images = {name: image for name, image in images.items() if not is_service_image(name)}
        self._guesses = guesses
        self._profile = profile

    def run(
        self, resolved: ResolvedScenario, position: RunPosition, title: str, opened: Callable[[Path], None]
    ) -> None:
        """Run it once, with the images that the series began with; `opened` gets the folder before anything starts.

        Raises:
            ConnlabError: it did not come to its end; Interruption if that was the user's wish.
        """
        now = self._engine.images(self._images)
        rebuilt = [name for name, image in now.items() if image != self._images[name]]
        if rebuilt:
            hint = "NEW=1 (--new) starts another series"
            raise LabError(f"connlab/{rebuilt[0]} was rebuilt since the series began", hint=hint)
        steps = Steps()
        guesses = self._guesses.get(position.cell, ())
        expected = replace(position, guesses=guesses, profile=steps if self._profile else None)
        with steps.step("open"):
            context = open_run(resolved, self._engine, self._command, expected, self._lock)
        opened(context.folder)
        record(context, self._console, self._lock, title)

    def derive(self, folder: Path) -> Result | None:
        """Derive everything and return the verdict; None if nothing was predicted of this run alone."""
        verdict = run_results.analyse_run(folder)
        if not verdict["predictions"]:
            return None
        found: Result = verdict["verdict"]
        return found

    def holds(self, folder: Path, expression: str) -> Truth:
        """Judge an expression in a run."""
        return predictions.judge(Run(RawRun(folder, manifest.load_manifest(folder))), expression).status


class Executor:
    """A series at work.

    Attributes:
        series: the state, saved at each step.
        cells: what each cell runs; a search adds to it as it goes.
    """

    def __init__(
        self, series: Series, folder: Path, cells: dict[str, ResolvedScenario], runner: Runner, progress: Progress
    ) -> None:
        self.series = series
        self.cells = cells
        self.folder = folder
        self._runner = runner
        self._progress = progress

    def save(self) -> None:
        """Write series.json as it stands."""
        self.series.save(self.folder)

    def take_over(self, *, derive_again: bool) -> None:
        """Put right what a killed process left: a run that had ended counts, one that had not is lost.

        It is derived again if the analysis is another than that which derived the recorded runs.
        """
        for place in self.series.runs:
            if place.status not in ("running", "complete", "failed") or place.run is None:
                continue
            _take_status(place)
            folder = paths.RESULTS / place.run
            if place.status == "complete" and (derive_again or not (folder / Verdict.file).is_file()):
                self._judge(place, folder)
        self.save()

    def go(self, places: Iterable[PlannedRun]) -> None:
        """Run place after place until all are through, the stop rule ends it, or the user does.

        Raises:
            Interruption: the user ended it; series.json says how far it came.
        """
        try:
            self._go(places)
        except (Interrupted, Interruption) as error:
            self._finish("interrupted", str(error).splitlines()[0])
            done, whole = self._done(), len(self.series.runs)
            kept = f"{done} of {whole} runs are complete; the same command continues with the others"
            raise Interruption(f"the series was interrupted: {kept}") from error

    def _go(self, places: Iterable[PlannedRun]) -> None:
        failed_in_a_row = 0
        for number, place in enumerate(places):
            if number:
                time.sleep(self.series.cooldown_ms / 1000)
            self._run(place)
            failed_in_a_row = 0 if place.status == "complete" else failed_in_a_row + 1
            if failed_in_a_row >= self.series.stop.failed_in_a_row:
                why = f"{failed_in_a_row} runs in a row did not complete; the last: {place.reason}"
                self._finish("partial", why)
                return
            when = self.series.stop.when
            if place.status == "complete" and when is not None and self.holds(place, when) == "true":
                self._finish("stopped", f"in {place.run} it held that {self.series.stop.when}")
                return
        whole = self._done() == len(self.series.runs)
        self._finish("complete" if whole else "partial", None if whole else "some runs did not complete")

    def holds(self, place: PlannedRun, expression: str) -> Truth:
        """Judge an expression in a place's run; unknown where the run gives no evidence, or its analysis failed."""
        if place.status != "complete" or place.reason is not None:
            return "unknown"
        return self._runner.holds(paths.RESULTS / str(place.run), expression)

    def _done(self) -> int:
        return sum(place.status == "complete" for place in self.series.runs)

    def _finish(self, status: Status, reason: str | None) -> None:
        self.series.status, self.series.reason, self.series.ended = status, reason, utc_now()
        self.save()

    def _run(self, place: PlannedRun) -> None:
        if place.run is not None:
            place.lost.append(place.run)
        place.run, place.status = None, "planned"
        place.verdict, place.holds, place.reason = None, None, None
        resolved = self.cells[place.cell]

        def opened(folder: Path) -> None:
            place.run, place.status = f"{resolved.slug}/{folder.name}", "running"
            self.save()

        position = RunPosition(self.series.series, place.cell, place.repetition)
        began = time.monotonic()
        try:
            self._runner.run(resolved, position, self._progress.title(place), opened)
        except ConnlabError as error:
            _take_failure(place, error)
            self.save()
            if isinstance(error, Interruption):
                raise
        else:
            _take_status(place)
            self.save()
        self._judge_ended(place)
        self._progress.done(place, time.monotonic() - began)

    def _judge_ended(self, place: PlannedRun) -> None:
        if place.status in ("complete", "failed"):
            self._judge(place, paths.RESULTS / str(place.run))

    def _judge(self, place: PlannedRun, folder: Path) -> None:
        # What an earlier analysis made of the run is not an outcome any more.
        place.holds = None
        try:
            place.verdict = self._runner.derive(folder)
        except Interruption:
            # Half an analysis is none: the next command makes it whole.
            (folder / Verdict.file).unlink(missing_ok=True)
            raise
        except Exception as error:  # noqa: BLE001 # whatever one run's files make of the analysis, the others go on
            place.verdict, place.reason = "inconclusive", f"the analysis failed: {type(error).__name__}: {error}"
        self.save()


def _take_failure(place: PlannedRun, error: ConnlabError) -> None:
    """Let a place say why it failed; a run that had come to its end before keeps what its manifest says."""
    with contextlib.suppress(OSError, ValueError):
        if place.run is not None and manifest.load_manifest(paths.RESULTS / place.run).status in ("complete", "failed"):
            _take_status(place)
            return
    place.status, place.reason = "aborted", _first_line(error)


def _take_status(place: PlannedRun) -> None:
    """Let a place say what its run's manifest says."""
    try:
        found = manifest.load_manifest(paths.RESULTS / str(place.run))
    except (OSError, ValueError):
        place.status, place.reason = "aborted", "its folder has no manifest that can be read"
        return
    if found.status == "running":
        place.status, place.reason = "aborted", manifest.KILLED
    else:
        place.status, place.reason = found.status, found.reason


def _first_line(error: ConnlabError) -> str:
    what = error.what if isinstance(error, LabError) else str(error)
    return what.splitlines()[0].removeprefix("the run was aborted: ")


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
    """Run a series, or what is left of it, and return its folder.

    With `new`, a series begins although there is one to go on with. `places` gives what is to be run: by default every
    place of the plan that has no complete run. The command may hold the `lock` for more than this series.

    Raises:
        BadInput: this machine cannot do what a cell asks, or an unfinished series must not be mixed with this one.
        LabError: the lab or the machine failed as a whole, or the user interrupted the series.
    """
    found = check_plan(plan, engine)
    # Arms mostly have the same configuration.
    for lines in dict.fromkeys(
        tuple(user_files.describe_configurations(plan.cells[cell].resolved, one)) for cell, one in found.items()
    ):
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    if plan.remark:
        console.print(Text(plan.remark, "yellow"), soft_wrap=True)
    with machine_lock(f"the series of {plan.name}", held=lock) as held, interruptible():
        clear_up_after(held, engine)
        texts = [each.text for one in found.values() for each in one.values()]
        own = store.add_own_files(plan.digest(), texts, [planned.resolved for planned in plan.cells.values()])
        taken = store.take_fingerprint(own, plan.roles, engine, plan.with_services)
        series, folder, resumed = store.open_series(plan, taken, command, new=new)
        answers = answers or Answers()
        series.guesses = answers.chosen or series.guesses
        cells: dict[str, ResolvedScenario] = {name: planned.resolved for name, planned in plan.cells.items()}
        executor = Executor(
            series,
            folder,
            cells,
            Runner(engine, command, console, lock=held, images=taken.images, guesses=answers.of_arm, profile=profile),
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
    console.print(f"continuing {where}: {done} of {len(series.runs)} runs are complete{again}", soft_wrap=True)


def open_places(executor: Executor) -> Iterator[PlannedRun]:
    """Return every place that has no complete run yet, in the order of the plan."""
    yield from [place for place in executor.series.runs if place.status != "complete"]


def check_plan(plan: Plan, engine: Engine) -> Mapping[str, Configurations]:
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
            found[cell] = capacity.check_capacity(planned.resolved, engine)
    gathered.extend(_stop_rule(plan))
    gathered.refuse()
    return {cell: one for cell, one in found.items() if one}


def _stop_rule(plan: Plan) -> Iterator[Problem]:
    if plan.rules.stop.when is None:
        return
    for planned in plan.cells.values():
        resolved = planned.resolved
        try:
            predictions.check(plan.rules.stop.when, resolved.roles, resolved.on_path)
        except ExpressionError as error:
            yield Problem(f"stop.when: {error}")
