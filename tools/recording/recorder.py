"""Runs scenarios and records what came out, one line after each run, so that no interruption loses one."""

import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from formats import manifest
from formats.series import FAILED_IN_A_ROW
from lab import paths
from lab.errors import BadInput, ExitCode, Interruption, LabError, Problem
from lab.outcomes import catalogue_run
from lab.outcomes.run_and_judge import Outcome, run_scenario, summarize_outcome
from lab.runs.lock import Lock, machine_lock
from lab.scenarios.resolved import ResolvedScenario
from lab.signals import Interrupted
from tools.recording import documents, recorded_figures, recorded_runs
from tools.recording.recorded_runs import RecordedRun

_GIT_TIMEOUT_S = 10
_SHOWN = 3
_SHORT = 12


@dataclass
class RecordedRuns:
    """What a command recorded.

    Attributes:
        lines: those that it added.
        failed: why a run came to no verdict, by its scenario; nothing of it is recorded.
        counts: how many lines each scenario has that count.
    """

    lines: list[RecordedRun] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def refuse_folders(scenarios: Iterable[ResolvedScenario]) -> None:
    """Refuse what is not one of the lab's own scenarios: the tables of the documents are about those.

    Raises:
        BadInput: a scenario lies elsewhere.
    """
    for one in scenarios:
        if not one.place.own:
            what = "docs/experiments.jsonl records the lab's own scenarios alone"
            hint = "move the folder to scenarios/, or repeat its runs by 'repetitions' of its arms"
            raise BadInput(Problem(what, paths.shown(one.place.home), hint))


def refuse_changes(commit: str | None = None) -> str:
    """Refuse a work tree that a commit does not describe: a record names the commit that it was made with.

    Args:
        commit: which one; by default the one that is checked out.

    Returns:
        The commit.

    Raises:
        BadInput: there are changes beside the record itself and what is made from it, or there is no repository.
    """
    named = commit or _git("rev-parse", "--verify", "HEAD").strip()
    kept = (recorded_runs.FILE, recorded_figures.FOLDER, *documents.FILES)
    own = [f":!{file.relative_to(paths.ROOT)}" for file in kept]
    changed = _git("diff", "--name-only", named, "--", ".", *own).splitlines()
    changed += _git("ls-files", "--others", "--exclude-standard", "--", ".", *own).splitlines()
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        than = f"the commit that the recording began with, {named[:_SHORT]}" if commit else "its commit"
        what = f"the work tree differs from {than}: {', '.join(changed[:_SHOWN])}{more}"
        hint = "give the command again once it is committed" if commit else "commit it first"
        raise BadInput(Problem(what, hint=f"{hint}: {_NEEDS_COMMIT}"))
    return named


_NEEDS_COMMIT = "a record names the commit that it was made with"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(paths.ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(Problem(f"git does not answer: {error}", hint=_NEEDS_COMMIT)) from None
    if done.returncode != 0:
        what = "this folder is not a git repository, or one without the commit"
        raise BadInput(Problem(what, hint=_NEEDS_COMMIT))
    return done.stdout


def record(
    scenarios: Sequence[ResolvedScenario], runs: int, arguments: Sequence[str], console: Console
) -> RecordedRuns:
    """Run scenarios, in turns, until each has so many lines that count, and bring the documents up to date.

    No other run of the lab comes between two of them. Failures in succession end it.

    Args:
        scenarios: as they stand.
        runs: how many lines of each there are to be in all.
        arguments: the command line.
        console: where progress is printed.

    Raises:
        BadInput: the work tree changed on the way.
        LabError: another run of the lab is in progress on this machine.
        Interruption: the user ended it; what was recorded stays.
    """
    found = RecordedRuns()
    try:
        with machine_lock("the recording of runs") as lock:
            _record(found, _open(scenarios, runs), arguments, console, lock)
    finally:
        recorded = recorded_runs.read()
        found.counts = {resolved.slug: len(recorded_runs.counting(resolved, recorded)) for resolved in scenarios}
        documents.write()
    return found


def _record(
    found: RecordedRuns,
    wanted: Iterable[tuple[ResolvedScenario, str]],
    arguments: Sequence[str],
    console: Console,
    lock: Lock,
) -> None:
    failed_in_a_row = 0
    # Whatever is checked out meanwhile: the program at work and the scenarios in its hands are this commit's.
    commit = refuse_changes()
    for resolved, title in wanted:
        refuse_changes(commit)
        console.print(Text(f"recording {title}", "bold"), soft_wrap=True)
        try:
            found.lines.append(_once(resolved, commit, arguments, console, lock))
        except (Interruption, Interrupted) as error:
            kept = f"{_added(found)}; the same command continues with the others"
            raise Interruption(f"the recording was interrupted: {kept}") from error
        except Exception as error:  # noqa: BLE001 # whatever became of one, the others go on
            found.failed[resolved.slug] = catalogue_run.failure_reason(error)
            console.print(Text(f"not recorded: {catalogue_run.failure_reason(error)}", "red"), soft_wrap=True)
            failed_in_a_row = failed_in_a_row + 1 if catalogue_run.failure_code(error) is ExitCode.LAB_FAILED else 0
        else:
            failed_in_a_row = 0
        if failed_in_a_row == FAILED_IN_A_ROW:
            console.print(Text(catalogue_run.explain_stop(), "red"), soft_wrap=True)
            return


def _open(scenarios: Sequence[ResolvedScenario], runs: int) -> Iterator[tuple[ResolvedScenario, str]]:
    """Return each scenario as often as lines are missing, in turns: an interruption then leaves all at like numbers."""
    recorded = recorded_runs.read()
    missing = {resolved.slug: runs - len(recorded_runs.counting(resolved, recorded)) for resolved in scenarios}
    for left in range(max(missing.values(), default=0), 0, -1):
        for resolved in scenarios:
            if missing[resolved.slug] >= left:
                yield resolved, f"{resolved.slug}, {runs - left + 1} of {runs}"


def _once(
    resolved: ResolvedScenario, commit: str, arguments: Sequence[str], console: Console, lock: Lock
) -> RecordedRun:
    began = time.monotonic()
    # A line is of one run from its beginning to its end, so a series is always a new one.
    outcome = run_scenario(resolved, arguments, console, lock, new=True)
    if outcome.series and outcome.series.status not in ("complete", "stopped"):
        raise LabError(f"the series is {outcome.series.status}: {outcome.series.reason}")
    line = line_of(resolved, outcome, commit, took_s=round(time.monotonic() - began))
    recorded_runs.append(line)
    recorded_figures.write(resolved, outcome)
    console.print(f"recorded: {line.verdict}", soft_wrap=True)
    return line


def line_of(resolved: ResolvedScenario, outcome: Outcome, commit: str, took_s: int) -> RecordedRun:
    """Describe an outcome as a line of the record.

    Args:
        resolved: the scenario as it was run.
        outcome: what came of it.
        commit: what it was run with.
        took_s: how long that took; seconds.
    """
    first = manifest.load_manifest(outcome.runs[0])
    short = summarize_outcome(outcome, resolved)
    beside = outcome.verdict["published"]
    return RecordedRun(
        scenario=resolved.slug,
        experiment=resolved.scenario.experiment,
        content=recorded_runs.content(resolved),
        run=f"{outcome.folder.parent.name}/{outcome.folder.name}",
        when=outcome.series.started if outcome.series else first.started,
        commit=commit,
        kernel=first.host.kernel,
        cpus=first.host.cpus or 0,
        verdict=outcome.verdict["verdict"],
        false=short.false,
        unknown=short.unknown,
        unexplained=short.unexplained,
        identities=short.identities,
        here={one["expression"]: one["value"] for one in beside["here"]} if beside else {},
        took_s=took_s,
    )


def summary(recorded: RecordedRuns) -> list[str]:
    """Return what a command recorded, as lines for a reader."""
    said = [f"{_added(recorded)} to {paths.shown(recorded_runs.FILE)}"]
    said += [f"  {slug}: {count} in all" for slug, count in recorded.counts.items()]
    said += [f"  {slug}: a run was not recorded: {why}" for slug, why in recorded.failed.items()]
    return said


def _added(recorded: RecordedRuns) -> str:
    count = len(recorded.lines)
    return "1 line was added" if count == 1 else f"{count} lines were added"
