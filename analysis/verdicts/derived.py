"""Reads a file of derived/ through the model that writes it, if it is there, whole, and of this version."""

import json
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError

from analysis import command_hints
from analysis.output import FROM_ANYBODY, DerivedFile
from formats.safe_files import read_within
from formats.sanitize import format_validation_error, visible

_Model = TypeVar("_Model", bound=DerivedFile)


class DerivedError(Exception):
    """There is no such file, or the lab did not write it; one line for the user, with a hint; `what`: without it."""

    def __init__(self, what: str, run: Path | None = None) -> None:
        again = None if run is None else command_hints.make_command("analyse", {"RUN": str(run)})
        super().__init__(what if again is None else f"{what}; derive it again: {again}")
        self.what = what


def read(folder: Path, model: type[_Model]) -> _Model:
    """Return a file of a run's derived/, by the model that it is written from.

    Raises:
        DerivedError: the file is missing, cannot be read, or is none that this version writes.
    """
    path = folder / model.file
    try:
        content = read_within(folder, model.file)
    except FileNotFoundError:
        raise DerivedError(f"{folder}: the run has no {model.file.name}", folder) from None
    except OSError as error:
        raise DerivedError(f"{error.filename or path}: {error.strerror}", folder) from None
    try:
        return model.model_validate_json(content, context=FROM_ANYBODY)
    except ValidationError as error:
        raise DerivedError(f"{path}: {_wrong(content, model, error)}", folder) from None


def _wrong(content: bytes, model: type[BaseModel], error: ValidationError) -> str:
    """Return what keeps a file from being one of a model: no JSON, another version, or a field that is wrong."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return "this is not JSON"
    (contract,) = get_args(model.model_fields["contract"].annotation)
    found = read.get("schema") if isinstance(read, dict) else None
    if found != contract:
        return f"its schema is {_shown(found)}, and this version reads {contract}"
    return format_validation_error(error)


def _shown(found: object) -> str:
    """Return what a file holds, as one line."""
    return visible(found if isinstance(found, str) else repr(found))
