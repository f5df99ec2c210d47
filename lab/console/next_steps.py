"""The last line of a command: the next step, as a command to be copied."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import command_hints
from analysis.verdicts import derived
from analysis.verdicts.ledger_file import Ledger
from formats.knob_types import format_knob_value
from formats.series import Search
from lab import paths
from lab.scenarios.places import Place

if TYPE_CHECKING:
    # A plan brings the declarations of all roles, and a command that reads a run needs none of them.
    from lab.series.plan import Plan

# The first of the lessons to start with; README names them all.
FIRST_LESSON = "accept-queue-turns"

_TOP = "1"


def after_run(folder: Path) -> str:
    """Return the step after a run or its report: the story of its worst request, or advice where none is on record."""
    if is_without_requests(folder):
        return after_explanation(folder)
    return worst_request(command_hints.name_folder(folder))


def is_without_requests(folder: Path) -> bool:
    """Return whether a run's load leaves no record of requests, so that none has a story."""
    try:
        return derived.read(folder, Ledger).by_connection
    except derived.DerivedError:
        return False


def worst_request(run: str) -> str:
    """Return the command that tells the story of the worst request of a run."""
    return (
        f"next, the story of its worst request: {command_hints.make_command_here('explain', {'RUN': run, 'TOP': _TOP})}"
    )


def after_lesson(place: Place) -> str | None:
    """Return the step after a lesson: its explanation; None where a scenario has no text."""
    text = place.lesson
    if not text.is_file():
        return None
    return f"next, what you saw, explained: {paths.shown(text)}#explanation; then its exercises"


def after_explanation(folder: Path) -> str:
    """Return the step after a request's story: advice."""
    command = command_hints.make_command_here("advise", {"RUN": command_hints.name_folder(folder)})
    return f"next, which knob would help: {command}"


def opened(folder: Path) -> str:
    """Return the command that opens a run's report."""
    return command_hints.make_command_here("open", {"RUN": command_hints.name_folder(folder)})


def after_advice(folder: Path, command: str | None) -> str:
    """Return the step after advice: the run that tests it, or, where no knob helps, the run's report."""
    if command:
        return f"test it: {command_hints.command_here(command)}"
    return f"next, the whole report: {opened(folder)}"


def after_series(folder: Path) -> str:
    """Return the step after a series: its cells beside each other."""
    compared = command_hints.make_command_here("compare", {"MATRIX": folder.name})
    return f"next, compare its cells: {compared}"


def after_search(plan: Plan, search: Search) -> str | None:
    """Return the step after a search: a run with the value found; None where there is none."""
    if search.found is None:
        return None
    sets = {**_settings(plan.overrides), search.knob: format_knob_value(search.found, search.unit)}
    scenario = next(iter(plan.cells.values())).resolved.place.named
    return f"next, a run with it: {command_hints.make_command_here('run', {'SCENARIO': scenario}, sets)}"


def _settings(overrides: Iterable[str]) -> dict[str, str]:
    return {name: value for name, _, value in (one.partition("=") for one in overrides)}


def after_matrices(name: str) -> str:
    """Return the step after the list of matrices: a dry run of one."""
    command = command_hints.make_command_here("matrix", {"MATRIX": name, "DRY": "1"})
    return f"next, what one of them would run: {command}"


def after_estimate() -> str:
    """Return the step after an estimate from a counter: observe the server that counted."""
    command = command_hints.example_command_here("observe", {"CONTAINER": "<name>", "DURATION": "60s"})
    return f"next, watch the server that counted them: {command}"


def after_clean() -> str:
    """Return the step after everything was removed: the set-up."""
    return f"next, what a run needs, built again: {command_hints.make_command_here('setup', {})}"


def after_list() -> str:
    """Return the step after a list of the scenarios: the lesson to start with."""
    return f"next, the lesson to start with: {command_hints.make_command_here('lesson', {'SCENARIO': FIRST_LESSON})}"


def after_show(place: Place, overrides: Iterable[str], preset: str | None) -> str:
    """Return the step after a scenario was shown: predict it and run it."""
    variables = {"SCENARIO": place.named, **({"PRESET": preset} if preset else {})}
    command = command_hints.make_command_here("lesson", variables, _settings(overrides))
    return f"next, predict it and run it: {command}"
