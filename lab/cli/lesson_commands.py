"""Commands of lessons and workshops: a lesson, its exercises, the drill, pages to follow along."""

import sys
from typing import Annotated

import typer

from lab import terminal
from lab.cli.execution import command_line, end_checked, resolve_asked, run_one_or_arms, say_next
from lab.cli.groups import TEACH, Checked, RunCommand, examples
from lab.cli.options import (
    ArmOption,
    CheckOption,
    DryRunOption,
    ImagesOption,
    JsonOption,
    NewOption,
    PresetOption,
    ScenarioArgument,
    SetOption,
    complete_exercise,
)
from lab.errors import BadInput, Problem

app = typer.Typer()


@app.command(
    cls=RunCommand,
    rich_help_panel=TEACH,
    epilog=examples("lesson accept-queue-turns", "lesson accept-queue-overflow --preset published"),
)
def lesson(
    scenario: ScenarioArgument,
    sets: SetOption = None,
    *,
    preset: PresetOption = None,
    arm: ArmOption = None,
    new: NewOption = False,
    dry_run: DryRunOption = False,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Ask what you expect, run, and show both side by side.

    The exit code is the verdict's.
    """
    asked = resolve_asked(scenario, sets or [], preset, arm)
    run_one_or_arms(*asked, new=new, dry_run=dry_run, check=check, as_json=as_json, ask=True)


@app.command(
    cls=RunCommand,
    rich_help_panel=TEACH,
    epilog=examples("exercise accept-queue-overflow/1", "exercise accept-queue-overflow/6 --set load.users=9"),
)
def exercise(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO/NUMBER", help="Such as accept-queue-overflow/1.", autocompletion=complete_exercise
        ),
    ],
    sets: SetOption = None,
    *,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Run a lesson's exercise and judge it against the answer.

    `latest` stays where it is. An open exercise takes the knob that you found, with --set. The exit code is 0 if it
    came out as the answer says.
    """
    from lab.console import run_output
    from lab.engines.selection import selected_engine
    from lab.lessons import exercises, questions
    from lab.lessons.guesses import ask_about_exercise
    from lab.outcomes import run_and_judge
    from lab.runs import capacity

    ready = exercises.prepare(name, sets or [])
    if check:
        end_checked([ready.resolved])
    capacity.check_capacity(ready.resolved, selected_engine())
    exercises.print_task(terminal.stderr(), ready)
    answer = () if ready.exercise.is_open else ready.exercise.answer
    guessed = ask_about_exercise(terminal.stderr(), questions.questions_for_answer(ready.resolved, answer, "exercise"))
    found = run_and_judge.run_once(ready.resolved, command_line(), terminal.stderr(), guessed, tries_out=True)
    judged = exercises.judge(ready, found.folder)
    if as_json:
        terminal.result_json(exercises.as_json(ready, found.folder, judged))
    else:
        run_output.print_guesses(terminal.stdout(), found.folder, found.verdict)
        exercises.print_judged(terminal.stdout(), ready, found.folder, judged)
        say_next(exercises.next_exercise(ready, found.folder, exercises.exit_code(judged)))
    raise typer.Exit(exercises.exit_code(judged))


@app.command(
    cls=RunCommand,
    rich_help_panel=TEACH,
    epilog=examples(
        "drill",
        "drill --seed 7 --more packets",
        "drill --seed 7 --cause accept-queue-full --place backend --set backend.accept_count=100",
    ),
)
def drill(
    sets: SetOption = None,
    *,
    seed: Annotated[int | None, typer.Option(min=0, help="The drill's seed; without it, one is drawn.")] = None,
    level: Annotated[int, typer.Option(help="1, 2 (perhaps with a proxy) or 3 (something harmless besides).")] = 1,
    more: Annotated[str | None, typer.Option(help="A further piece of evidence, which costs minutes.")] = None,
    cause: Annotated[str | None, typer.Option(help="Your answer: the cause.")] = None,
    place: Annotated[str | None, typer.Option(help="Your answer: where it lies, such as backend.")] = None,
    check: CheckOption = False,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Be on call: find a fault in the evidence, and fix it.

    A fault is drawn and run. Name its cause, its place and the knob that helps; a run tests your remedy. Without an
    answer the exit code is 0; with one it is 0 if the cause is right and the remedy recovered, and else 1.
    """
    import secrets

    from lab.lessons.drill import incident
    from lab.outcomes import run_and_judge

    answers = incident.is_answer(cause, place, sets or [], more, seed)
    if check and seed is None:
        raise Checked(["the drill"])  # which one it will be is not drawn yet
    drawn = incident.draw_drill(secrets.randbelow(10_000) if seed is None else seed, level)
    state = incident.load_state(drawn)
    if state is None and (answers or more):
        raise BadInput(Problem(f"drill {seed} of level {level} has not begun", hint="begin it without an answer"))
    if answers:
        incident.check_answer(drawn, cause or "", place or "", sets or [])
    if check:
        end_checked([incident.resolve_drill(drawn, sets or [])])
    if state is None:
        run = run_and_judge.run_once(incident.resolve_drill(drawn), command_line(), terminal.stderr(), tries_out=True)
        state = incident.begin(drawn, run.folder)
    if not answers:
        lines = incident.ask_for_more(drawn, state, more) if more else incident.format_evidence(drawn, state)
        if as_json:
            terminal.result_json({**state.model_dump(by_alias=True), "minutes": state.minutes, "evidence": list(lines)})
        else:
            terminal.result(lines)
        return
    remedied = incident.resolve_remedy(drawn, state, sets or [])
    after = run_and_judge.run_once(remedied, command_line(), terminal.stderr(), tries_out=True).folder
    found = incident.judge(drawn, state, incident.record_answer(drawn, state, cause or "", place or "", after))
    if as_json:
        terminal.result_json(
            {**found.model_dump(), "points": found.points, "recovered": found.recovered, "folder": str(after)}
        )
    else:
        terminal.result(incident.format_result(drawn, state, found, after))
    raise typer.Exit(found.code)


@app.command(rich_help_panel=TEACH, epilog=examples("serve", "serve --port 0"))
def serve(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 takes a free one.")] = 8321,
    as_json: JsonOption = False,
) -> None:
    """Show lessons, runs, reports and drills in a browser.

    The pages are for this machine alone. Ctrl-C ends it.
    """
    from lab.serve import server

    with server.listening(port) as served:
        if as_json:
            terminal.result_json({"address": served.address})
        else:
            terminal.result([f"open {served.address}", "it is for this machine's browsers alone; Ctrl-C ends it"])
        sys.stdout.flush()
        served.serve()
