"""Pages: HTML with its data, styles and scripts, under a policy for nothing else.

All that a run says is escaped: by Jinja in the text, and as JSON in the data, which scripts read and never run.
"""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from formats.sanitize import visible_lines

_FOLDER = Path(__file__).parent
_ECHARTS = "vendor/echarts.min.js"

# Within a script element these could end it, begin a comment, or, in old browsers, a line.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render(
    name: str,
    data: object,
    context: Mapping[str, Any],
    filters: Mapping[str, Callable[..., str]] | None = None,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] | None = None,
) -> str:
    """Render templates/<name>.html with static/page.css and static/page.js.

    Args:
        name: of the page.
        data: what its charts are drawn from, anything that JSON can hold; None if it has no charts.
        context: what the template names.
        filters: further filters of the template.
        styles: further files of static/, by their stems.
        scripts: as styles; by default the one of the page's name.
    """
    drawing = [_ECHARTS, "static/charts.js"] if data is not None else []
    own = [f"static/{each}.js" for each in ([name] if scripts is None else scripts)]
    style = "".join(_text(f"static/{each}.css") for each in ("page", *styles))
    whole = [_text(each) for each in ("static/page.js", *drawing, *own)]
    content = json.dumps(data, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)
    template = _environment(tuple((filters or {}).items())).get_template(f"{name}.html")
    return template.render(context, policy=_policy(style, whole), styles=style, scripts=whole, data=content)


def script_hashes() -> list[str]:
    """Return the lab's own scripts as a Content-Security-Policy names them."""
    own = sorted(f"static/{each.name}" for each in (_FOLDER / "static").glob("*.js"))
    return [_hash(_text(each)) for each in (_ECHARTS, *own)]


def is_of_this_lab(head: str) -> bool:
    """Return whether a page names no scripts but those of this version of the lab, by the policy in its head."""
    found = re.search(r"script-src ([^;]*)", html.unescape(head))
    return found is not None and {*found[1].split()} <= {*script_hashes()}


@cache
def _environment(filters: tuple[tuple[str, Callable[..., str]], ...]) -> Environment:
    """Keeps what it compiled: half of the time that a page takes is its templates'."""
    return make_environment(_FOLDER / "templates", dict(filters))


def make_environment(folder: Path, filters: Mapping[str, Callable[..., str]]) -> Environment:
    """Make what renders a folder's templates: it escapes, shows what is not seen, and knows no undefined name."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if isinstance(value, str) else value,
    )
    # A file's name may be any bytes.
    environment.filters["urlencode"] = lambda path: quote(os.fsencode(path))
    environment.filters.update(filters)
    return environment


def visible(text: str) -> str:
    r"""Return a text of a run with what is not seen as `\x1b` or `\u202e`; the page's own parts as they are."""
    return text if isinstance(text, Markup) else visible_lines(text)


def _policy(styles: str, scripts: list[str]) -> str:
    """Return a Content-Security-Policy that knows the page's own scripts and styles by their hashes alone."""
    hashes = " ".join(_hash(script) for script in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src {_hash(styles)}; base-uri 'none'; form-action 'none'"


@cache
def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
