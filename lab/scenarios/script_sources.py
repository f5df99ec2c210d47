"""What a k6 script names before it runs: modules, data and .proto files, read from its text."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urljoin

from analysis.evidence.k6_files import figure_name
from lab import paths

_IMPORT = re.compile(r"""(?:\bfrom|\bimport|\brequire)\s*\(?\s*(['"])(?P<named>[^'"\n]+)\1""")
_OPEN = re.compile(r"""(?<![.\w])open\s*\(\s*(['"`])(?P<named>[^'"`$\n]+)\1""")
# grpc.Client's load([folders], file, …) and loadProtoset(file).
_PROTO = re.compile(r"""\.(?:load|loadProtoset)\s*\(\s*(?:\[(?P<folders>[^\]]*)\]|null)?(?P<files>[^()]*)\)""")
_TEXT = re.compile(r"""(['"`])(?P<named>[^'"`$\n]+)\1""")
# A key of an object: as a word, as text, and one that is worked out.
_WORD = re.compile(r"\w+(?=\s*[:(,}])")
_KEY = re.compile(r"""(['"`])(?P<named>[^'"`$\n]+)\1\s*:""")
_COMPUTED_KEY = re.compile(r"\]\s*:")
_CHECK = re.compile(r"(?<![.\w])check\s*\(")
_COMMENT = re.compile(r"\s*(?://|\*|/\*)")
_BYTES_MAX = 8 << 20


@dataclass(frozen=True)
class Source:
    """A module: the file that has its text, and its address if it is a remote one."""

    file: Path
    url: str | None = None


@dataclass(frozen=True)
class Named:
    """What a module names.

    Attributes:
        text: as it stands there; the whole address of a remote module.
        path: the file on this machine, links not followed; None for a remote module and for one of k6's own.
        module: whether it is imported, and not read as data.
    """

    source: Source
    line: int
    text: str
    path: Path | None
    module: bool

    @property
    def where(self) -> str:
        """Return the file and the line."""
        return f"{paths.shown(self.source.file)}:{self.line}"

    @property
    def remote(self) -> bool:
        """Return whether it is a module from elsewhere."""
        return self.module and self.text.startswith("https://")


@dataclass(frozen=True)
class Modules:
    """Where remote modules have their text: `load.modules`, and the folder of those that the lab fetched."""

    mapped: Mapping[str, Path]
    fetched: Path

    def file(self, url: str) -> Path | None:
        """Return the file that stands for a remote module by `load.modules`; None where none does."""
        if url in self.mapped:
            return self.mapped[url]
        prefixes = [one for one in self.mapped if one.endswith("/") and url.startswith(one)]
        longest = max(prefixes, key=len, default=None)
        return None if longest is None else self.mapped[longest] / url.removeprefix(longest)

    def kept(self, url: str) -> Path:
        """Return where the lab keeps a module that it fetched."""
        return Path(os.path.normpath(f"{self.fetched}/{url.removeprefix('https://').partition('?')[0]}"))

    def text_of(self, url: str) -> Path | None:
        """Return the file with a remote module's text, if there is one by now."""
        file = self.file(url) or self.kept(url)
        return file if file.is_file() else None


def read_named(script: Path, text_of: Callable[[str], Path | None]) -> Iterator[Named]:
    """Yield all that a script and the modules that it reaches name."""
    sources = [Source(script)]
    for source in sources:
        for one in _named_by(source, script):
            yield one
            if not one.module:
                continue
            if one.remote:
                file = text_of(one.text)
                reached = Source(file, one.text) if file is not None else None
            else:
                reached = Source(one.path) if one.path is not None else None
            if reached is not None and reached not in sources and reached.file.is_file():
                sources.append(reached)


def misnamed_check(files: Iterable[Path], name: str) -> str | None:
    """Return the check in a script's modules that a figure's `name` almost names.

    None where a module has this very name, where none is like it, and where the script works names out.
    """
    texts = [file.read_text(errors="replace") for file in files]
    written = {figure_name(found[0]) for text in texts for found in _WORD.finditer(text)}
    written |= {figure_name(found["named"]) for text in texts for found in _TEXT.finditer(text)}
    keys = {figure_name(found["named"]) for text in texts for found in _KEY.finditer(text)}
    if name in written or any(map(_computes_checks, texts)):
        return None
    return next(iter(get_close_matches(name, sorted(keys), n=1, cutoff=0.7)), None)


def _computes_checks(text: str) -> bool:
    """Return whether a module may give a check a name that does not stand in its text."""
    return bool(_COMPUTED_KEY.search(text)) or any("{" not in _call(text, one.end()) for one in _CHECK.finditer(text))


def _call(text: str, start: int) -> str:
    """Return the arguments of a call, from behind its parenthesis to the one that closes it."""
    depth = 1
    for end, letter in enumerate(text[start:], start):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[start:end]
    return text[start:]


def _named_by(source: Source, script: Path) -> Iterator[Named]:
    if source.file.stat().st_size > _BYTES_MAX:
        return
    text = source.file.read_text(errors="replace")
    lines = text.splitlines()

    def number(start: int) -> int:
        return text.count("\n", 0, start) + 1

    for pattern in (_IMPORT, _OPEN):
        for found in pattern.finditer(text):
            line = number(found.start("named"))
            if _COMMENT.match(lines[line - 1]):
                continue
            if pattern is _IMPORT:
                yield _module(source, line, found["named"])
            else:
                yield from _files(source, line, found["named"], (source.file.parent, script.parent))
    for call in _PROTO.finditer(text):
        # A .proto file is looked for in the script's folder, and from each folder that load() names.
        named = [found["named"] for found in _TEXT.finditer(call["folders"] or "")]
        folders = [script.parent / folder.removeprefix("file://") for folder in ("", *named)]
        for found in _TEXT.finditer(call["files"]):
            line = number(call.start("files") + found.start("named"))
            yield from _files(source, line, found["named"], folders)


def _files(source: Source, line: int, named: str, folders: Iterable[Path]) -> Iterator[Named]:
    """Yield the files that k6 may find in these folders by a name that is no module's."""
    files = [Path(os.path.normpath(folder / named.removeprefix("file://"))) for folder in folders]
    for file in dict.fromkeys(files):
        if file.exists() or file.is_symlink():
            yield Named(source, line, named, file, module=False)


def _module(source: Source, line: int, named: str) -> Named:
    if source.url is not None and not named.startswith("k6"):
        return Named(source, line, urljoin(source.url, named), None, module=True)
    local = named.removeprefix("file://")
    path = Path(os.path.normpath(source.file.parent / local)) if local.startswith((".", "/")) else None
    return Named(source, line, named, path, module=True)
