"""Writes a scenario to begin with: the files of `template/`, with the scenario's own names in them."""

import os
from pathlib import Path

from analysis import command_hints
from lab import paths
from lab.errors import BadInput, Problem
from lab.scenarios import places

_TEMPLATE = Path(__file__).parent / "template"
_SCHEMA = paths.SCHEMAS / "scenario.schema.json"


def write_scenario(name: str) -> tuple[list[Path], str]:
    """Write a scenario: in a checkout a name is one of the lab's own; else it is a folder where the user stands.

    Returns:
        The files, and the command that runs the scenario.

    Raises:
        BadInput: no scenario can have this name, or one of the files is there.
    """
    elsewhere = paths.IS_INSTALLED or places.is_path(name)
    home = paths.real(Path(name)) if elsewhere else paths.SCENARIOS / name
    if home.parent == paths.SCENARIOS:
        if not places.SLUG.fullmatch(home.name):
            what = f"'{home.name}' cannot be a scenario's name: these have only small letters, digits and hyphens"
            raise BadInput(Problem(what, hint="such as accept-queue-small; a folder is written with a slash: ./shop"))
    elif not (home / places.FILE).exists():
        places.refuse_name(home)
    files = [
        home / file.name for file in sorted(_TEMPLATE.iterdir(), key=lambda file: (file.name != places.FILE, file.name))
    ]
    for file in files:
        if file.exists():
            raise BadInput(Problem(f"{paths.shown(file)} is there already", hint="choose another name"))
    called = home.name if home.parent == paths.SCENARIOS else _as_path(home)
    words = {
        "schema": str(_SCHEMA) if paths.IS_INSTALLED else os.path.relpath(_SCHEMA, home),
        "run": command_hints.make_command("run", {"SCENARIO": called}),
        "show": command_hints.make_command("show", {"SCENARIO": called}),
        "name": home.name,
        "title": home.name.replace("-", " ").capitalize(),
    }
    home.mkdir(parents=True, exist_ok=True)
    for file in files:
        text = (_TEMPLATE / file.name).read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        file.write_text(text)
    return files, command_hints.make_command_here("run", {"SCENARIO": called})


def _as_path(home: Path) -> str:
    """Return a folder's path so that it is taken for one: with a slash, and as commands name a folder."""
    name = command_hints.name_folder(home)
    return name if name.startswith("/") else f"./{name}"
