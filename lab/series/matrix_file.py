"""The model of `scenarios/matrices/<name>.yaml`, and how such a file is found and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, WithJsonSchema

from formats.predictions import NAME_PATTERN, Claim, Text
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import document as documents
from lab.reading.document import Document
from lab.reading.messages import did_you_mean, list_findings, siblings
from lab.scenarios import resolved
from lab.scenarios.model import Series as Rules
from lab.scenarios.model import Settings

_SUFFIX = ".yaml"
_VALUE = {"type": ["integer", "boolean", "string", "number"]}


class Matrix(Rules):
    """A cross product of knobs over one scenario or several."""

    model_config = ConfigDict(title="connlab matrix", validate_by_name=True)

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    title: Annotated[Text, Field(description="What it shows, in a few words")]
    experiment: Annotated[Text, Field(description="Which published experiment this reproduces, such as B2")]
    question: Annotated[Text, Field(description="What the matrix answers")]
    scenarios: Annotated[
        list[Text],
        Field(
            min_length=1,
            description="What each cell runs, by name or, with a slash, by its folder from here; several are an axis",
        ),
    ]
    knobs: Annotated[Settings, Field(description="What is the same in all cells, and differs from the scenario")] = (
        Field(default_factory=dict)
    )
    axes: Annotated[
        dict[str, Any],
        Field(min_length=1, description="What varies: a knob and its values, or a name and its named variants"),
        WithJsonSchema(
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "anyOf": [
                        {"type": "array", "minItems": 1, "items": _VALUE},
                        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
                    ]
                },
            }
        ),
    ]
    baseline: Annotated[
        dict[str, bool | int | float | str],
        Field(description="The level on each axis of the cell that others are compared with; the first of each"),
    ] = Field(default_factory=dict)
    figures: Annotated[
        list[Text], Field(description="What it is about: figures of its cells that a comparison tells first")
    ] = Field(default_factory=list)
    predictions: Annotated[
        Annotated[list[Claim], Field(min_length=1)] | None,
        Field(description="What is predicted of each run; the scenario's own predictions"),
    ] = None


def names(folder: Path | None = None) -> list[str]:
    """Give the names of all matrices."""
    return sorted(file.stem for file in ((folder or paths.SCENARIOS) / "matrices").glob("*.yaml"))


def read(name: str, folder: Path) -> tuple[Matrix, Document]:
    """Read a matrix by its name in the folder of scenarios, or by its file, wherever that lies.

    Raises:
        BadInput: there is none of that name, or its file is wrong.
    """
    file = _file(name, folder)
    document = documents.read(file)
    if not re.fullmatch(NAME_PATTERN, file.stem):
        raise BadInput(Problem("a matrix's name holds small letters, digits and hyphens", paths.shown(file)))
    if not isinstance(document.content, Mapping):
        raise BadInput(Problem("a matrix is a mapping of keys to values", document.where(())))
    try:
        return Matrix.model_validate(document.content), document
    except ValidationError as error:
        raise BadInput([_problem(finding, document) for finding in list_findings(error)]) from None


def name_of(name: str) -> str:
    """Give a matrix's name, if it is named by its file."""
    return Path(name).stem if name.endswith(_SUFFIX) else name


def _file(name: str, folder: Path) -> Path:
    if name.endswith(_SUFFIX):
        if not Path(name).is_file():
            raise BadInput(Problem(f"there is no file '{name}'", way_on="'connlab matrix' lists the matrices"))
        return Path(name).resolve()
    known = names(folder)
    if name not in known:
        what = f"unknown matrix '{name}'" if name else "no matrix is named"
        hint = did_you_mean(name, known) or "'connlab matrix' lists them"
        raise BadInput(Problem(what, way_on=hint))
    return folder / "matrices" / f"{name}{_SUFFIX}"


def _problem(finding: Any, document: Document) -> Problem:  # noqa: ANN401 # a TypedDict of pydantic's
    location = tuple(part for part in finding["loc"] if part != "[key]")
    what, way_on = resolved.knob_sentence(finding, siblings(Matrix, location))
    return Problem(what, document.where(location), way_on)
