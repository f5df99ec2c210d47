"""Finds the run that a command names."""

from __future__ import annotations

from pathlib import Path

from formats.manifest import FILE
from formats.series import FILE as SERIES_FILE
from lab import paths, suggested
from lab.errors import BadInput, Problem
from lab.reading.messages import did_you_mean
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
        if name and (folder / FILE).is_file():
            return folder.resolve()
    for folder in (Path(name), results / "series" / name):
        if name and (folder / SERIES_FILE).is_file():
            compared = suggested.make("compare", {"MATRIX": folder.resolve().name})
            way_on = f"give one of its runs, as {paths.shown(folder / SERIES_FILE)} names them, or {compared}"
            raise BadInput(Problem(f"'{name}' is a series of runs", way_on=way_on))
    for folder in (Path(name), results / name):
        if name and folder.is_dir():
            inside = max(folder.glob(f"*/{FILE}"), default=None)
            way_on = f"give one of the runs in it, such as {paths.shown(inside.parent)}" if inside else _NO_MANIFEST
            raise BadInput(Problem(f"{paths.shown(folder)} holds no {FILE}", way_on=way_on))
    known = [folder.parent.name for folder in results.glob("*/latest")]
    hint = did_you_mean(name, known) or "give the folder that holds manifest.json"
    raise BadInput(Problem(f"no run at '{name}'" if name else "no run is named", way_on=hint))
