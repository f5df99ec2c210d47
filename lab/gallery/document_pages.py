"""The lab's documents as pages: a link between documents leads to the other's page, and one elsewhere leads nowhere."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markupsafe import Markup

from lab import paths
from lab.reading import markdown

FOLDER = "pages"
_WHERE = ("*.md", "docs/**/*.md", "scenarios/**/*.md", "examples/**/*.md")
# What a document may show or lead to, and a browser shows; nothing large.
_BESIDE = {".png", ".svg", ".yaml", ".yml", ".js", ".json", ".jsonl", ".conf"}
_BESIDE_BYTES_MAX = 2_000_000


class Documents:
    """All documents; `beside` collects the files that they led to while they were made."""

    def __init__(self, root: Path = paths.ROOT) -> None:
        self._root = root
        self.beside: set[str] = set()

    @cached_property
    def names(self) -> list[str]:
        """Their paths below the repository."""
        found = {file for pattern in _WHERE for file in self._root.glob(pattern) if file.is_file()}
        return sorted(file.relative_to(self._root).as_posix() for file in found if not _hidden(file, self._root))

    def page(self, name: str) -> str:
        """Give where a document's page lies below the gallery."""
        return f"{FOLDER}/{name.removesuffix('.md')}.html"

    def read(self, name: str) -> str:
        """Give a document's text."""
        return (self._root / name).read_text()

    def html(self, name: str) -> Markup:
        """Give a document's HTML, its links as its page needs them."""
        return markdown.html(self.read(name), lambda target: self._led(name, target))

    def files(self) -> Iterator[tuple[str, Path]]:
        """Give the files that the documents made so far lead to: where each lies below the gallery, and where it is."""
        for name in sorted(self.beside):
            yield f"{FOLDER}/{name}", self._root / name

    def _led(self, name: str, target: str) -> str | None:
        """Give a link of a document as its page needs it."""
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or not parts.path:
            return target
        found = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if found in self._known:
            return os.path.relpath(self.page(found), posixpath.dirname(self.page(name))) + fragment
        file = self._root / found
        if found.startswith("../") or file.suffix not in _BESIDE or not file.is_file() or file.is_symlink():
            return None
        if file.stat().st_size > _BESIDE_BYTES_MAX:
            return None
        self.beside.add(found)
        return os.path.relpath(f"{FOLDER}/{found}", posixpath.dirname(self.page(name))) + fragment

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)


def _hidden(file: Path, root: Path) -> bool:
    return file.is_symlink() or any(part.startswith(".") for part in file.relative_to(root).parts)
