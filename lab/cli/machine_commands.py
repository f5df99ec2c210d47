"""Commands about this machine or a cluster, and checks of what the lab is made of."""

from dataclasses import asdict

import typer
from rich.text import Text

from lab import terminal
from lab.cli.execution import say_next
from lab.cli.groups import MACHINE, examples
from lab.cli.options import ContextOption, EngineOption, ImagesOption, JsonOption, NamespaceOption
from lab.errors import ExitCode, LabError

app = typer.Typer()


@app.command(rich_help_panel=MACHINE, epilog=examples("doctor", "doctor --engine kubernetes"))
def doctor(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check what this machine, or a cluster, needs for a run."""
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


@app.command(rich_help_panel=MACHINE, epilog=examples("setup"))
def setup(
    *,
    images: ImagesOption = None,  # noqa: ARG001 # its callback sets it
    as_json: JsonOption = False,
) -> None:
    """Install, start and build what a run needs; run nothing."""
    from lab import setup_scripts
    from lab.console import next_steps

    setup_scripts.make_ready()
    if as_json:
        terminal.result_json({"ready": True})
    else:
        say_next(next_steps.after_list())


@app.command(rich_help_panel=MACHINE, epilog=examples("clean", "clean --engine kubernetes"))
def clean(
    *,
    engine: EngineOption = "compose",
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all that the lab made; results stay.

    On this machine these are containers, networks, volumes and images; in a cluster, its runs' pods.
    """
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


@app.command(rich_help_panel=MACHINE, epilog=examples("man | man -l -", "man > ~/.local/share/man/man1/connlab.1"))
def man(*, as_json: JsonOption = False) -> None:
    """Print the manual page, for man."""
    from lab.cli import app as program
    from lab.cli.manual import format_manual

    page = format_manual(program)
    if as_json:
        terminal.result_json({"page": page})
    else:
        terminal.result(page.splitlines())


@app.command(rich_help_panel=MACHINE, epilog=examples("schema > scenario.schema.json"))
def schema(*, as_json: JsonOption = False) -> None:  # noqa: ARG001 # every command takes --json; a schema is nothing else
    """Print the JSON Schema of scenario.yaml, for editors."""
    from lab.schema import schemas

    terminal.result_json(schemas()["scenario.schema.json"])


@app.command("check-compose", rich_help_panel=MACHINE, epilog=examples("check-compose"))
def check_compose(*, as_json: JsonOption = False) -> None:
    """Let Compose check the file of every scenario and arm."""
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
