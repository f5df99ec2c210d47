"""How a command ends: its words or its JSON, the next step, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import typer

from lab import terminal
from lab.errors import BadInput, ExitCode


def end_checked(effectives: Iterable[Any]) -> NoReturn:
    """End a command that only checks its input: nothing of it has run.

    Raises:
        BadInput: this machine, or another run, does not let them run.
    """
    from lab.engines.selection import selected_engine
    from lab.runs import capacity, session

    # What holds for every cell of a series is said once.
    checked, engine = list(effectives), selected_engine()
    of_engine = (problem for one in checked for problem in capacity.engine_problems(one, engine))
    of_programs = (problem for one in checked for problem in capacity.program_problems(one, engine))
    problems = list(dict.fromkeys([*of_engine, *of_programs]))
    if problems:
        raise BadInput(problems)
    for place in dict.fromkeys(one.place for one in checked):
        session.refuse_taken(place)
    raise typer.Exit


def end_judged(
    found: Any,  # noqa: ANN401 # an Outcome
    *,
    as_json: bool,
    lesson: Any = None,  # noqa: ANN401 # a Place
    profiled: bool = False,
) -> NoReturn:
    """End with a verdict; `lesson`: whose lesson it was; `profiled`: print how long each step took, too."""
    from lab.results import next_step, profile_printing

    if as_json:
        terminal.result_json(found.as_json())
    else:
        found.print(terminal.stdout())
        if profiled:
            profile_printing.print_profile(terminal.stdout(), found.runs)
        after = next_step.after_series if found.series else next_step.after_run
        say_next((next_step.after_lesson(lesson) if lesson else None) or after(found.folder))
    raise typer.Exit(found.code)


def end_observed(folder: Path, *, as_json: bool) -> NoReturn:
    """End with the account of a system that was watched."""
    from lab.observe import printing
    from lab.results import next_step

    account = printing.read_connections(folder)
    if as_json:
        terminal.result_json({**account, "folder": str(folder)})
    else:
        terminal.result(
            [*printing.connection_lines(account, folder), f"next, in the browser: {next_step.opened(folder)}"]
        )
    raise typer.Exit(ExitCode.INCONCLUSIVE if printing.ended_early(folder) else ExitCode.REPRODUCED)


def say_next(step: str | None) -> None:
    """Print what to do next, if there is anything."""
    if step:
        terminal.result([step])
