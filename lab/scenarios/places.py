"""Where a scenario lies: among the lab's own, by its name, or in any folder, by its path."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from analysis import command_hints
from analysis.command_hints import quote
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading.validation_messages import did_you_mean

FILE = "scenario.yaml"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NAMED_IN = "the name of a scenario's folder can have only small letters, digits and hyphens"
# What the lab keeps in results/ besides runs.
_TAKEN = ("series",)


@dataclass(frozen=True)
class Place:
    """A scenario's folder.

    Attributes:
        slug: the folder's name: results lie under it.
        own: whether it is one of the lab's own scenarios, which go by their names alone.
    """

    slug: str
    home: Path
    own: bool = True

    @property
    def file(self) -> Path:
        """Return the scenario itself."""
        return self.home / FILE

    @property
    def lesson(self) -> Path:
        """Its lesson."""
        return self.home / "README.md"

    @property
    def named(self) -> str:
        """Return what commands call it: its name, or the folder's path."""
        return self.slug if self.own else str(self.home)

    @property
    def shown(self) -> str:
        """Return its name, or the folder's path as the user would type it here."""
        path = paths.shown(self.home)
        return self.slug if self.own else path if Path(path).is_absolute() or path == "." else f"./{path}"


def is_path(name: str) -> bool:
    """Distinguish a folder's path from a name: it has a slash, or is `.` or `..`."""
    return "/" in name or name in (".", "..")


def is_home(folder: Path) -> bool:
    """Return whether a folder holds a scenario."""
    return _is_file(folder / FILE)


def _is_file(path: Path) -> bool:
    """Return whether a path leads to a file; one that no system takes does not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find(name: str) -> Place:
    """Find a scenario by its name below the folder of scenarios, or by the path of its folder, wherever that is.

    Raises:
        BadInput: there is none, or its folder cannot be a scenario's.
    """
    if is_path(name):
        return _by_path(name)
    if not SLUG.fullmatch(name) or not is_home(paths.SCENARIOS / name):
        raise BadInput(_unknown(name))
    return Place(name, paths.SCENARIOS / name)


def _by_path(name: str) -> Place:
    home = paths.real(Path(name))
    if home.name == FILE and not home.is_dir():
        home = home.parent
        name = name.removesuffix(f"/{FILE}") or "/"
    if _is_file(home):
        raise BadInput(Problem("is a file, and no folder of a scenario", paths.shown(home), _of_file(home)))
    if not is_home(home):
        raise BadInput(Problem(f"there is no {FILE} in {paths.shown(home)}", hint=_instead(home, name)))
    if home.parent == paths.SCENARIOS.resolve():
        return Place(home.name, paths.SCENARIOS / home.name)
    refuse_name(home)
    return Place(home.name, home, own=False)


# What a scenario says of a file of the user's, by its ending.
_SAID_OF = {
    ".yml": "compose: ./{}", ".yaml": "compose: ./{}", ".conf": "nginx: {{config: ./{}}}",
    ".cfg": "haproxy: {{config: ./{}}}", ".js": "load: {{script: ./{}}}", ".ts": "load: {{script: ./{}}}",
}  # fmt: skip


def _of_file(file: Path) -> str:
    """Return the hint for a file in place of a folder: the line by which a scenario takes it."""
    line = _SAID_OF.get(file.suffix.lower())
    if is_home(file.parent):
        where = paths.shown(file.parent)
        return f"give the folder, {where if where.startswith(('/', '.')) else f'./{where}'}: it has a {FILE}"
    if line is None:
        return "give the folder that has the scenario.yaml; 'connlab inspect' reads captures, dumps and logs"
    return f"a {FILE} beside it takes it by the line '{line.format(file.name)}'; 'connlab new ./mine' writes one"


def _instead(home: Path, name: str) -> str:
    """Return the hint for a folder without a scenario: the lab's own of that name, or how to write one."""
    if is_home(paths.SCENARIOS / home.name):
        return f"the lab has one of this name: {command_hints.make_command_here('run', {'SCENARIO': home.name})}"
    written = f"connlab new {quote(name)}"
    make = command_hints.make_command_here("new", {"SCENARIO": command_hints.name_typed(name)})
    return f"'{written}' writes one" if paths.IS_INSTALLED else f"'{written}' ({make}) writes one"


def refuse_name(home: Path) -> None:
    """Refuse a folder elsewhere whose name cannot stand for its results.

    Raises:
        BadInput: it has other characters, or the lab itself uses it.
    """
    if not SLUG.fullmatch(home.name):
        raise BadInput(Problem(_NAMED_IN, paths.shown(home), "rename it"))
    if home.name in _TAKEN or is_home(paths.SCENARIOS / home.name):
        what = f"results/{home.name} is for the lab's own '{home.name}'"
        raise BadInput(Problem(what, paths.shown(home), "give the folder another name"))


def slugs() -> list[str]:
    """Return the names of all scenarios of the lab's own."""
    return sorted(name for name in _folders() if SLUG.fullmatch(name))


def misnamed() -> list[Problem]:
    """Return a problem for each folder that holds a scenario and cannot be one's name."""
    return [
        Problem(_NAMED_IN, paths.shown(paths.SCENARIOS / name), "rename it")
        for name in sorted(_folders())
        if not SLUG.fullmatch(name)
    ]


def _folders() -> list[str]:
    return [file.parent.name for file in paths.SCENARIOS.glob(f"*/{FILE}")]


def _unknown(slug: str) -> Problem:
    """Return why no scenario has this name, with the nearest name that one has."""
    known = slugs()
    if not slug:
        return Problem("the command names no scenario", hint="'connlab list' (make list) shows them")
    if of_experiment := _of_experiment(slug, known):
        what = f"'{slug}' is the name of an experiment, not of a scenario"
        return Problem(what, hint=f"its scenarios: {', '.join(of_experiment)}")
    if is_home(Path(slug)):
        return Problem(f"the lab has no scenario '{slug}' of its own", hint=f"for the folder, write ./{slug}")
    if not SLUG.fullmatch(slug):
        what = f"'{slug}' cannot be a scenario's name: these have only small letters, digits and hyphens"
        return Problem(what, hint=did_you_mean(slug, known))
    if _is_file(paths.SCENARIOS / "matrices" / f"{slug}.yaml"):
        return Problem(
            f"'{slug}' is a matrix, not a scenario", hint=command_hints.make_command_here("matrix", {"MATRIX": slug})
        )
    hint = did_you_mean(slug, known) or "'connlab list' (make list) shows them"
    return Problem(f"unknown scenario '{slug}'", hint=hint)


def _of_experiment(name: str, known: Iterable[str]) -> list[str]:
    """Return the scenarios that reproduce an experiment; its id may be written in small letters."""
    texts = ((slug, (paths.SCENARIOS / slug / FILE).read_text(errors="replace")) for slug in known)
    line = re.compile(rf"^experiment: *{re.escape(name)} *$", re.MULTILINE | re.IGNORECASE)
    return [slug for slug, text in texts if line.search(text)]
