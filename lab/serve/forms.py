"""What a form asks for, as a command: only words that the lab knows become arguments, each in its own."""

from __future__ import annotations

from collections.abc import Mapping

from lab.errors import BadInput, Problem
from lab.scenarios import places
from lab.teach.drill.evidence import MORE
from lab.teach.drill.faults import CAUSES, LEVELS, PLACES

_SEED_MAX = 1_000_000


def command(form: Mapping[str, str]) -> list[str]:
    """Give the arguments of `connlab` for a form.

    Raises:
        BadInput: it names something that the lab does not have.
    """
    asked = {"run": _run, "exercise": _exercise, "drill": _drill}.get(form.get("command", ""))
    if asked is None:
        raise BadInput(Problem("the form names no command", way_on="go back, and load the page again"))
    return [*asked(form), *(f"--set={one}" for one in form.get("sets", "").split())]


def seed_and_level(seed: str, level: str) -> tuple[int, int]:
    """Give a drill's seed and level.

    Raises:
        BadInput: they are not numbers of a drill.
    """
    if not (seed.isascii() and seed.isdecimal() and int(seed[:9]) <= _SEED_MAX and len(seed) < 9):  # noqa: PLR2004 # digits
        raise BadInput(Problem("a seed is a whole number", way_on=f"0 to {_SEED_MAX:,}"))
    if level not in map(str, LEVELS):
        raise BadInput(Problem("there is no such level", way_on="1, 2 or 3"))
    return int(seed), int(level)


def _run(form: Mapping[str, str]) -> list[str]:
    return ["run", _slug(form.get("scenario", ""))]


def _exercise(form: Mapping[str, str]) -> list[str]:
    slug, _, number = form.get("exercise", "").partition("/")
    if not (number.isascii() and number.isdecimal()):
        raise BadInput(Problem("an exercise has a number", way_on="such as accept-queue-overflow/1"))
    return ["exercise", f"{_slug(slug)}/{number}"]


def _drill(form: Mapping[str, str]) -> list[str]:
    seed, level = seed_and_level(form.get("seed", ""), form.get("level", ""))
    words = ["drill", f"--seed={seed}", f"--level={level}"]
    for name, known in (("more", MORE), ("cause", CAUSES), ("place", PLACES)):
        given = form.get(name)
        if given and given not in known:
            raise BadInput(Problem(f"there is no {name} of this name", way_on=", ".join(known)))
        words += [f"--{name}={given}"] if given else []
    return words


def _slug(name: str) -> str:
    if name not in places.slugs():
        raise BadInput(Problem("there is no scenario of this name", way_on="'connlab list' shows them"))
    return name
