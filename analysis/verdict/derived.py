"""Reads a file of derived/ through the model that writes it, if it is there, whole, and of this version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar, get_args

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

_Model = TypeVar("_Model", bound=BaseModel)


class DerivedError(Exception):
    """There is no such file, or the lab did not write it; one line for the user, with the way on.

    Attributes:
        what: that line without the way on.
    """

    def __init__(self, what: str, run: Path | None = None) -> None:
        super().__init__(what if run is None else f"{what}; derive it again: make analyse RUN={run}")
        self.what = what


def read(folder: Path, file: Path, model: type[_Model]) -> _Model:
    """Give what a file of a run's folder holds.

    Args:
        folder: the run's.
        file: its place in the folder.
        model: what the file is written from; its `contract` is the one version that this program reads.

    Raises:
        DerivedError: the file is missing, cannot be read, or is none that this version writes.
    """
    path = folder / file
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DerivedError(f"{folder}: the run has no {file.name}", folder) from None
    except OSError as error:
        raise DerivedError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DerivedError(f"{path}: this is no JSON", folder) from None
    (contract,) = get_args(model.model_fields["contract"].annotation)
    found = content.get("schema") if isinstance(content, dict) else None
    if found != contract:
        raise DerivedError(f"{path}: its schema is {_printable(found)}, and this version reads {contract}", folder)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DerivedError(f"{path}: {_printable(where)}: {first['msg']}", folder) from None


def _printable(found: object) -> str:
    """What a file holds, without the control characters that it may have for a terminal."""
    return found if isinstance(found, str) and found.isprintable() else repr(found)
