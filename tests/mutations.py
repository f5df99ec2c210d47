"""Documents as somebody in a hurry, or with ill will, leaves them: a good one with a few changes."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

# What stands where something else belongs: JSON, and the numbers that Python writes beyond it.
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(
        [0, -1, 2**31, 2**63, -(2**63) - 1, 10**18, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan")]
    )
    | st.sampled_from(
        ["", " ", "0", "1ms", "-5s", "9" * 30 + "s", "1e9", "/", "..", "a b", "\x1b[31m", "${x}", "é\u202e", "x" * 300]
    )
    | st.text(max_size=20)
)
_EMPTY: st.SearchStrategy[Any] = st.builds(list) | st.builds(dict)
_VALUES = _EMPTY | st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where something stands in a document, but for the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, below in inner for place in [(*at, key), *_places(below, (*at, key))]]


@st.composite
def changed(draw: st.DrawFn, documents: list[Any]) -> Any:  # noqa: ANN401 # JSON
    """One of some documents with up to three changes: a value replaced, taken out or moved, or an unknown key."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(0, 3))):
        places = _places(document)
        if not places:
            break
        *path, key = draw(st.sampled_from(places))
        parent = document
        for part in path:
            parent = parent[part]
        match draw(st.sampled_from(["replace", "take out", "another's", "new key"])):
            case "replace":
                parent[key] = draw(_VALUES)
            case "take out":
                del parent[key]
            case "another's":
                other = document
                for part in draw(st.sampled_from(places)):
                    other = other[part]
                parent[key] = copy.deepcopy(other)
            case _:
                if isinstance(parent, dict):
                    parent[draw(st.text(max_size=12))] = draw(_VALUES)
                else:
                    parent.append(draw(_VALUES))
    return document


def as_json(document: Any) -> bytes:  # noqa: ANN401 # JSON
    """A document as a file; every such file is YAML too."""
    return json.dumps(document).encode()


@st.composite
def spoiled(draw: st.DrawFn, texts: list[bytes]) -> bytes:
    """One of some files with a few pieces overwritten, taken out or put in."""
    content = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 12))
        content = content[:at] + draw(st.binary(max_size=12)) + content[at + length :]
    return content


def files(documents: list[Any], texts: list[bytes]) -> st.SearchStrategy[bytes]:
    """Files made from documents by changing these, and from texts by changing their bytes."""
    return changed(documents).map(as_json) | spoiled(texts)
