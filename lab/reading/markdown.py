"""A document of the lab as HTML. Markup in it stays text, but for what folds a part of a lesson away."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

_LET_PASS = re.compile(r"<details>|</details>|<summary>[^<>]*</summary>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_ANCHOR = re.compile(r"[^\w\- ]")


def html(text: str) -> Markup:
    """Return a document's HTML; headings have the ids that links in the documents name."""
    return Markup(_reader().render(text, {}))  # noqa: S704 # the reader escapes all that is not its own


def title(text: str) -> str:
    """Return a document's first heading; empty where there is none."""
    found = re.search(r"(?m)^# (.+)$", text)
    return found[1] if found else ""


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    rules = {"html_block": _foreign, "html_inline": _foreign, "heading_open": _heading}
    for kind, rule in rules.items():
        reader.add_render_rule(kind, rule)
    return reader


def _foreign(_reader: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Mapping[str, Any]) -> str:  # noqa: ANN401 # as the library has them
    lines = _COMMENT.sub("", tokens[index].content).splitlines()
    return "\n".join(line if _LET_PASS.fullmatch(line) else str(escape(line)) for line in lines)


def _heading(_reader: Any, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:  # noqa: ANN401 # as above
    words = "".join(each.content for each in tokens[index + 1].children or () if each.type in ("text", "code_inline"))
    anchor = _NO_ANCHOR.sub("", words.lower()).replace(" ", "-")
    before = env.setdefault("anchors", {})
    number = before[anchor] = before.get(anchor, -1) + 1
    return f'<{tokens[index].tag} id="{escape(anchor)}{f"-{number}" if number else ""}">'
