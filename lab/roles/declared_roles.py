"""Reads the declarations of the lab's own roles, each `<role>/role.yaml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from formats.role import FILE, KINDS, KNOB_TYPES, Role
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import document
from lab.reading.document import Document, Location
from lab.reading.validation_messages import describe_error, list_findings, siblings


def load_role(file: Path) -> Role:
    """Read a role.yaml.

    Raises:
        BadInput: something in it is not valid; all that was found is listed, with file and line.
    """
    parsed = document.read(file)
    try:
        role = Role.model_validate(parsed.content)
    except ValidationError as error:
        raise BadInput([_problem(finding, parsed) for finding in list_findings(error)]) from None
    return role.model_copy(update={"group": role.group or file.parent.name})


def _problem(finding: Any, parsed: Document) -> Problem:  # noqa: ANN401 # a TypedDict of pydantic's
    location: Location = tuple(part for part in finding["loc"] if part != "[key]")
    model: type[BaseModel] = Role
    below = location
    # Below a knob, pydantic names its type, which is not a key of the file.
    if location[:1] == ("knobs",) and location[2:3] and location[2] in KNOB_TYPES:
        model, below = KNOB_TYPES[str(location[2])], location[3:]
        location = (*location[:2], *below)
    name = ".".join(map(str, location)) or "the declaration"
    what, hint = describe_error(finding, siblings(model, below), name)
    return Problem(what, parsed.where(location), hint)


def load_roles(folder: Path = paths.ROOT) -> Mapping[str, Role]:
    """Read the role.yaml of every role: each by its folder's name, in the order of a path.

    Raises:
        BadInput: one of them is not valid.
    """
    roles = {file.parent.name: load_role(file) for file in sorted(folder.glob(f"*/{FILE}"))}
    return dict(sorted(roles.items(), key=lambda item: KINDS.index(item[1].kind)))


ROLES: Mapping[str, Role] = load_roles()
