"""How the command line is put together: commands in groups, with examples; what runs something is made ready first."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from lab import terminal

# The groups of `connlab --help`, in this order.
SCENARIOS, RUN, READ, COMPARE, OBSERVE, TEACH, MACHINE = (
    "Scenarios",
    "Run",
    "Read a run",
    "Compare runs",
    "Observe what already runs",
    "Learn and teach",
    "Set up and maintain",
)
_ORDER = (SCENARIOS, RUN, READ, COMPARE, OBSERVE, TEACH, MACHINE)
_NAME_WIDTH = 13


def examples(*commands: str) -> str:
    """Return examples for the end of a help text, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  connlab {one}" for one in commands)])


class Groups(TyperGroup):
    """The program: `--help` lists its commands in their groups."""

    def grouped(self) -> dict[str, list[Any]]:
        """Return the commands by their groups."""
        found: dict[str, list[Any]] = {name: [] for name in _ORDER}
        for command in self.commands.values():
            found[getattr(command, "rich_help_panel", None) or MACHINE].append(command)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 # typer gives these types no name of its own
        """List each group with its commands."""
        for name, commands in self.grouped().items():
            rows = [(one.name.ljust(_NAME_WIDTH), one.get_short_help_str(limit=formatter.width)) for one in commands]
            with formatter.section(name):
                formatter.write_dl(rows)


class Checked(typer.Exit):
    """Ends a command that only checked valid input; `names`: of what; `notices`: what a run says of it."""

    def __init__(self, names: Iterable[str], notices: Iterable[str] = ()) -> None:
        super().__init__()
        self.names = list(names)
        self.notices = list(notices)


class RunCommand(TyperCommand):
    """A command that runs something: it checks its input, makes the machine ready, and only then begins.

    So nobody waits for a set-up to be told of a slip. `main` says how the machine is made ready; tests do without.
    """

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 # as above
        """Run the command, after its check and the set-up."""
        make_ready = ctx.find_root().obj
        if make_ready and _runs_something(ctx.info_name, ctx.params):
            given = ctx.params | ({"began": time.time()} if ctx.params.get("profile") else {})
            ctx.params = given | {"check": True}
            try:
                super().invoke(ctx)
            except typer.Exit as end:
                if end.exit_code:
                    raise
            ctx.params = given
            make_ready()
        try:
            return super().invoke(ctx)
        except Checked as end:
            for line in end.notices:
                terminal.stderr().print(line, markup=False, highlight=False, soft_wrap=True)
            if not ctx.params["as_json"]:
                terminal.result([f"{name}: valid" for name in end.names])
            raise


def _runs_something(name: str, given: dict[str, Any]) -> bool:
    if given["check"] or given.get("dry_run") or (name == "matrix" and not given["name"]):
        return False
    # Of this machine, a run in a cluster needs only the program that reads captures.
    in_cluster = given.get("engine") == "kubernetes" or given.get("pod") is not None
    return not (in_cluster and _has_flows())


def _has_flows() -> bool:
    from analysis.evidence.flows import find_program

    return isinstance(find_program(), Path)
