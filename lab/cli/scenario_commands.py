"""Commands about scenarios, which start nothing: list, show, plan, a new one."""

from dataclasses import asdict
from typing import Annotated

import typer

from lab import terminal
from lab.cli.execution import resolve_asked, say_next
from lab.cli.groups import SCENARIOS, examples
from lab.cli.options import ArmOption, EngineOption, JsonOption, PresetOption, ScenarioArgument, SetOption, SpreadOption
from lab.errors import BadInput, Gathered, Problem

app = typer.Typer()


@app.command("list", rich_help_panel=SCENARIOS, epilog=examples("list", "list --json"))
def list_scenarios(*, as_json: JsonOption = False) -> None:
    """List the scenarios by subject, in the order of learning."""
    from lab.console import listing, next_steps
    from lab.scenarios import places
    from lab.scenarios.catalogue import load_catalogue

    summaries, gathered = [], Gathered()
    gathered.extend(places.misnamed())
    for subject in load_catalogue():
        for entry in subject.entries:
            with gathered:
                summaries.append(listing.summarize_entry(subject.name, entry, whole=as_json))
    if as_json:
        terminal.result_json(summaries)
    else:
        listing.print_list(terminal.stdout(), summaries)
        say_next(next_steps.after_list())
    gathered.refuse()


@app.command(
    rich_help_panel=SCENARIOS,
    epilog=examples("show accept-queue-overflow", "show accept-queue-overflow --set load.users=500"),
)
def show(
    scenario: ScenarioArgument, sets: SetOption = None, *, preset: PresetOption = None, as_json: JsonOption = False
) -> None:
    """Show a scenario's knobs and predictions.

    With each prediction stands what is known of it before a run.
    """
    from lab.console import listing, next_steps
    from lab.engines.selection import selected_engine
    from lab.runs import capacity
    from lab.scenarios.resolve import resolve

    resolved = resolve(scenario, sets or [], preset=preset)
    problems = [*capacity.kernel_problems(resolved), *capacity.program_problems(resolved, selected_engine())]
    if problems:
        raise BadInput(problems)
    details = listing.describe(resolved, sets or [])
    if as_json:
        terminal.result_json(details)
    else:
        listing.print_details(terminal.stdout(), details)
        say_next(next_steps.after_show(resolved.place, sets or [], preset))


@app.command(rich_help_panel=SCENARIOS, epilog=examples("plan accept-queue-overflow --set load.users=5000"))
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
    """Compute the ports, files, memory and disk that a run takes.

    Nothing is started.
    """
    from lab.console import listing
    from lab.engines.selection import select_engine, selected_engine
    from lab.runs import capacity

    select_engine(engine, spread=spread)
    resolved, series = resolve_asked(scenario, sets or [], preset, arm)
    if series:
        raise BadInput(Problem(f"{resolved.slug} has several arms", hint="choose one with --arm"))
    found, problems = capacity.compute_demand(resolved, apart=spread)
    problems += [
        *capacity.engine_problems(resolved, selected_engine()),
        *capacity.program_problems(resolved, selected_engine()),
    ]
    if problems:
        raise BadInput(problems)
    if as_json:
        terminal.result_json(asdict(found))
    else:
        listing.print_demand(terminal.stdout(), found)


@app.command(rich_help_panel=SCENARIOS, epilog=examples("new ./shop"))
def new(
    scenario: Annotated[str, typer.Argument(help="A name for scenarios/<name>, or a folder, such as ./shop.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Scaffold a runnable scenario and its lesson.

    Both are commented, and complete as they are. A name alone is one of the lab's own in a checkout; elsewhere it is a
    folder where you stand.
    """
    from lab import paths
    from lab.lessons import scaffold

    written, run_it = scaffold.write_scenario(scenario)
    if as_json:
        terminal.result_json({"files": [str(file) for file in written], "run": run_it})
    else:
        terminal.result([*map(paths.shown, written), f"run it: {run_it}"])
