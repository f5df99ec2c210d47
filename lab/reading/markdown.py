"""A document of the lab as HTML. Markup in it stays text, but for what folds a part of a lesson away."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

_LET_PASS = re.compile(r"<details>|</details>|<summary>[^<>]*</summary>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_ANCHOR = re.compile(r"[^\w\- ]")


def html(text: str, link: Callable[[str], str | None] | None = None) -> Markup:
    """Give a document's HTML; headings have the ids that links in the documents name.

    Args:
        text: the document.
        link: where a link leads, or where a picture lies, instead; None where it leads nowhere. Without it all stay.
    """
    return Markup(_reader().render(text, {"link": link}))  # noqa: S704 # the reader escapes all that is not its own


def title(text: str) -> str:
    """Give a document's first heading; empty where there is none."""
    found = re.search(r"(?m)^# (.+)$", text)
    return found[1] if found else ""


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    rules = {
        "html_block": _foreign,
        "html_inline": _foreign,
        "heading_open": _heading,
        "link_open": _link,
        "image": _image,
    }
    for kind, rule in rules.items():
        reader.add_render_rule(kind, rule)
    return reader


def _foreign(_reader: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Mapping[str, Any]) -> str:  # noqa: ANN401 # as the library has them
    lines = _COMMENT.sub("", tokens[index].content).splitlines()
    return "\n".join(line if _LET_PASS.fullmatch(line) else str(escape(line)) for line in lines)


def _link(reader: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ANN401 # as above
    _lead(tokens[index], "href", env)
    return str(reader.renderToken(tokens, index, options, env))


def _image(reader: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ANN401 # as above
    _lead(tokens[index], "src", env)
    return str(reader.image(tokens, index, options, env))


def _lead(token: Token, attribute: str, env: Mapping[str, Any]) -> None:
    if env["link"] is not None:
        target = env["link"](str(token.attrs.pop(attribute)))
        if target is not None:
            token.attrs[attribute] = target


def _heading(_reader: Any, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:  # noqa: ANN401 # as above
    words = "".join(each.content for each in tokens[index + 1].children or () if each.type in ("text", "code_inline"))
    anchor = _NO_ANCHOR.sub("", words.lower()).replace(" ", "-")
    before = env.setdefault("anchors", {})
    number = before[anchor] = before.get(anchor, -1) + 1
    return f'<{tokens[index].tag} id="{escape(anchor)}{f"-{number}" if number else ""}">'
