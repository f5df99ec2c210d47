"""Reads a file of a run as JSON, if it is there, whole, and of the version that this program reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class DerivedError(Exception):
    """There is no such file, or the lab did not write it; one line for the user, with the way on."""


def read(folder: Path, file: Path, contract: str) -> dict[str, Any]:
    """Give what a file of a run's folder holds; raise DerivedError.

    Args:
        folder: the run's.
        file: its place in the folder.
        contract: the `schema` that it must have.
    """
    path, again = folder / file, f"derive it again: make analyse RUN={folder}"
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DerivedError(f"{folder}: the run has no {file.name}; {again}") from None
    except OSError as error:
        raise DerivedError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise DerivedError(f"{path}: this is no JSON; {again}") from None
    found = content.get("schema") if isinstance(content, dict) else None
    if found != contract:
        raise DerivedError(f"{path}: its schema is {found}, and this version reads {contract}; {again}")
    return dict(content)
