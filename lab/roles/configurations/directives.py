"""nginx's language: files of directives, in blocks, as a tree; and a copy of a file with some directives changed."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Self

from lab.roles.configurations.parsed import Fault, Position


@dataclass(eq=False)
class Block:
    """A directive with what stands in it; `file` is its file as the program names it."""

    name: str
    arguments: tuple[str, ...]
    where: Position | None
    parent: Self | None
    file: str = ""
    below: list[Self] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the directive with its arguments, as messages name it."""
        return " ".join((self.name, *self.arguments))

    def all(self, *names: str) -> list[Self]:
        """Return the directives of these names right in it."""
        return [one for one in self.below if one.name in names]

    def within(self, *names: str) -> Iterator[Self]:
        """Yield the directives of these names in it and in all below."""
        for one in self.below:
            if one.name in names:
                yield one
            yield from one.within(*names)


def server_names(server: Block) -> list[str]:
    """Return the names that a server of nginx answers to, as its file has them."""
    return [name for one in server.all("server_name") for name in one.arguments]


class Tree:
    """A whole configuration, includes taken in.

    Attributes:
        root: holds the directives of the first file.
        unread: what could not be read.
        missing: includes of one file that is not there.
        empty: includes of a pattern that finds no file.
    """

    def __init__(
        self, main: str, folder: str, read: Callable[[str], str | None], find: Callable[[str], list[str]]
    ) -> None:
        self._folder = PurePosixPath(folder)
        self._read, self._find = read, find
        self._parsed: dict[str, list[Any]] = {}
        self.unread: list[Fault] = []
        self.missing: list[Block] = []
        self.empty: list[Block] = []
        self.texts: dict[str, str] = {}
        self.root = Block("main", (), None, None, main)
        self._fill(self.root, self._of(main), ())

    def _fill(self, block: Block, content: list[Any], above: tuple[str, ...]) -> None:
        for one in content:
            place = Position(self.shown(one["file"]), one["line"])
            inner = Block(one["directive"], tuple(one["args"]), place, block, one["file"])
            if inner.name == "include" and inner.arguments:
                path = str(self._folder / inner.arguments[0])
                found = [name for name in self._find(path) if name not in above]
                for name in found:
                    self._fill(block, self._of(name), (*above, name))
                if not found:
                    (self.empty if set("*?[") & set(path) else self.missing).append(inner)
                continue
            block.below.append(inner)
            self._fill(inner, one.get("block", []), above)

    def shown(self, file: str) -> str:
        """Return a file's name from the configuration's folder."""
        return file.removeprefix(f"{self._folder}/")

    def _of(self, name: str) -> list[Any]:
        if name not in self._parsed:
            text = self._read(name)
            self._parsed[name] = []
            if text is not None:
                self.texts[name] = text
                self._parsed[name], errors = _parse(text, name)
                self.unread += [
                    Fault(f"the lab cannot read it: {what}", Position(self.shown(name), line), "write it another way")
                    for line, what in errors
                ]
        return self._parsed[name]


def _parse(text: str, name: str) -> tuple[list[Any], list[tuple[int, str]]]:
    """Parse one file by itself: the library would look for included ones on this machine."""
    # Few scenarios have such a configuration, and it knows a thousand directives.
    import crossplane  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one"
        file.write_text(text)
        content = crossplane.parse(str(file), single=True, check_ctx=False, check_args=False)
    errors = [(one["line"] or 1, one["error"].partition(" in ")[0]) for one in content["errors"]]
    return _named(content["config"][0]["parsed"], name), errors


def _named(content: list[Any], file: str) -> list[Any]:
    return [
        {**one, "file": file, **({"block": _named(one["block"], file)} if "block" in one else {})} for one in content
    ]


class Copies:
    """Copies of files with directives changed; no line moves, so that messages name the lines of the user's files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self.changed: dict[str, str] = {}
        self._now: dict[tuple[object, ...], tuple[str, ...]] = {}

    def leave_out(self, block: Block) -> bool:
        """Leave a directive out; return whether it was found."""
        return self._change(block, lambda _: "")

    def leave_out_block(self, block: Block) -> bool:
        """Leave a directive out with all that stands in it; return whether it was found."""
        if not self._change(block, lambda match: match[0]):
            return False
        text = self.changed[block.file]
        begin = sum(map(len, text.splitlines(keepends=True)[: (block.where.line if block.where else 1) - 1]))
        begin = text.index(block.name, begin)
        depth = 0
        for match in _BRACES.finditer(text, begin):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if match[0] == "}" and depth == 0:
                self.changed[block.file] = (
                    text[:begin] + "\n" * text.count("\n", begin, match.end()) + text[match.end() :]
                )
                return True
        return False

    def append(self, block: Block, text: str) -> bool:
        """Put text behind a directive, or at the beginning of its block."""
        return self._change(block, lambda match: f"{match[0]} {text}")

    def replace(self, block: Block, text: str) -> bool:
        """Put text in a directive's place."""
        return self._change(block, lambda _: text)

    def set_arguments(self, block: Block, arguments: Mapping[int, str | None]) -> bool:
        """Write some arguments anew, by their places from 0; None leaves one out."""

        def changed(match: re.Match[str]) -> str:
            text, begin = match[0], match.start()
            for place in sorted(arguments, reverse=True):
                start, end = (one - begin for one in match.span(f"a{place}"))
                value = arguments[place]
                text = text[:start].rstrip() + text[end:] if value is None else text[:start] + quote(value) + text[end:]
            return text

        found = self._change(block, changed)
        key = (block.file, block.where, block.name, block.arguments)
        now = {**dict(enumerate(self._now.get(key, block.arguments))), **arguments}
        self._now[key] = tuple(one for _, one in sorted(now.items()) if one is not None)
        return found

    def _change(self, block: Block, change: Callable[[re.Match[str]], str]) -> bool:
        """Change a directive; of several alike on one line, all."""
        text = self.changed.get(block.file, self._texts.get(block.file, ""))
        at = 0
        for _ in range((block.where.line if block.where else 1) - 1):
            at = text.find("\n", at) + 1
        key = (block.file, block.where, block.name, block.arguments)
        arguments = self._now.get(key, block.arguments)
        words = "".join(rf"\s+(?P<a{place}>{_spellings(one)})" for place, one in enumerate(arguments))
        pattern = re.compile(rf"(?<![\w$-]){re.escape(block.name)}{words}\s*[;{{]")
        found = False
        while (match := pattern.search(text, at)) is not None and "\n" not in text[at : match.start()]:
            found = True
            new = change(match)
            new += "\n" * (match[0].count("\n") - new.count("\n"))
            text, at = text[: match.start()] + new + text[match.end() :], match.start() + len(new)
            if "\n" in new:
                break
        if found:
            self.changed[block.file] = text
        return found


# Braces, and what may hold one that is none.
_BRACES = re.compile(r"""#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\$\{\w+\}|[{}]""")


def _spellings(argument: str) -> str:
    """Return a pattern for an argument, with or without quotes."""
    bare = re.escape(argument)
    ways = [re.escape(f"{mark}{argument.replace(mark, chr(92) + mark)}{mark}") for mark in ('"', "'")]
    return "|".join([*ways, bare] if argument else ways)


def quote(argument: str) -> str:
    """Return an argument as nginx reads it back."""
    if argument and not re.search(r"[\s;{}\"'#]", argument):
        return argument
    return f'"{argument}"' if '"' not in argument else f"'{argument}'"
