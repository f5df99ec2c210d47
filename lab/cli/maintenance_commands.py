"""Commands for those who change the lab: checks of what it is made of."""

from __future__ import annotations

import typer

from lab import terminal
from lab.cli.options import JsonOption

app = typer.Typer()


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
