"""Lookup of runs: the one that a command names, and how a run is named to the reader."""

from collections.abc import Iterator
from pathlib import Path

from analysis import command_hints
from formats.manifest import FILE as MANIFEST_FILE
from formats.manifest import load_manifest
from formats.series import FILE as SERIES_FILE
from formats.series import load_series, split_id
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios import places

_NO_MANIFEST = "a run's folder does, and without it nothing of a run can be read"


def find_run(name: str) -> Path:
    """Find a run by its folder, by `<scenario>/<run-id>`, or by a scenario, or its folder, for its latest run.

    Raises:
        BadInput: there is no such run.
    """
    results = paths.RESULTS
    if places.is_path(name) and places.is_home(Path(name)):
        name = Path(name).resolve().name
    for folder in (Path(name), results / name, results / name / "latest"):
        if name and (folder / MANIFEST_FILE).is_file():
            return folder.resolve()
    if series := series_folder(name):
        compared = command_hints.make_command_here("compare", {"MATRIX": series.resolve().name})
        hint = f"give one of its runs, as {paths.shown(series / SERIES_FILE)} names them, or {compared}"
        raise BadInput(Problem(f"'{name}' is a series of runs", hint=hint))
    for folder in (Path(name), results / name):
        if name and folder.is_dir():
            inside = max(folder.glob(f"*/{MANIFEST_FILE}"), default=None)
            hint = f"give one of the runs in it, such as {paths.shown(inside.parent)}" if inside else _NO_MANIFEST
            raise BadInput(Problem(f"{paths.shown(folder)} holds no {MANIFEST_FILE}", hint=hint))
    if name in places.slugs():
        hint = f"make one: {command_hints.make_command_here('run', {'SCENARIO': name})}"
        raise BadInput(Problem(f"{paths.shown(results)} has no run of {name}", hint=hint))
    known = [folder.parent.name for folder in results.glob("*/latest")]
    hint = did_you_mean(name, known) or "give the folder that holds manifest.json"
    raise BadInput(Problem(f"no run at '{name}'" if name else "no run is named", hint=hint))


def series_folder(name: str) -> Path | None:
    """Return the series that is named by its folder or its id; None if there is none."""
    folders = (Path(name), paths.RESULTS / "series" / name) if name else ()
    return next((each for each in folders if (each / SERIES_FILE).is_file()), None)


def run_name(folder: Path) -> str:
    """Return a run's scenario and id, as commands take them."""
    recorded = load_manifest(folder)
    return f"{recorded.scenario}/{recorded.run}"


def describe_run(folder: Path) -> Iterator[str]:
    """Yield the run's name and, if it is one of a series of arms, how the others are named."""
    yield run_name(folder)
    recorded = load_manifest(folder)
    series, arm = recorded.series, recorded.cell
    if series and split_id(series)[0] == "arms":
        others = ", ".join(_others(folder, series, arm))
        rest = f"; its other arms, each as RUN=<run>: {others}" if others else ""
        yield f"the arm '{arm}' of {series}{rest}"


def _others(folder: Path, series: str, arm: str) -> list[str]:
    """Return the newest run of each other arm that completed; none of a run that was copied without its series."""
    try:
        places = load_series(folder.parent.parent / "series" / series).runs
    except (OSError, ValueError):
        return []
    newest = {place.cell: place.run for place in places if place.status == "complete" and place.run}
    return [run for cell, run in newest.items() if cell != arm]
