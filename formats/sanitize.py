"""Text from outside, such that it steers neither a terminal nor a reader's eye.

A run may come from anybody, and with it every name, log line and message that is printed of it.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def visible(text: str) -> str:
    r"""A text in which every control, direction or line-end character is spelt, as `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if _is_shown(char) else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """The same, of a text of several lines: these stay."""
    return "\n".join(map(visible, text.split("\n")))


def format_validation_error(error: ValidationError) -> str:
    """Say the first thing that is wrong in a document, with its place; a key may be any text."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return visible(f"{where}: {first['msg']}" if where else first["msg"])


def _is_shown(char: str) -> bool:
    # Blanks of other widths are not printable to Python, but harmless.
    return char.isprintable() or unicodedata.category(char) == "Zs"
