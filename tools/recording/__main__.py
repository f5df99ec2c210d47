"""The command line: `python -m tools.recording record|experiments|mutate`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lab import paths, terminal
from lab.cli import main
from lab.cli.execution import command_line, say_next
from lab.cli.options import ALL, CheckOption, JsonOption, ScenariosArgument
from lab.errors import ExitCode
from lab.outcomes import run_and_judge
from lab.scenarios.resolved import ResolvedScenario
from tools.recording import documents, mutation, recorded_figures, recorder

app = typer.Typer(
    help="Record runs of the catalogue, and make and test what rests on them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _planned(scenario: str) -> list[ResolvedScenario]:
    return list(run_and_judge.resolve_all()) if scenario == ALL else [run_and_judge.resolve_checked(scenario)]


@app.command()
def record(
    scenario: ScenariosArgument,
    *,
    runs: Annotated[int, typer.Option(min=1, help="How many recorded runs it should have in all.")] = 1,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario until so many runs of it are recorded for docs/experiments.md; resumes."""
    scenarios = _planned(scenario)
    recorder.refuse_folders(scenarios)
    recorder.refuse_changes()
    if check:
        raise typer.Exit
    recorded = recorder.record(scenarios, runs, command_line(), terminal.stderr())
    if as_json:
        terminal.result_json([one.model_dump(by_alias=True) for one in recorded.lines])
    else:
        terminal.result(recorder.summary(recorded))
        say_next("next, the documents made from them: make experiments")
    raise typer.Exit(ExitCode.LAB_FAILED if recorded.failed else ExitCode.REPRODUCED)


@app.command()
def experiments(*, as_json: JsonOption = False) -> None:
    """Make docs/experiments.md and docs/catalogue.md from the recorded runs."""
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
    scenarios = _planned(scenario)
    if take:
        for resolved in scenarios:
            recorded_figures.write(resolved, run_and_judge.judge_folder(Path(take)))
    found = list(mutation.mutate(scenarios))
    if as_json:
        terminal.result_json([asdict(one) for one in found])
    else:
        terminal.result(mutation.summary(found))
        if any(one.idle for one in found):
            say_next("next, how a prediction is stated so that it notices: CONTRIBUTING.md#add-a-scenario")
    raise typer.Exit(ExitCode.NOT_REPRODUCED if any(one.idle for one in found) else ExitCode.REPRODUCED)


if __name__ == "__main__":
    main(commands=app, program="python -m tools.recording")
