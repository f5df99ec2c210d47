"""Turns pydantic's findings about a YAML file into sentences."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from formats.renamed_keys import new_name, old_name
from lab.errors import BadInput, Problem
from lab.reading.document import Document, Location

# How a value is written, given the name of what it is the value of.
Show = Callable[[str, Any], str]
# What is wrong at a place, and a hint.
Say = Callable[[ErrorDetails, Location], tuple[str, str | None]]

_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most"}
_TAKES = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
    "model_attributes_type": "a mapping of names to values",
}
# The same of texts, by the pattern that they have to match.
_SPELT = {
    "^/": "a path that begins with /",
    r"^[a-z0-9]+(_[a-z0-9]+)*$": "small letters, digits and _",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and _, and no digit first",
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": "a name of letters, digits, _, . and -",
}
_SHOWN_MAX = 60


def describe_error(
    error: ErrorDetails, siblings: list[str], name: str, show: Show = lambda _, value: str(value)
) -> tuple[str, str | None]:
    """Return what is wrong at a place of this name, and a hint; `siblings` are the names that are valid there."""
    location, value, context = error["loc"], error["input"], error.get("ctx", {})
    kind = error["type"]
    if kind == "extra_forbidden":
        if new := new_name(location[-1], siblings):
            return f"the key '{name}' has a new name", f"write '{new}'"
        return f"unknown key '{name}'", did_you_mean(str(location[-1]), siblings)
    if kind == "literal_error":
        return f"{name} cannot be {_shown(value, name, show)}", did_you_mean(str(value), expected(error))
    if kind == "string_pattern_mismatch":
        takes = _SPELT.get(context["pattern"], "small letters, digits and hyphens")
        return f"{name} takes {takes}, not {_shown(value, name, show)}", _spelt(context["pattern"], str(value))
    return _describe_value(error, name, show), None


def _describe_value(error: ErrorDetails, name: str, show: Show) -> str:
    kind, value = error["type"], error["input"]
    if kind == "missing":
        return f"'{name}' is missing"
    if kind in _BOUNDS:
        bound = show(name, next(iter(error["ctx"].values())))
        return f"{name} must be {_BOUNDS[kind]} {bound}, not {_shown(value, name, show)}"
    if kind in _TAKES:
        return f"{name} takes {_TAKES[kind]}, not {_shown(value, name, show)}"
    if kind in ("string_too_short", "too_short"):
        return f"{name} is empty" if not value else f"{name} is too short"
    return f"{name}: {error['msg']}"


def _spelt(pattern: str, value: str) -> str | None:
    """Return the nearest value that matches; None if none is near."""
    near = {value.lower(), f"/{value}", value.rpartition("/")[2], value.replace("-", "_"), value.replace("_", "")}
    return next((f"write '{one}'" for one in sorted(near, key=len, reverse=True) if re.search(pattern, one)), None)


def list_findings(error: ValidationError) -> list[ErrorDetails]:
    """Return what pydantic found, but for a missing key that stands there by its old name.

    A text where a list may stand, too, is only misspelt.
    """
    found = error.errors()
    misspelt = {one["loc"][:-1] for one in found if one["type"] == "string_pattern_mismatch"}
    return [
        one
        for one in found
        if (one["type"] != "missing" or not old_name(str(one["loc"][-1]), one["input"]))
        and not (one["type"] == "list_type" and one["loc"][:-1] in misspelt)
    ]


def refuse_findings(error: ValidationError, document: Document, say: Say, above: Location = ()) -> BadInput:
    """Return what pydantic found in a document, or in its part `above`, with file and line; `say` has the words."""
    problems = []
    for one in list_findings(error):
        location = locate(one)
        what, hint = say(one, location)
        problems.append(Problem(what, document.where((*above, *location)), hint))
    return BadInput(problems)


def locate(error: ErrorDetails) -> Location:
    """Return where a finding stands in the file; where a value may be of several types, pydantic names its type."""
    return tuple(part for part in error["loc"] if part != "[key]" and not str(part).startswith(("constr", "list[")))


def name_place(location: Location) -> str:
    """Return the name of a place: its way down, items from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in location)


def expected(error: ErrorDetails) -> list[str]:
    """Return the values that would have been valid."""
    text: str = error["ctx"]["expected"]
    return [word.strip("'") for word in text.replace(" or ", ", ").split(", ")]


def _shown(value: object, name: str, show: Show) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool | int):
        return show(name, value)
    text = str(value)
    return f"'{text}'" if len(text) <= _SHOWN_MAX else f"'{text[:_SHOWN_MAX]}…'"


def siblings(model: type[BaseModel], location: Location) -> list[str]:
    """Return the keys that are valid beside the one at `location` in a file of this model."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))  # an index into a list of models has none
        model = model if field is None else next(_models_in(field.annotation), model)
    return [info.alias or name for name, info in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 # what pydantic takes for a type
    """Yield the models of a type, such as `Annotated[list[Model], …] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


# A list up to here is shorter to read than to guess at.
_LIST_MAX = 8


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the one of the `valid` names that is most like `name`, if any is like it at all."""
    return next(iter(difflib.get_close_matches(name, list(valid), n=1, cutoff=0.6)), None)


def nearest_beside(file: Path, pattern: str = "*") -> str | None:
    """Return which one of its folder was meant by a file that is not there; None where no name is near."""
    try:
        near = nearest(file.name, [one.name for one in file.absolute().parent.glob(pattern)])
    except OSError:
        return None
    return f"did you mean '{near}'?" if near else None


def did_you_mean(name: str, valid: Iterable[str]) -> str | None:
    """Return which of the `valid` names was meant; where none is near and they are few, list them."""
    names = list(dict.fromkeys(valid))
    near = nearest(name, names)
    if near:
        return f"did you mean '{near}'?"
    return f"valid: {', '.join(names)}" if names and len(names) <= _LIST_MAX else None
