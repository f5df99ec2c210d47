"""The command line: `connlab run|record|matrix|search|advise|list|show|analyse|report|open|notebook|explain|…`.

Results go to stdout; progress, problems and errors to stderr. Modules that only one command needs are loaded by it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from rich.text import Text

from analysis.steps import Steps
from lab import terminal
from lab.engine.metrics import DEFAULT_PORT
from lab.errors import BadInput, ConnlabError, ExitCode, LabError, Problem
from lab.run.signals import interruptible

app = typer.Typer(
    help="A reproducible load-test lab for the connection path: k6, nginx, Spring Boot/Tomcat.",
    epilog="Exit codes: 0 reproduced, 1 not reproduced, 2 bad input, 3 inconclusive, 4 the lab or the machine failed.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_OTHERS_WRITE = 0o022
# The name that stands for every scenario, one after the other.
ALL = "all"

ScenarioArgument = Annotated[
    str, typer.Argument(help="The scenario's name ('connlab list' shows them), or its folder, such as ./shop.")
]
ScenariosArgument = Annotated[
    str, typer.Argument(help=f"The scenario's name or folder, or '{ALL}' the lab's own, one after the other.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob, such as backend.accept_count=10; repeatable."),
]
PresetOption = Annotated[str | None, typer.Option(help="One of the scenario's presets, such as published.")]
NewOption = Annotated[
    bool, typer.Option("--new", help="Begin a new series, even if an unfinished one could be continued.")
]
RepetitionsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=99,
        help="Runs of each arm or cell; a finished series that has fewer gets the missing ones.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="List cells, order and expected time; run nothing.")]
# What `make` asks before the set-up; the engine, memory and disk are the run's own to ask about.
CheckOption = Annotated[bool, typer.Option("--check", help="Check the input and end.", hidden=True)]
ArmOption = Annotated[str | None, typer.Option(help="One of the scenario's arms: run it alone, once.")]
EngineOption = Annotated[
    Literal["compose", "kubernetes"],
    typer.Option(help="Where it runs: on this machine's Docker, or on a Kubernetes cluster."),
]
ContextOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The context of the kubeconfig, for Kubernetes; by default its current one."),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The cluster's namespace, for Kubernetes; by default the context's own."),
]
RegistryOption = Annotated[
    str | None,
    typer.Option(metavar="PREFIX", help="Where a cluster pulls the lab's images from; by default its nodes have them."),
]
SpreadOption = Annotated[
    bool, typer.Option("--spread", help="Put roles on nodes of their own; by default all are on one.")
]
ClientsOption = Annotated[
    Literal["pods", "testrun"],
    typer.Option(help="Who starts the clients on Kubernetes: the lab, or k6-operator."),
]
MetricsOption = Annotated[
    bool, typer.Option("--metrics", help="Let each collector serve its current figures, for Prometheus (docs/boards).")
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option("--metrics-port", min=1024, max=65535, help=f"The port of --metrics; by default {DEFAULT_PORT}."),
]
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Record how long each step of the run took, and print it at the end.")
]
# When `make` began with the set-up, seconds since 1970.
BeganOption = Annotated[float | None, typer.Option("--began", envvar="CONNLAB_BEGAN", hidden=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for a program.")]


def _print_version(asked: bool) -> None:  # noqa: FBT001 # typer's own form
    if asked:
        from lab.run.facts import lab_version  # noqa: PLC0415

        terminal.result([f"connlab {lab_version().version}"])
        raise typer.Exit


@app.callback()
def _every_command(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None: ...


@app.command()
def run(
    scenario: ScenariosArgument,
    sets: SetOption = None,
    *,
    preset: PresetOption = None,
    arm: ArmOption = None,
    repetitions: RepetitionsOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    registry: RegistryOption = None,
    spread: SpreadOption = False,
    clients: ClientsOption = "pods",
    metrics: MetricsOption = False,
    metrics_port: MetricsPortOption = None,
    profile: ProfileOption = False,
    began: BeganOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario, or the series of its arms, and print the verdict; the exit code is the verdict's."""
    if metrics_port is not None and not metrics:
        raise BadInput(Problem("--metrics-port is the port of --metrics", way_on="add --metrics"))
    port = (metrics_port or DEFAULT_PORT) if metrics else None
    of_cluster = {"context": context, "namespace": namespace, "registry": registry, "spread": spread}
    _choose(engine, **of_cluster, clients=clients, metrics=port)
    if scenario == ALL:
        of_one = bool(sets or preset or arm or repetitions or dry_run or profile)
        _run_all(new=new, check=check, as_json=as_json, of_one=of_one)
    steps = Steps()
    if began is not None:
        steps.ms["set-up"] = round(max(time.time() - began, 0) * 1000, 1)
    with steps.step("resolve"):
        asked = _resolve(scenario, sets or [], preset, arm, repetitions)
    _run(*asked, new=new, dry_run=dry_run, check=check, as_json=as_json, profile=steps if profile else None)


@app.command()
def lesson(
    scenario: ScenarioArgument,
    sets: SetOption = None,
    *,
    preset: PresetOption = None,
    arm: ArmOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask what you expect, run the scenario, and show what was measured beside it; the exit code is the verdict's."""
    asked = _resolve(scenario, sets or [], preset, arm)
    _run(*asked, new=new, dry_run=dry_run, check=check, as_json=as_json, ask=True)


@app.command()
def exercise(
    name: Annotated[str, typer.Argument(metavar="SCENARIO/NUMBER", help="Such as accept-queue-overflow/1.")],
    sets: SetOption = None,
    *,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a lesson's exercise and judge it against the answer that is kept apart; `latest` stays where it is.

    An open exercise takes the knob that you found, with --set. The exit code is 0 if it came out as the answer says.
    """
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.experiments import outcome  # noqa: PLC0415
    from lab.results import guesses_printing  # noqa: PLC0415
    from lab.run import machine_limits  # noqa: PLC0415
    from lab.teach import ask, exercises, questions  # noqa: PLC0415

    ready = exercises.prepare(name, sets or [])
    if check:
        _end_checked([ready.effective])
    machine_limits.check(ready.effective, chosen())
    exercises.print_task(terminal.stderr(), ready)
    answer = () if ready.exercise.is_open else ready.exercise.answer
    guesses = ask.of_exercise(terminal.stderr(), questions.of_answer(ready.effective, answer, "exercise"))
    found = outcome.of_run(ready.effective, _command_line(), terminal.stderr(), guesses, tries_out=True)
    judged = exercises.judge(ready, found.folder)
    if as_json:
        terminal.result_json(exercises.as_json(ready, found.folder, judged))
    else:
        guesses_printing.print_run(terminal.stdout(), found.folder, found.verdict)
        exercises.print_judged(terminal.stdout(), ready, found.folder, judged)
        _next(exercises.after(ready, found.folder, exercises.exit_code(judged)))
    raise typer.Exit(exercises.exit_code(judged))


@app.command()
def drill(
    sets: SetOption = None,
    *,
    seed: Annotated[int | None, typer.Option(min=0, help="The drill's seed; without it, one is drawn.")] = None,
    level: Annotated[int, typer.Option(help="1, 2 (perhaps with a proxy) or 3 (something harmless besides).")] = 1,
    more: Annotated[str | None, typer.Option(help="A further piece of evidence, which costs minutes.")] = None,
    cause: Annotated[str | None, typer.Option(help="Your answer: the cause.")] = None,
    place: Annotated[str | None, typer.Option(help="Your answer: where it lies, such as backend.")] = None,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Be on call: a fault is drawn and run; find cause, place and knob in the evidence, and a run tests your remedy.

    Without an answer the exit code is 0; with one it is 0 if the cause is right and the remedy healed, and else 1.
    """
    import secrets  # noqa: PLC0415

    from lab.experiments import outcome  # noqa: PLC0415
    from lab.teach.drill import incident  # noqa: PLC0415

    answers = incident.answered(cause, place, sets or [], more, seed)
    if check and seed is None:
        raise typer.Exit  # which one it will be is not drawn yet
    drawn = incident.drawn(secrets.randbelow(10_000) if seed is None else seed, level)
    state = incident.load(drawn)
    if state is None and (answers or more):
        raise BadInput(Problem(f"drill {seed} of level {level} has not begun", way_on="begin it without an answer"))
    if answers:
        incident.check(drawn, cause or "", place or "", sets or [])
    if check:
        _end_checked([incident.resolved(drawn, sets or [])])
    if state is None:
        run = outcome.of_run(incident.resolved(drawn), _command_line(), terminal.stderr(), tries_out=True)
        state = incident.begun(drawn, run.folder)
    if not answers:
        lines = incident.more(drawn, state, more) if more else incident.given(drawn, state)
        if as_json:
            terminal.result_json({**state.model_dump(by_alias=True), "minutes": state.minutes, "evidence": list(lines)})
        else:
            terminal.result(lines)
        return
    remedied = incident.remedied(drawn, state, sets or [])
    after = outcome.of_run(remedied, _command_line(), terminal.stderr(), tries_out=True).folder
    found = incident.judge(drawn, state, incident.answer(drawn, state, cause or "", place or "", after))
    if as_json:
        terminal.result_json(
            {**found.model_dump(), "points": found.points, "healed": found.healed, "folder": str(after)}
        )
    else:
        terminal.result(incident.result(drawn, state, found, after))
    raise typer.Exit(found.code)


def _choose(engine: Any, **options: Any) -> None:  # noqa: ANN401 # as lab.engine.choice has them
    """Choose the engine of this command."""
    from lab.engine.choice import choose  # noqa: PLC0415

    choose(engine, **options)


def _resolve(
    scenario: str, sets: list[str], preset: str | None, arm: str | None, repetitions: int | None = None
) -> tuple[Any, Any]:
    """Give a scenario with all overrides, and the plan of its arms, None if it has none or one is to run alone."""
    from lab.scenario.resolve import resolve  # noqa: PLC0415

    # An arm may have another path than the scenario, and knobs of that.
    resolved = resolve(scenario, sets if arm is None else [], preset=preset)
    if repetitions is not None and (arm is not None or not resolved.scenario.arms):
        which = f"one arm of {resolved.slug}" if arm is not None else resolved.slug
        way_on = (
            "leave it out; `connlab compare --a A --a B --b C --b D` takes single runs as repetitions of one another"
        )
        raise BadInput(Problem(f"{which} is one run, and has no repetitions", "--repetitions", way_on))
    if arm is None and not resolved.scenario.arms:
        return resolved, None
    from lab.series import arms, plan  # noqa: PLC0415

    if arm is not None:
        return arms.alone(resolved, sets, arm), None
    return resolved, plan.repeated(arms.plan(resolved, sets), repetitions)


def _run(
    resolved: Any,  # noqa: ANN401 # an Effective
    plan: Any,  # noqa: ANN401 # a Plan
    *,
    new: bool,
    dry_run: bool,
    check: bool,
    as_json: bool,
    ask: bool = False,
    profile: Steps | None = None,
) -> NoReturn:
    """Run a scenario or its arms; `ask`: put the questions of a lesson first; `profile`: as lab.run.run.run has it."""
    from lab.experiments import outcome  # noqa: PLC0415
    from lab.run import machine_limits  # noqa: PLC0415

    if plan:
        profiled = profile is not None
        _run_series(plan, new=new, dry_run=dry_run, check=check, as_json=as_json, ask=ask, profile=profiled)
    if new or dry_run:
        which = f"one arm of {resolved.slug} is one run" if resolved.variant.arm else f"{resolved.slug} has no arms"
        raise BadInput(Problem(f"{which}: there is no series to plan or to begin anew"))
    if check:
        _end_checked([resolved])
    guesses: Sequence[Any] = ()
    if ask:
        from lab.engine.choice import chosen  # noqa: PLC0415
        from lab.teach.ask import before  # noqa: PLC0415

        machine_limits.check(resolved, chosen())  # nobody is asked about a run that cannot be
        guesses = before(terminal.stderr(), resolved, None).of_run
    found = outcome.of_run(resolved, _command_line(), terminal.stderr(), guesses, profile=profile)
    _end_judged(found, as_json=as_json, lesson=resolved.place if ask else None, profiled=profile is not None)


def _run_all(*, new: bool, check: bool, as_json: bool, of_one: bool) -> NoReturn:
    from lab.experiments import everything, outcome  # noqa: PLC0415

    if of_one:
        what = "settings, presets, dry runs and profiles are of one scenario, and not of all"
        raise BadInput(Problem(what, way_on="name it"))
    scenarios = list(outcome.all_planned())
    if check:
        raise typer.Exit
    quiet = terminal.nowhere() if as_json else terminal.stdout()
    ended = everything.run_all(scenarios, _command_line(), terminal.stderr(), quiet, new=new)
    if as_json:
        terminal.result_json([one.as_json() for one in ended])
    else:
        everything.print_summary(terminal.stdout(), ended)
        _next("next, all runs on one page: results/index.html")
    raise typer.Exit(everything.worst(ended))


def _command_line() -> list[str]:
    return ["connlab", *sys.argv[1:]]


def _end_judged(
    found: Any,  # noqa: ANN401 # an Outcome
    *,
    as_json: bool,
    lesson: Any = None,  # noqa: ANN401 # a Place
    profiled: bool = False,
) -> NoReturn:
    from lab.results import next_step, profile_printing  # noqa: PLC0415

    if as_json:
        terminal.result_json(found.as_json())
    else:
        found.print(terminal.stdout())
        if profiled:
            profile_printing.print_profile(terminal.stdout(), found.runs)
        after = next_step.after_series if found.series else next_step.after_run
        _next((next_step.after_lesson(lesson) if lesson else None) or after(found.folder))
    raise typer.Exit(found.code)


def _next(step: str | None) -> None:
    """Print what to do next, if there is anything."""
    if step:
        terminal.result([step])


@app.command()
def record(
    scenario: ScenariosArgument,
    *,
    runs: Annotated[int, typer.Option(min=1, help="How many recorded runs it should have in all.")] = 1,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario until so many runs of it are recorded for docs/experiments.md; goes on where it stopped."""
    from lab.experiments import outcome, recorder  # noqa: PLC0415

    scenarios = list(outcome.all_planned()) if scenario == ALL else [outcome.planned(scenario)]
    recorder.refuse_folders(scenarios)
    recorder.refuse_changes()
    if check:
        raise typer.Exit
    recorded = recorder.record(scenarios, runs, _command_line(), terminal.stderr())
    if as_json:
        terminal.result_json([one.model_dump(by_alias=True) for one in recorded.lines])
    else:
        terminal.result(recorder.summary(recorded))
        _next("next, the documents made from them: make experiments")
    raise typer.Exit(ExitCode.LAB_FAILED if recorded.failed else ExitCode.REPRODUCED)


@app.command()
def experiments(*, as_json: JsonOption = False) -> None:
    """Make docs/experiments.md and the README's table of scenarios from the recorded runs."""
    from lab import paths  # noqa: PLC0415
    from lab.experiments import documents  # noqa: PLC0415

    written = [paths.shown(file) for file in documents.write()]
    if as_json:
        terminal.result_json(written)
    else:
        terminal.result([*written, "next, read what changed: git diff"])


@app.command()
def mutate(
    scenario: ScenariosArgument = ALL,
    *,
    take: Annotated[
        str,
        typer.Option(metavar="RUN", help="Take what this run, or series, measured as the scenario's recorded figures."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Change what recorded runs measured, and list the predictions that notice no change."""
    from lab.experiments import mutating, outcome, specimens  # noqa: PLC0415

    scenarios = list(outcome.all_planned()) if scenario == ALL else [outcome.planned(scenario)]
    if take:
        for effective in scenarios:
            specimens.write(effective, outcome.of_folder(Path(take)))
    found = list(mutating.mutate(scenarios))
    if as_json:
        terminal.result_json([asdict(one) for one in found])
    else:
        terminal.result(mutating.summary(found))
        if any(one.idle for one in found):
            _next("next, how a prediction is stated so that it notices: CONTRIBUTING.md#add-a-scenario")
    raise typer.Exit(ExitCode.NOT_REPRODUCED if any(one.idle for one in found) else ExitCode.REPRODUCED)


@app.command()
def matrix(
    name: Annotated[
        str, typer.Argument(help="The matrix's name, or its .yaml file; without one they are listed.")
    ] = "",
    sets: SetOption = None,
    *,
    repetitions: RepetitionsOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run every cell of a matrix, or what is left of it; the exit code is the series' verdict."""
    from lab.results import next_step  # noqa: PLC0415
    from lab.series import matrices, printing  # noqa: PLC0415
    from lab.series import plan as plans  # noqa: PLC0415
    from lab.series.matrix_file import names  # noqa: PLC0415

    if name:
        planned = plans.repeated(matrices.plan(name, sets or []), repetitions)
        _run_series(planned, new=new, dry_run=dry_run, check=check, as_json=as_json)
    known = [matrices.plan(one) for one in names()]
    if check:
        raise typer.Exit
    if as_json:
        terminal.result_json([printing.plan_summary(plan) for plan in known])
    else:
        printing.print_plans(terminal.stdout(), known)
        if known:
            _next(next_step.after_matrices(known[0].name))


def _end_checked(effectives: Iterable[Any]) -> NoReturn:
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.run import machine_limits, session  # noqa: PLC0415

    # What holds for every cell of a series is said once.
    checked = list(effectives)
    problems = list(dict.fromkeys(problem for one in checked for problem in machine_limits.of_engine(one, chosen())))
    if problems:
        raise BadInput(problems)
    for place in dict.fromkeys(one.place for one in checked):
        session.refuse_taken(place)
    raise typer.Exit


def _run_series(
    plan: Any,  # noqa: ANN401 # a Plan
    *,
    new: bool,
    dry_run: bool,
    check: bool,
    as_json: bool,
    ask: bool = False,
    profile: bool = False,
) -> NoReturn:
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.experiments import outcome  # noqa: PLC0415
    from lab.series import command, printing  # noqa: PLC0415
    from lab.teach import ask as lessons  # noqa: PLC0415

    if check:
        _end_checked(planned.effective for planned in plan.cells.values())
    if dry_run:
        command.check(plan, chosen())
        if as_json:
            terminal.result_json(printing.plan_details(plan))
        else:
            printing.print_plan(terminal.stdout(), plan)
            _next("next, run it: the same command without DRY=1 (--dry-run)")
        raise typer.Exit
    answers = None
    if ask:
        command.check(plan, chosen())
        answers = lessons.before(terminal.stderr(), next(iter(plan.cells.values())).effective, plan)
    lesson = next(iter(plan.cells.values())).effective.place if ask else None
    found = outcome.of_plan(plan, _command_line(), terminal.stderr(), new=new, answers=answers, profile=profile)
    _end_judged(found, as_json=as_json, lesson=lesson, profiled=profile)


@app.command()
def search(
    scenario: ScenarioArgument,
    sets: SetOption = None,
    *,
    knob: Annotated[str, typer.Option(help="The knob to vary, such as backend.max_connections.")] = "",
    until: Annotated[
        str, typer.Option(help="The condition that must hold, such as 'client.requests.failed == 0'.")
    ] = "",
    low: Annotated[str | None, typer.Option("--from", help="The least value; by default half the model's.")] = None,
    high: Annotated[str | None, typer.Option("--to", help="The greatest value; by default twice the model's.")] = None,
    step: Annotated[str | None, typer.Option(help="How close to the border to search; by default 1, or 100ms.")] = None,
    confirm: Annotated[int, typer.Option(help="Runs at each of the two values beside the border.")] = 2,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the smallest, or largest, value of a knob for which an expression holds; exit code 3 if there is none.

    Where runs are missing, so that none was found, it is 4.
    """
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.results import next_step, searched  # noqa: PLC0415
    from lab.series import command, printing, record, searches  # noqa: PLC0415

    planned = searches.plan(searches.Asked(scenario, knob, until, low, high, step, confirm), sets or [])
    if check:
        _end_checked(one.effective for one in planned.plan.cells.values())
    folder, series, found = None, None, planned.plan.search
    if dry_run:
        command.check(planned.plan, chosen())
    else:
        folder = command.run_plan(
            planned.plan, chosen(), _command_line(), terminal.stderr(), new=new, places=planned.places
        )
        series = record.load(folder)
        found = series.search
    if found is None:
        raise LabError(f"{folder} is not the folder of a search")
    if series is None or found.outcome == "found":
        code = ExitCode.REPRODUCED
    else:
        code = ExitCode.INCONCLUSIVE if series.status == "complete" else ExitCode.LAB_FAILED
    if as_json:
        status = {"status": series.status, "reason": series.reason} if series else {}
        terminal.result_json({**found.model_dump(), **status, "folder": folder and str(folder), "exit_code": int(code)})
    else:
        printing.print_search(terminal.stdout(), found, series, folder)
        if series is None:
            _next("next, run it: the same command without DRY=1 (--dry-run)")
        else:
            for line in searched.lines(found, series):
                _next(line)
            _next(next_step.after_search(planned.plan, found))
    raise typer.Exit(code)


@app.command()
def analyse(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario for its latest run.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Derive everything again from a run's raw files; the exit code is the verdict's."""
    from lab.experiments import outcome  # noqa: PLC0415
    from lab.observe import printing  # noqa: PLC0415
    from lab.results import find  # noqa: PLC0415
    from lab.run import reports  # noqa: PLC0415

    folder = find.find_run(run)
    verdict = reports.derive(folder)
    if printing.was_observed(folder):
        _end_observed(folder, as_json=as_json)
    _end_judged(outcome.Outcome(folder, verdict), as_json=as_json)


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario for its latest run.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a run's report again, and the index of all runs."""
    from lab import paths  # noqa: PLC0415
    from lab.results import find, next_step  # noqa: PLC0415
    from lab.run import reports  # noqa: PLC0415

    folder = find.find_run(run)
    page = reports.of_run(folder)
    if as_json:
        terminal.result_json({"report": str(page)})
    else:
        terminal.result([paths.shown(page)])
        _next(f"next, in the browser: {next_step.opened(folder)}")


@app.command("open")
def open_report(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario; by default the newest run.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Open a run's report in the browser; where there is none, say where it lies."""
    from lab import paths  # noqa: PLC0415
    from lab.observe import printing  # noqa: PLC0415
    from lab.results import find, next_step  # noqa: PLC0415
    from lab.run import reports  # noqa: PLC0415

    folder = find.find_run(run) if run else reports.newest()
    page = reports.of_run(folder)
    opened = reports.show(page)
    if as_json:
        terminal.result_json({"report": str(page), "opened": opened})
    else:
        terminal.result([paths.shown(page) if opened else f"no browser on this screen; open {page}"])
        if not printing.was_observed(folder):
            _next(next_step.after_run(folder))


@app.command()
def notebook(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario; by default the newest run.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Open a notebook over a run's files, with SQL and charts: a new copy of the lab's own, and yours to change."""
    from lab import paths  # noqa: PLC0415
    from lab.results import find  # noqa: PLC0415
    from lab.results import notebook as notebooks  # noqa: PLC0415
    from lab.run import reports  # noqa: PLC0415

    folder = find.find_run(run) if run else reports.newest()
    found = notebooks.copy_for(folder)
    notebooks.install()
    if as_json:
        terminal.result_json({"notebook": str(found), "command": notebooks.command(found, folder)})
    else:
        terminal.result([f"{paths.shown(found)}, over {paths.shown(folder)}; Ctrl-C ends it"])
        sys.stdout.flush()
        notebooks.open_(found, folder)


@app.command()
def explain(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario for its latest run.")],
    *,
    request: Annotated[str | None, typer.Option(help="The request's name, such as k6-1/17.")] = None,
    worst: Annotated[
        str | None, typer.Option(help="In place of a name: how many of the failed and slowest, such as 5.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a request: what every observer saw of it, in the order of time, and how to see its packets."""
    from lab.results import explanations, find, next_step  # noqa: PLC0415

    folder = find.find_run(run)
    explanation = explanations.of_run(folder, request, worst)
    if as_json:
        terminal.result_json(explanations.as_json(explanation))
    else:
        terminal.result(explanations.lines(explanation))
        _next(next_step.after_explanation(folder))


@app.command()
def compare(
    *,
    a: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="A run to compare with, or <series>:<cell>; repeatable: its repetitions."),
    ] = None,
    b: Annotated[list[str] | None, typer.Option(metavar="RUN", help="A run that is compared; repeatable.")] = None,
    matrix: Annotated[
        str | None,
        typer.Option(help="In place of runs: a matrix, or a scenario with arms; its newest series is compared."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every figure, and the runs.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs, two groups of runs, or the cells of a series: settings, counters, packets, users."""
    from lab.results import comparisons, next_step  # noqa: PLC0415
    from lab.results.comparison_printing import print_answer, print_comparison  # noqa: PLC0415

    if matrix is not None and (a or b):
        raise BadInput(Problem("a comparison takes runs as A and B, or a MATRIX, not both"))
    compared = comparisons.of_runs(a or [], b or []) if matrix is None else comparisons.of_series(matrix)
    if as_json:
        terminal.result_json({**json.loads(compared.comparison.to_json()), "folder": str(compared.folder)})
    else:
        (print_comparison if verbose else print_answer)(terminal.stdout(), compared)
        _next(next_step.after_comparison(compared, b or []))


@app.command()
def gate(
    *,
    a: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="The baseline: a run, a folder of runs, or <series>:<cell>; repeatable."),
    ] = None,
    b: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="The runs to judge, as --a names them; repeatable.")
    ] = None,
    figure: Annotated[str, typer.Option(help="A figure, such as client.latency_ms.p99.")],
    worse_than: Annotated[str, typer.Option(help="How much worse it may be: 5% of the baseline, or 2.5 of its unit.")],
    better: Annotated[
        str | None, typer.Option(metavar="more|less", help="Which way is better; most figures of clients tell it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="A file for JUnit XML.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge whether a figure became worse: exit code 0 no, 1 yes, 3 it cannot be told."""
    from lab.results import gates  # noqa: PLC0415

    judged = gates.judge(a or [], b or [], figure, worse_than, better)
    if junit is not None:
        gates.write_junit(judged, junit)
    if as_json:
        terminal.result_json(gates.as_json(judged))
    else:
        terminal.result([gates.line(judged)])
        for remark in gates.remarks(judged):
            terminal.problem(remark)
        _next(gates.next_step(judged))
    raise typer.Exit(judged.exit_code)


@app.command()
def advise(
    run: Annotated[str, typer.Argument(help="A run's folder, or a scenario for its latest run.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Name the knob that the main cause of a run's failures points to, its value, and the command that tests it."""
    from analysis.formatting import counted  # noqa: PLC0415
    from lab.observe import printing  # noqa: PLC0415
    from lab.results import advice, find, next_step, which_run  # noqa: PLC0415

    folder = find.find_run(run)
    if printing.was_observed(folder):
        account = printing.read(folder)
        if as_json:
            terminal.result_json({"run": which_run.name(folder), "advice": account["advice"]})
        else:
            terminal.result(printing.advice(account))
        return
    found = advice.of_run(folder)
    if as_json:
        terminal.result_json({"run": which_run.name(folder), **asdict(found)})
        return
    terminal.result(which_run.lines(folder))
    requests = f" ({counted(found.count, 'request')})" if found.cause else ""
    terminal.stdout().print(f"main cause: {found.cause or 'none'}{requests}")
    if found.knob:
        terminal.stdout().print(f"set {found.knob} = {found.value}: {found.why}", soft_wrap=True)
    else:
        terminal.stdout().print(found.why, soft_wrap=True)
    _next(next_step.after_advice(folder, found.command))


@app.command()
def estimate(
    *,
    overflows: Annotated[str | None, typer.Option(help="The difference of TcpExt.ListenOverflows.")] = None,
    connect_timeout: Annotated[str | None, typer.Option(help="The clients' connect time-out, such as 5s.")] = None,
    sysctl: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A sysctl of the clients, such as net.ipv4.tcp_syn_retries=6; repeatable."
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="In place of a counter: a run, whose counter and failed dials are compared.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate how many connections failed behind a counter of overflows; with a run, check that against it."""
    from lab.results import estimates, find, next_step, which_run  # noqa: PLC0415

    if run is not None and (overflows, connect_timeout, sysctl) == (None, None, None):
        folder = find.find_run(run)
        check = estimates.of_run(folder)
        if as_json:
            terminal.result_json({"run": which_run.name(folder), **estimates.check_as_json(check)})
        else:
            terminal.result([*which_run.lines(folder), "", *estimates.check_lines(check), next_step.after_run(folder)])
        raise typer.Exit(estimates.exit_code(check))
    if run is not None or overflows is None or connect_timeout is None:
        raise BadInput(Problem("an estimate takes both --overflows and --connect-timeout, or --run alone"))
    estimated = estimates.of_counter(overflows, connect_timeout, sysctl or [])
    if as_json:
        terminal.result_json(estimates.as_json(estimated))
    else:
        terminal.result([*estimates.lines(estimated), next_step.after_estimate()])


@app.command("list")
def list_scenarios(*, as_json: JsonOption = False) -> None:
    """List the scenarios."""
    from lab.results import listing, next_step  # noqa: PLC0415
    from lab.scenario import places  # noqa: PLC0415
    from lab.scenario.resolve import resolve  # noqa: PLC0415

    scenarios, problems = [], places.misnamed()
    for slug in places.slugs():
        try:
            scenarios.append(resolve(slug))
        except BadInput as error:
            problems += error.problems
    summaries = []
    for scenario in listing.in_order(scenarios):
        try:
            summaries.append(listing.summary(scenario))
        except BadInput as error:
            problems += error.problems
    if as_json:
        terminal.result_json(summaries)
    else:
        listing.print_list(terminal.stdout(), summaries)
        _next(next_step.after_list())
    if problems:
        raise BadInput(problems)


@app.command()
def show(
    scenario: ScenarioArgument, sets: SetOption = None, *, preset: PresetOption = None, as_json: JsonOption = False
) -> None:
    """Show a scenario with its effective knobs, and its predictions with what is known of them before a run."""
    from lab.results import listing, next_step  # noqa: PLC0415
    from lab.run import machine_limits  # noqa: PLC0415
    from lab.scenario.resolve import resolve  # noqa: PLC0415

    resolved = resolve(scenario, sets or [], preset=preset)
    problems = list(machine_limits.of_kernel(resolved))
    if problems:
        raise BadInput(problems)
    details = listing.details(resolved, sets or [])
    if as_json:
        terminal.result_json(details)
    else:
        listing.print_details(terminal.stdout(), details)
        _next(next_step.after_show(resolved.place, sets or [], preset))


@app.command()
def plan(
    scenario: ScenarioArgument,
    sets: SetOption = None,
    *,
    preset: PresetOption = None,
    arm: ArmOption = None,
    engine: EngineOption = "compose",
    spread: SpreadOption = False,
    as_json: JsonOption = False,
) -> None:
    """Work out what a run takes: instances, connections, ports, open files, memory and disk; nothing is started."""
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.results import demand_printing  # noqa: PLC0415
    from lab.run import demand, machine_limits  # noqa: PLC0415

    _choose(engine, spread=spread)
    resolved, series = _resolve(scenario, sets or [], preset, arm)
    if series:
        raise BadInput(Problem(f"{resolved.slug} has arms, and each is a run", way_on="name one by --arm"))
    found, problems = demand.of_run(resolved, apart=spread)
    problems += machine_limits.of_engine(resolved, chosen())
    if problems:
        raise BadInput(problems)
    if as_json:
        terminal.result_json(found.as_json())
    else:
        demand_printing.print_demand(terminal.stdout(), found)


@app.command()
def new(
    scenario: Annotated[str, typer.Argument(help="A name for scenarios/<name>, or a folder, such as ./shop.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a scenario to begin with, and its lesson: commented, and complete as it stands."""
    from lab import paths  # noqa: PLC0415
    from lab.teach import template  # noqa: PLC0415

    written, run_it = template.write(scenario)
    if as_json:
        terminal.result_json({"files": [str(file) for file in written], "run": run_it})
    else:
        terminal.result([*map(paths.shown, written), f"run it: {run_it}"])


@app.command()
def observe(
    *,
    containers: Annotated[
        list[str] | None,
        typer.Option(
            "--container", metavar="NAME", help="A running container; repeatable. With --pod: one of the pod's."
        ),
    ] = None,
    compose: Annotated[
        str | None, typer.Option(metavar="PROJECT[/SERVICE]", help="All of a Compose project, or one service of it.")
    ] = None,
    pid: Annotated[int | None, typer.Option(min=1, help="A process of this machine.")] = None,
    pod: Annotated[str | None, typer.Option(metavar="NAMESPACE/POD", help="A pod of a Kubernetes cluster.")] = None,
    context: ContextOption = None,
    registry: RegistryOption = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer-container", metavar="NAME", help="A client's container, for the view from there."),
    ] = None,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="How long, such as 60s.")] = "60s",
    capture: Annotated[str, typer.Option(metavar="headers|handshakes|off", help="Which packets are kept.")] = "headers",
    capture_max_mb: Annotated[int, typer.Option(min=1, max=1 << 20, help="How large a capture may become, MiB.")] = 256,
    interface: Annotated[
        str | None,
        typer.Option(help="The interface to capture; by default all, and of a host that of its default route."),
    ] = None,
    connect_timeout: Annotated[
        str | None, typer.Option(help="How long the clients wait for a connection, if you know it.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="FILE", help="A role.yaml of the program that is observed.")
    ] = None,
    host: Annotated[bool, typer.Option("--host", help="Allow a target in the host's network namespace.")] = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Watch a container, a Compose project, a process or a pod that already runs; it is not changed.

    The exit code is 0 if the whole time was observed, and 3 if a target ended before.
    """
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.observe import asked, observing  # noqa: PLC0415
    from lab.observe.targets import Named, find  # noqa: PLC0415

    elsewhere = pod is not None
    if pod is not None:
        pod = asked.pod(pod, containers or (), {"--compose": compose, "--pid": pid, "--peer-container": peers})
        containers = None
        _choose("kubernetes", context=context, registry=registry)
    elif context or registry:
        raise BadInput(Problem("--context and --registry are of a pod's cluster", way_on="name the pod by --pod"))
    named = Named(containers or (), compose, pid, pod, peers or (), asked.path(role), host)
    wish = asked.wish(duration, capture, capture_max_mb, interface, connect_timeout, host=host, elsewhere=elsewhere)
    engine = chosen()
    targets = find(named, engine.sidecars())
    if check:
        raise typer.Exit
    for line in observing.announce(targets, wish):
        terminal.stderr().print(line, soft_wrap=True)
    folder = observing.observe(targets, wish, engine, _command_line())
    _end_observed(folder, as_json=as_json)


def _end_observed(folder: Path, *, as_json: bool) -> NoReturn:
    from lab.observe import printing  # noqa: PLC0415
    from lab.results import next_step  # noqa: PLC0415

    account = printing.read(folder)
    if as_json:
        terminal.result_json({**account, "folder": str(folder)})
    else:
        terminal.result([*printing.lines(account, folder), f"next, in the browser: {next_step.opened(folder)}"])
    raise typer.Exit(ExitCode.INCONCLUSIVE if printing.ended_early(folder) else ExitCode.REPRODUCED)


@app.command()
def slides(
    workshop: Annotated[str, typer.Argument(help="Such as 90-minutes; without one, all of them.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a workshop's slides, made from its page and its lessons: one HTML file each, which needs no network."""
    from lab import paths  # noqa: PLC0415
    from lab.teach import slides as teaching  # noqa: PLC0415

    written = [teaching.write(name) for name in ([workshop] if workshop else teaching.names())]
    if as_json:
        terminal.result_json([str(file) for file in written])
    else:
        terminal.result([*map(paths.shown, written), "next, open one in a browser: the arrow keys go on and back"])


@app.command()
def gallery(
    results: Annotated[
        list[Path] | None, typer.Argument(help="Folders with runs and series; by default results/.")
    ] = None,
    *,
    to: Annotated[Path | None, typer.Option(help="The folder to write; by default results/gallery.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build static pages that can be published: documents, lessons, and reports of the runs that are at hand."""
    from lab import paths  # noqa: PLC0415
    from lab.gallery import gallery_folder  # noqa: PLC0415

    built = gallery_folder.build(results or [paths.RESULTS], to or paths.RESULTS / "gallery")
    if as_json:
        terminal.result_json(
            {"folder": str(built.folder), "pages": built.pages, "bytes": built.size}
            | {"without": built.without, "left_out": built.left_out}
        )
        return
    for why in built.left_out:
        terminal.result([f"left out: {why}"])
    if built.without:
        terminal.result([f"no run at hand of: {', '.join(built.without)}"])
    terminal.result([f"{built.pages} pages, {built.size / 1e6:.1f} MB: {paths.shown(built.folder)}"])
    _next(f"next: open {paths.shown(built.folder / 'index.html')}, or publish the folder as it is")


@app.command()
def serve(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 takes a free one.")] = 8321,
    as_json: JsonOption = False,
) -> None:
    """Show lessons, the run at work, reports and the drill in a browser of this machine, until Ctrl-C."""
    from lab.serve import server  # noqa: PLC0415

    with server.listening(port) as served:
        if as_json:
            terminal.result_json({"address": served.address})
        else:
            terminal.result([f"open {served.address}", "it is for this machine's browsers alone; Ctrl-C ends it"])
        sys.stdout.flush()
        served.serve()


@app.command()
def doctor(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine, or a cluster, lacks, and the way on."""
    _choose(engine, context=context, namespace=namespace)
    from lab import doctor as doctors  # noqa: PLC0415
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.results import next_step  # noqa: PLC0415

    findings = doctors.examine(chosen())
    if as_json:
        terminal.result_json([asdict(finding) for finding in findings])
    else:
        styles = {"ok": "green", "warn": "yellow", "missing": "bold red"}
        for one in findings:
            way_on = f" — {one.way_on}" if one.way_on else ""
            state = (f"{one.state:>7}", styles[one.state])
            terminal.stdout().print(Text.assemble(state, f"  {one.name}: {one.found}{way_on}"), soft_wrap=True)
        if not any(finding.state == "missing" for finding in findings):
            _next(next_step.after_list())
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(ExitCode.LAB_FAILED)


@app.command()
def clean(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all that the lab made: containers and images, or its runs' pods in a cluster; results stay."""
    _choose(engine, context=context, namespace=namespace)
    from lab.engine.choice import chosen  # noqa: PLC0415
    from lab.run.lock import machine_lock  # noqa: PLC0415

    with machine_lock("connlab clean"):
        cleaned = chosen().clean()
    if as_json:
        terminal.result_json(asdict(cleaned))
    else:
        for kind, names in asdict(cleaned).items():
            if kind != "kept":
                terminal.stdout().print(f"{kind} removed: {', '.join(names) or 'none'}", soft_wrap=True)
        _next("next, what a run needs, built again: make setup")
    if cleaned.kept:
        raise LabError("not everything could be removed:\n  " + "\n  ".join(cleaned.kept))


@app.command()
def schema(*, as_json: JsonOption = False) -> None:  # noqa: ARG001 # every command takes --json; a schema is nothing else
    """Print the JSON Schema of scenario.yaml, for editors."""
    from lab.schema import schemas  # noqa: PLC0415

    terminal.result_json(schemas()["scenario.schema.json"])


@app.command("check-compose")
def check_compose(*, as_json: JsonOption = False) -> None:
    """Let Compose check, for every scenario and arm, the topology together with what a run adds to it."""
    from lab import compose_check  # noqa: PLC0415

    runs = list(compose_check.all_runs())
    scenarios, files = sorted({one.slug for one in runs}), compose_check.check(runs)
    if as_json:
        terminal.result_json(scenarios)
    else:
        terminal.stdout().print(
            f"Compose accepts the {files} topologies of {len(scenarios)} scenarios: {', '.join(scenarios)}",
            soft_wrap=True,
        )


# Made once, so that a second call of `main`, as in tests, does not wait for it.
_command = cache(partial(typer.main.get_command, app))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every end has its exit code, and a traceback only with CONNLAB_DEBUG=1."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug = os.environ.get("CONNLAB_DEBUG") == "1"
    os.umask(os.umask(0) | _OTHERS_WRITE)  # nothing below results/ may be changed by another user
    try:
        with interruptible(to_the_end=True):
            code = _command().main(args=arguments, prog_name="connlab", standalone_mode=False)
    except typer.Exit as end:
        code = end.exit_code
    except typer.TyperException as error:
        usage = BadInput(Problem(error.format_message().rstrip("."), way_on="'connlab --help' shows the commands"))
        code = _say(usage, as_json="--json" in arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = _say(LabError("interrupted"), as_json="--json" in arguments)
    except ConnlabError as error:
        if debug:
            terminal.problem(traceback.format_exc())
        code = _say(error, as_json="--json" in arguments)
    except OSError as error:
        if debug:
            terminal.problem(traceback.format_exc())
        failed = LabError(f"{error.filename or 'the machine'}: {error.strerror}")
        code = _say(failed, as_json="--json" in arguments)
    except Exception as error:
        if debug:
            raise
        internal = LabError(f"internal error: {type(error).__name__}: {error}", way_on="CONNLAB_DEBUG=1 shows where")
        code = _say(internal, as_json="--json" in arguments)
    sys.exit(code or 0)


def _say(error: ConnlabError, *, as_json: bool) -> ExitCode:
    if as_json:
        problems = [asdict(one) for one in error.problems] if isinstance(error, BadInput) else []
        terminal.result_json({"error": str(error), "problems": problems, "exit_code": int(error.exit_code)})
    lines = str(error).splitlines()
    terminal.problem("\n".join(f"connlab: {line}" if not line.startswith(" ") else line for line in lines))
    return error.exit_code
