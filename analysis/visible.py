"""Text from outside, such that it steers neither a terminal nor a reader's eye.

A run may come from anybody, and with it every name, log line and message that is printed of it.
"""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    r"""A text in which every control, direction or line-end character is spelt, as `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if _is_shown(char) else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """The same, of a text of several lines: these stay."""
    return "\n".join(map(visible, text.split("\n")))


def _is_shown(char: str) -> bool:
    # Blanks of other widths are not printable to Python, but harmless.
    return char.isprintable() or unicodedata.category(char) == "Zs"
