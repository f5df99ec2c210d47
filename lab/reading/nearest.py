"""The nearest valid name, for messages about a name that is not valid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# A list up to here is shorter to read than to guess at.
_LIST_MAX = 8


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Give the one of the `valid` names that is most like `name`, if any is like it at all."""
    return next(iter(difflib.get_close_matches(name, list(valid), n=1, cutoff=0.6)), None)


def did_you_mean(name: str, valid: Iterable[str]) -> str | None:
    """Say which of the `valid` names was meant; where none is near and they are few, list them."""
    names = list(dict.fromkeys(valid))
    near = nearest(name, names)
    if near:
        return f"did you mean '{near}'?"
    return f"valid: {', '.join(names)}" if names and len(names) <= _LIST_MAX else None
