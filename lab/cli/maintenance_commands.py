"""Commands for those who change the lab: recorded runs, the documents made from them, checks, static pages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lab import terminal
from lab.cli.end import say_next
from lab.cli.options import ALL, CheckOption, JsonOption, ScenariosArgument
from lab.cli.start import command_line
from lab.errors import ExitCode

app = typer.Typer()


@app.command()
def record(
    scenario: ScenariosArgument,
    *,
    runs: Annotated[int, typer.Option(min=1, help="How many recorded runs it should have in all.")] = 1,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario until so many runs of it are recorded for docs/experiments.md; goes on where it stopped."""
    from lab.experiments import outcome, recorder

    scenarios = list(outcome.all_planned()) if scenario == ALL else [outcome.planned(scenario)]
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
    """Make docs/experiments.md and the README's table of scenarios from the recorded runs."""
    from lab import paths
    from lab.experiments import documents

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
    from lab.experiments import mutating, outcome, specimens

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
            say_next("next, how a prediction is stated so that it notices: CONTRIBUTING.md#add-a-scenario")
    raise typer.Exit(ExitCode.NOT_REPRODUCED if any(one.idle for one in found) else ExitCode.REPRODUCED)


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
    from lab import paths
    from lab.gallery import gallery_folder

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
    say_next(f"next: open {paths.shown(built.folder / 'index.html')}, or publish the folder as it is")


@app.command()
def schema(*, as_json: JsonOption = False) -> None:  # noqa: ARG001 # every command takes --json; a schema is nothing else
    """Print the JSON Schema of scenario.yaml, for editors."""
    from lab.schema import schemas

    terminal.result_json(schemas()["scenario.schema.json"])


@app.command("check-compose")
def check_compose(*, as_json: JsonOption = False) -> None:
    """Let Compose check, for every scenario and arm, the topology together with what a run adds to it."""
    from lab import compose_check

    runs = list(compose_check.all_runs())
    scenarios, files = sorted({one.slug for one in runs}), compose_check.check(runs)
    if as_json:
        terminal.result_json(scenarios)
    else:
        terminal.stdout().print(
            f"Compose accepts the {files} topologies of {len(scenarios)} scenarios: {', '.join(scenarios)}",
            soft_wrap=True,
        )
