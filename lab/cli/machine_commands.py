"""Commands about this machine or a cluster, and checks of what the lab is made of."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.text import Text

from lab import terminal
from lab.cli.execution import say_next
from lab.cli.options import ContextOption, EngineOption, JsonOption, NamespaceOption
from lab.errors import ExitCode, LabError

app = typer.Typer()


@app.command()
def doctor(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine, or a cluster, lacks, and a hint."""
    from lab import doctor as doctors
    from lab.console import next_steps
    from lab.engines.selection import select_engine, selected_engine

    select_engine(engine, context=context, namespace=namespace)
    findings = doctors.examine(selected_engine())
    if as_json:
        terminal.result_json([asdict(finding) for finding in findings])
    else:
        styles = {"ok": "green", "warn": "yellow", "missing": "bold red"}
        for one in findings:
            hint = f" — {one.hint}" if one.hint else ""
            state = (f"{one.state:>7}", styles[one.state])
            terminal.stdout().print(Text.assemble(state, f"  {one.name}: {one.found}{hint}"), soft_wrap=True)
        if not any(finding.state == "missing" for finding in findings):
            say_next(next_steps.after_list())
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(ExitCode.LAB_FAILED)


@app.command()
def setup(*, as_json: JsonOption = False) -> None:
    """Install, start and build what a run needs, and run nothing."""
    from lab import setup_scripts
    from lab.console import next_steps

    setup_scripts.make_ready()
    if as_json:
        terminal.result_json({"ready": True})
    else:
        say_next(next_steps.after_list())


@app.command()
def clean(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all that the lab made: containers and images, or its runs' pods in a cluster; results stay."""
    from lab.console import next_steps
    from lab.engines.selection import select_engine, selected_engine
    from lab.runs.lock import machine_lock

    select_engine(engine, context=context, namespace=namespace)
    with machine_lock("connlab clean"):
        cleaned = selected_engine().clean()
    if as_json:
        terminal.result_json(asdict(cleaned))
    else:
        for kind, names in asdict(cleaned).items():
            if kind != "kept":
                terminal.stdout().print(f"{kind} removed: {', '.join(names) or 'none'}", soft_wrap=True)
        say_next(next_steps.after_clean())
    if cleaned.kept:
        raise LabError("not everything could be removed:\n  " + "\n  ".join(cleaned.kept))


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
