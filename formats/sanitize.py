"""Text from outside, such that it steers neither a terminal nor a reader's eye.

A run may come from anybody, and with it every name, log line and message that is printed of it.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from formats.renamed_keys import old_name

if TYPE_CHECKING:
    from pydantic import ValidationError


def visible(text: str) -> str:
    r"""Return a text in which every control, direction or line-end character is spelt, as `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if _is_shown(char) else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """Return such a text of several lines; its line ends stay."""
    return "\n".join(map(visible, text.split("\n")))


def format_validation_error(error: ValidationError) -> str:
    """Return the first thing that is wrong in a document, with its place; a key may be any text."""
    first = error.errors(include_url=False)[0]
    where, what = ".".join(map(str, first["loc"])), first["msg"]
    if first["type"] == "missing" and (old := old_name(str(first["loc"][-1]), first["input"])):
        what = f"an earlier version wrote this as '{old}'"
    return visible(f"{where}: {what}" if where else what)


def _is_shown(char: str) -> bool:
    # Blanks of other widths are not printable to Python, but harmless.
    return char.isprintable() or unicodedata.category(char) == "Zs"
