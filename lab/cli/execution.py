"""Execution of a run or series for a command, and how the command ends: text or JSON, next step, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from analysis.command_hints import quote
from analysis.steps import Steps
from lab import terminal
from lab.cli.groups import Checked
from lab.errors import BadInput, ExitCode, Problem

if TYPE_CHECKING:
    from formats.manifest import Guess
    from lab.outcomes.run_and_judge import Outcome
    from lab.scenarios.places import Place
    from lab.scenarios.resolved import ResolvedScenario
    from lab.series.plan import Plan


def resolve_asked(
    scenario: str, sets: list[str], preset: str | None, arm: str | None, repetitions: int | None = None
) -> tuple[ResolvedScenario, Plan | None]:
    """Return a scenario with all overrides, and the plan of its arms, None if it has none or one is to run alone."""
    from lab.engines.selection import selected_engine
    from lab.scenarios.resolve import resolve

    # An arm may have another path than the scenario, and knobs of that.
    resolved = resolve(scenario, sets if arm is None else [], preset=preset)
    if found := selected_engine().found(resolved):
        resolved = resolve(scenario, sets if arm is None else [], preset=preset, found=tuple(found))
    if repetitions is not None and (arm is not None or not resolved.scenario.arms):
        which = f"one arm of {resolved.slug}" if arm is not None else resolved.slug
        hint = "leave it out; `connlab compare --a A --a B --b C --b D` takes single runs as repetitions of one another"
        raise BadInput(Problem(f"{which} is one run, and has no repetitions", "--repetitions", hint))
    if arm is None and not resolved.scenario.arms:
        return resolved, None
    from lab.series import arms, plan

    if arm is not None:
        return arms.resolve_arm(resolved, sets, arm), None
    return resolved, plan.set_repetitions(arms.plan_arms(resolved, sets), repetitions)


def run_one_or_arms(
    resolved: ResolvedScenario,
    plan: Plan | None,
    *,
    new: bool,
    dry_run: bool,
    check: bool,
    as_json: bool,
    ask: bool = False,
    profile: Steps | None = None,
) -> NoReturn:
    """Run a scenario or its arms; `ask`: put the questions of a lesson first; `profile`: as lab.runs.run.run has it."""
    from lab.outcomes import run_and_judge
    from lab.runs import capacity

    if plan:
        profiled = profile is not None
        run_series(plan, new=new, dry_run=dry_run, check=check, as_json=as_json, ask=ask, profile=profiled)
    if new or dry_run:
        arm, options = resolved.variant.arm, ""
        which = f"{resolved.slug} has no arms"
        if arm:
            which, options = f"one arm of {resolved.slug} is one run", f" --arm {quote(arm)}"
        hint = "leave out --new: each run is a new one"
        if dry_run:
            hint = f"'connlab plan {quote(resolved.place.shown)}{options}' says what one run takes"
        raise BadInput(Problem(f"{which}: there is no series to plan or to begin anew", hint=hint))
    if check:
        end_checked([resolved])
    guesses: Sequence[Guess] = ()
    if ask:
        from lab.engines.selection import selected_engine
        from lab.lessons.guesses import ask_before_run

        capacity.check_capacity(resolved, selected_engine())  # nobody is asked about a run that cannot be
        guesses = ask_before_run(terminal.stderr(), resolved, None).about_runs
    found = run_and_judge.run_once(resolved, command_line(), terminal.stderr(), guesses, profile=profile)
    end_judged(found, as_json=as_json, lesson=resolved.place if ask else None, profiled=profile is not None)


def run_all(*, new: bool, check: bool, as_json: bool, of_one: bool) -> NoReturn:
    """Run every scenario of the lab; `of_one`: whether something was asked for that one scenario has."""
    from lab.outcomes import catalogue_run, run_and_judge

    if of_one:
        what = "--set, --preset, --arm, --dry-run and --profile need one scenario, not 'all'"
        raise BadInput(Problem(what, hint="name the scenario"))
    scenarios = list(run_and_judge.resolve_all())
    if check:
        raise Checked(one.slug for one in scenarios)
    quiet = terminal.nowhere() if as_json else terminal.stdout()
    ended = catalogue_run.run_all(scenarios, command_line(), terminal.stderr(), quiet, new=new)
    if as_json:
        terminal.result_json([one.as_json() for one in ended])
    else:
        catalogue_run.print_summary(terminal.stdout(), ended)
        say_next("next, all runs on one page: results/index.html")
    raise typer.Exit(catalogue_run.worst_code(ended))


def run_series(
    plan: Plan,
    *,
    new: bool,
    dry_run: bool,
    check: bool,
    as_json: bool,
    ask: bool = False,
    profile: bool = False,
) -> NoReturn:
    """Run what is left of a series; `ask` and `profile`: as run_one_or_arms has them."""
    from lab.engines.selection import selected_engine
    from lab.lessons import guesses as lessons
    from lab.outcomes import run_and_judge
    from lab.series import executor, printing

    if check:
        end_checked(planned.resolved for planned in plan.cells.values())
    if dry_run:
        executor.check_plan(plan, selected_engine())
        if as_json:
            terminal.result_json(printing.plan_details(plan))
        else:
            printing.print_plan(terminal.stdout(), plan)
            say_next("next, run it: the same command without DRY=1 (--dry-run)")
        raise typer.Exit
    answers = None
    if ask:
        executor.check_plan(plan, selected_engine())
        answers = lessons.ask_before_run(terminal.stderr(), next(iter(plan.cells.values())).resolved, plan)
    lesson = next(iter(plan.cells.values())).resolved.place if ask else None
    found = run_and_judge.run_series(plan, command_line(), terminal.stderr(), new=new, answers=answers, profile=profile)
    end_judged(found, as_json=as_json, lesson=lesson, profiled=profile)


def command_line() -> list[str]:
    """Return the command as it was typed, for the manifest."""
    return ["connlab", *sys.argv[1:]]


def end_checked(effectives: Iterable[ResolvedScenario]) -> NoReturn:
    """End a command that only checks its input: nothing of it has run.

    Raises:
        BadInput: this machine, or another run, does not let them run.
    """
    from lab.engines.selection import selected_engine
    from lab.runs import capacity, run_context, user_files

    # What holds for every cell of a series is said once.
    checked, engine = list(effectives), selected_engine()
    of_engine = (problem for one in checked for problem in capacity.engine_problems(one, engine))
    of_programs = (problem for one in checked for problem in capacity.program_problems(one, engine))
    problems = list(dict.fromkeys([*of_engine, *of_programs]))
    if problems:
        raise BadInput(problems)
    notices = dict.fromkeys(line for one in checked for line in user_files.describe_changes(one))
    found = dict.fromkeys(one.place for one in checked)
    for place in found:
        run_context.refuse_taken(place)
    raise Checked((place.shown for place in found), notices)


def end_judged(
    found: Outcome,
    *,
    as_json: bool,
    lesson: Place | None = None,
    profiled: bool = False,
) -> NoReturn:
    """End with a verdict; `lesson`: whose lesson it was; `profiled`: print how long each step took, too."""
    from lab.console import next_steps, run_output

    if as_json:
        terminal.result_json(found.as_json())
    else:
        found.print(terminal.stdout())
        if profiled:
            run_output.print_profile(terminal.stdout(), found.runs)
        after = next_steps.after_series if found.series else next_steps.after_run
        say_next((next_steps.after_lesson(lesson) if lesson else None) or after(found.folder))
    raise typer.Exit(found.code)


def end_observed(folder: Path, *, as_json: bool) -> NoReturn:
    """End with the account of a system that was watched."""
    from lab.console import next_steps
    from lab.observe import printing

    account = printing.read_connections(folder)
    if as_json:
        terminal.result_json({**account, "folder": str(folder)})
    else:
        terminal.result(
            [*printing.connection_lines(account, folder), f"next, in the browser: {next_steps.opened(folder)}"]
        )
    raise typer.Exit(ExitCode.INCONCLUSIVE if printing.ended_early(folder) else ExitCode.REPRODUCED)


def say_next(step: str | None) -> None:
    """Print what to do next, if there is anything."""
    if step:
        terminal.result([step])
