"""Keys that files had by another name before: a reader refuses the old one by a message that has the new one."""

from collections.abc import Collection, Mapping
from typing import Any

# By the old name; where a file had it with two meanings, the one that is a key at that place is meant.
_NEW_NAMES: Mapping[str, tuple[str, ...]] = {
    "borne_out_by": ("supported_by",),
    "but": ("caveat",),
    "called": ("display_name", "figure_prefix"),
    "limit_shown": ("limit_label",),
    "needs": ("depends_on",),
    "says": ("description", "directive"),
    "shown": ("label",),
    "twin": ("control",),
    "without": ("ignore",),
}


def new_name(old: object, valid: Collection[str]) -> str | None:
    """Return the name that a key has now, if it had another one before.

    Args:
        old: the key that stands in the file.
        valid: the keys that can stand there.
    """
    return next((new for new in _NEW_NAMES.get(str(old), ()) if new in valid), None)


def old_name(missing: str, present: Any) -> str | None:  # noqa: ANN401 # what stands in the file
    """Return the old name under which a key that is missing stands in a mapping."""
    keys = present if isinstance(present, Mapping) else ()
    return next((old for old, new in _NEW_NAMES.items() if missing in new and old in keys), None)
