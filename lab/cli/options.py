"""Options and arguments that several commands take, and what a shell completes: each loads what it alone needs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from lab.errors import BadInput, Problem

# No port of the lab's own roles, and below every range of ephemeral ports that a scenario sets.
DEFAULT_METRICS_PORT = 9645
# The name that stands for every scenario, one after the other.
ALL = "all"


def complete_scenario(incomplete: str) -> Iterator[str]:
    """Yield the lab's scenarios, and folders where the user is writing a path."""
    from lab import paths

    if incomplete.startswith((".", "/", "~")) or "/" in incomplete:
        folder = Path(incomplete).expanduser()
        above = folder if incomplete.endswith("/") else folder.parent
        begin = incomplete[: len(incomplete) - (0 if incomplete.endswith("/") else len(folder.name))]
        yield from (f"{begin}{one.name}/" for one in sorted(above.glob("*")) if one.is_dir())
        return
    yield from sorted(file.parent.name for file in paths.SCENARIOS.glob("*/scenario.yaml"))


def complete_exercise(incomplete: str) -> Iterator[str]:
    """Yield the exercises of one lesson, or every lesson with a slash."""
    from lab import paths

    slug, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (f"{name}/" for name in complete_scenario(""))
        return
    file = paths.SCENARIOS / slug / "exercises.yaml"
    known = re.findall(r"(?m)^  - ", file.read_text()) if file.is_file() else []
    yield from (f"{slug}/{number}" for number in range(1, len(known) + 1))


def complete_matrix() -> Iterator[str]:
    """Yield the lab's matrices."""
    from lab import paths

    yield from sorted(file.stem for file in paths.SCENARIOS.glob("matrices/*.yaml"))


def complete_run() -> Iterator[str]:
    """Yield the runs, newest first, after the scenarios that have one: such a name is its newest run."""
    from lab import paths

    runs = sorted((file.parent for file in paths.RESULTS.glob("*/*/manifest.json")), key=lambda one: one.name)
    yield from dict.fromkeys(one.parent.name for one in reversed(runs))
    yield from (f"{one.parent.name}/{one.name}" for one in reversed(runs) if one.name != "latest")


def complete_setting() -> Iterator[str]:
    """Yield the knobs, each with the `=` that a value follows."""
    from lab.scenarios.knobs import CATALOGUE

    yield from (f"{name}=" for name in sorted(CATALOGUE))


def complete_knob() -> Iterator[str]:
    """Yield the knobs."""
    yield from (one.removesuffix("=") for one in complete_setting())


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        help="The scenario's name ('connlab list' shows them), or its folder, such as ./shop.",
        autocompletion=complete_scenario,
    ),
]
ScenariosArgument = Annotated[
    str,
    typer.Argument(
        help=f"The scenario's name or folder, or '{ALL}' the lab's own, one after the other.",
        autocompletion=complete_scenario,
    ),
]
RunArgument = Annotated[
    str, typer.Argument(help="A run's folder, or a scenario for its latest run.", autocompletion=complete_run)
]
NewestRunArgument = Annotated[
    str,
    typer.Argument(help="A run's folder, or a scenario; by default the newest run.", autocompletion=complete_run),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KNOB=VALUE",
        help="Set a knob, such as backend.accept_count=10; repeatable.",
        autocompletion=complete_setting,
    ),
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
        help="Runs of each arm or cell; a finished series that has fewer is topped up.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="List cells, order and expected time; run nothing.")]
# What a command does first of all, before the set-up; the engine, memory and disk are the run's own to ask about.
CheckOption = Annotated[bool, typer.Option("--check", help="Check the input and say that it is valid; run nothing.")]
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


def _pull_from(prefix: str | None) -> str | None:
    """Let the set-up's scripts find where to pull images from (setup/images.sh)."""
    if prefix:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+", prefix):
            hint = "write it as <registry>/<prefix>, such as 127.0.0.1:5000/connlab"
            raise BadInput(Problem(f"'{prefix}' is no registry with a prefix", "--images", hint))
        os.environ["CONNLAB_IMAGES"] = prefix
    return prefix


ImagesOption = Annotated[
    str | None,
    typer.Option(
        metavar="REGISTRY/PREFIX",
        envvar="CONNLAB_IMAGES",
        callback=_pull_from,
        help="Where to pull the lab's images from; what is not there is built (docs/images.md).",
    ),
]
MetricsOption = Annotated[
    bool, typer.Option("--metrics", help="Let each collector serve its current figures, for Prometheus (docs/boards).")
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=1024, max=65535, help=f"The port of --metrics; by default {DEFAULT_METRICS_PORT}."
    ),
]
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Record how long each step of the run took, and print it at the end.")
]
# When the command began, before its check and the set-up; seconds since 1970.
BeganOption = Annotated[float | None, typer.Option("--began", hidden=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for a program.")]
