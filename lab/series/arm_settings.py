"""Settings of arms and of matrices' levels: knobs by their full names, and `path`, read from YAML with their lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import BadInput, Problem
from lab.reading.document import Document, Location
from lab.scenario.overrides import Override
from lab.scenario.overrides import settings as read_knobs

PATH = "path"


@dataclass(frozen=True)
class Change:
    """What a level of an axis changes: knobs, the path, or the scenario."""

    overrides: tuple[Override, ...] = ()
    path: tuple[list[str], str] | None = None
    scenario: str | None = None

    @property
    def touched(self) -> dict[str, str]:
        """What it changes, and where that stands."""
        places = {one.knob: one.where for one in self.overrides}
        return places | ({PATH: self.path[1]} if self.path else {})

    def under(self, overrides: Iterable[Override]) -> Change:
        """Give the change with these over it: what both set, they set."""
        over = tuple(overrides)
        knobs = {one.knob for one in over}
        return replace(self, overrides=(*(one for one in self.overrides if one.knob not in knobs), *over))


def places(values: Mapping[str, Any], document: Document, location: Location) -> dict[str, str]:
    """Give the place to cite for each of the settings in the mapping at `location`."""
    return {name: document.where((*location, name)) for name in values}


def read(values: Mapping[str, Any], where: Mapping[str, str]) -> Change:
    """Read settings.

    Args:
        values: knobs and their values, and maybe `path`.
        where: the place to cite for each.

    Raises:
        BadInput: an unknown knob, or a list where a value is wanted.
    """
    knobs = {name: value for name, value in values.items() if name != PATH}
    for name, value in knobs.items():
        if not isinstance(value, bool | int | float | str):
            raise BadInput(Problem(f"{name} takes one value here", where[name]))
    path = values.get(PATH)
    if path is not None and not isinstance(path, list):
        raise BadInput(Problem("path takes a list of roles, such as [k6, backend]", where[PATH]))
    return Change(tuple(read_knobs(knobs, where)), (path, where[PATH]) if path is not None else None)
