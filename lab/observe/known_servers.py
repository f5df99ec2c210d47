"""Which server a target is, and the setting of its backlog: from programs.yaml, or a role that the user declares."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from formats.manifest import Program
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import document
from lab.roles import declared_roles

_FILE = Path(__file__).with_name("programs.yaml")


class Known(BaseModel):
    """One server of programs.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    words: Annotated[str, Field(min_length=1)]
    backlog: int | None
    setting: str | None
    how: str
    source: Annotated[str, Field(pattern=r"^https://")]

    @property
    def program(self) -> Program:
        """Return what a manifest says of it."""
        return Program(name=self.name, backlog=self.backlog, setting=self.setting, how=self.how, source=self.source)


@cache
def known_programs() -> tuple[Known, ...]:
    """Return every server of programs.yaml, in the order in which they are tried."""
    content = document.read(_FILE).content
    return tuple(TypeAdapter(list[Known]).validate_python(content))


def program_in(words: str) -> Program | None:
    """Find the program that an image's name and command lines speak of."""
    return next((each.program for each in known_programs() if re.search(each.words, words, re.IGNORECASE)), None)


def program_of_role(file: Path) -> Program:
    """Read the program that a role.yaml declares.

    Raises:
        BadInput: the file cannot be read, is not valid, or has no limit `backlog`.
    """
    try:
        role = declared_roles.load_role(file)
    except OSError as error:
        raise BadInput(Problem(str(error.strerror), str(file), "give a role.yaml")) from None
    knob = role.limits.backlog
    if knob is None:
        what = "the role has no limit 'backlog', so nothing in it is the setting of an accept queue"
        raise BadInput(Problem(what, str(file), "name the knob: limits: {backlog: …}"))
    default = role.knobs[knob].default
    return Program(
        name=role.display_name,
        backlog=default if isinstance(default, int) else None,
        setting=role.knob(knob),
        how=role.knobs[knob].doc,
        source=paths.shown(file),
    )
