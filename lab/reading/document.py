"""Reads YAML and remembers on which line each value stands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError, MaxDepthExceededError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from formats.safe_files import open_regular
from lab import paths
from lab.errors import BadInput, Problem

Location = tuple[str | int, ...]

# Documents that a process keeps: more than the lab has, and the texts of all of them are small.
_KEPT = 512

# Far deeper than any scenario; it keeps a hostile or cyclic file from exhausting the stack.
_DEPTH_MAX = 32
_TOO_DEEP = "nested too deeply"
# Far more values than any scenario has. A few lines of aliases of aliases stand for as many as one likes.
_VALUES_MAX = 20_000
_TOO_MANY = f"the file holds more than {_VALUES_MAX:,} values"
_LESS = "leave out what it repeats, by aliases (*) too"
# No setting has as many digits; Python refuses to read or print numbers of some thousand.
_NUMBER_MAX = 10**100
_TOO_LONG = "a number of more than 100 digits"
_LONG = re.compile(rb"[0-9_]{1000}")
# A scenario has some KiB.
_BYTES_MAX = 4 << 20


@dataclass(frozen=True)
class Document:
    """A YAML file's content as plain values.

    Attributes:
        file: the name under which messages cite it.
        lines: the line (from 1) of each key and list item.

    Content and lines are shared by all that read the same text: nobody changes them.
    """

    file: str
    content: object
    lines: Mapping[Location, int]

    def where(self, location: Location) -> str:
        """Return `file:line` of the value at `location`, or of the nearest one that encloses it."""
        for length in range(len(location), 0, -1):
            if location[:length] in self.lines:
                return f"{self.file}:{self.lines[location[:length]]}"
        return f"{self.file}:1"


def read(file: Path) -> Document:
    """Parse the one document of a YAML file.

    Raises:
        BadInput: it is not YAML, or too large for what a user writes.
        OSError: it cannot be read.
    """
    with open_regular(paths.real(file)) as opened:
        data = opened.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise BadInput(Problem(f"the file has more than {_BYTES_MAX >> 20} MiB", f"{paths.shown(file)}:1"))
    return parse(data, paths.shown(file))


def parse(data: bytes, file: str) -> Document:
    """Parse one YAML document.

    Raises:
        BadInput: it is not YAML, repeats a key, or is nested beyond reason.
    """
    try:
        return Document(file, *_read(data))
    except _Refused as error:
        raise BadInput(Problem(error.what, f"{file}:{error.line}", error.hint)) from None


class _Refused(Exception):
    """What is wrong with a text, and on which line (from 1)."""

    def __init__(self, what: str, line: int, hint: str | None = None) -> None:
        self.what = what
        self.line = line
        self.hint = hint


@lru_cache(maxsize=_KEPT)
def _read(data: bytes) -> tuple[object, Mapping[Location, int]]:
    """Return a text's content as plain values, and the line of each."""
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = _Composer
        yaml.max_depth = _DEPTH_MAX + 1  # the whole has depth 1 there, and 0 here
        whole = yaml.compose(data.decode())
        reader = _Reader(yaml.constructor)
        return None if whole is None else reader.plain(whole), reader.lines
    except UnicodeDecodeError as error:
        raise _Refused("the file is not UTF-8 text", data[: error.start].count(b"\n") + 1) from None
    except MaxDepthExceededError as error:
        raise _Refused(_TOO_DEEP, _line(error)) from None
    except ComposerError as error:
        # The library's sentence goes on from its own context.
        several = "another document" in str(error.problem)
        what = "the file holds a second document; it is one, without '---' in between" if several else _broken(error)
        raise _Refused(what, _line(error)) from None
    except MarkedYAMLError as error:
        raise _Refused(_broken(error), _line(error)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        if (found := _LONG.search(data)) and type(error) is ValueError:
            raise _Refused(_TOO_LONG, data[: found.start()].count(b"\n") + 1) from None
        raise _Refused(f"broken YAML: {str(error).splitlines()[0]}", 1) from None


class _Composer(Composer):
    """Refuses `!tags`: nothing in the lab's files is of another kind than it looks. A key is a word.

    Nor does it take a value that holds itself, which the library would leave out, or a file without an end in sight.
    """

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 # the library's own
        super().__init__(*args, **more)
        self._open: list[str] = []
        self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 # the library's own
        event = self.parser.peek_event()
        line = event.start_mark.line + 1
        self._values += 1
        if self._values > _VALUES_MAX:
            raise _Refused(_TOO_MANY, line, _LESS)
        tag = getattr(event, "tag", None)
        if tag is not None:
            spelled = str(tag).replace("tag:yaml.org,2002:", "!!")
            hint = "leave it out, or put the value in quotes"
            raise _Refused(f"a tag ('{spelled}') has no place here", line, hint)
        if isinstance(event, AliasEvent):
            if event.anchor in self._open:
                raise _Refused(f"the alias '*{event.anchor}' is inside what it repeats", line, "leave it out")
            node = super().compose_node(parent, index)
        else:
            self._open.append(event.anchor)
            node = super().compose_node(parent, index)
            self._open.pop()
        # A key is composed without an index.
        if isinstance(parent, MappingNode) and index is None and not isinstance(node, ScalarNode):
            raise _Refused("a list or a mapping cannot be a key", line, "give the key a name, or quote it")
        if isinstance(node, ScalarNode):
            _refuse_unwritable(node.value, line)
        return node


def _refuse_unwritable(text: str, line: int) -> None:
    """Refuse what only an escape can bring: a surrogate, which is half a character, and what ends a program's text."""
    if "\0" in text:
        raise _Refused(r"'\0' ends a text for every program", line, "leave it out")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise _Refused(f"'{half}' is half a character", line, "write the character itself") from None


def _broken(error: MarkedYAMLError) -> str:
    text = str(error.problem or error.context or error)
    return f"broken YAML: {text.strip().splitlines()[0]}"


def _line(error: MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


class _Reader:
    """Turns ruamel's nodes into plain values and notes their lines."""

    def __init__(self, constructor: SafeConstructor) -> None:
        self.lines: dict[Location, int] = {}
        self._constructor = constructor
        self._values = 0

    def plain(self, node: Node, location: Location = ()) -> object:
        if len(location) > _DEPTH_MAX:
            # By aliases alone: what is written out is refused before.
            raise _Refused(_TOO_DEEP, max(self.lines.values(), default=1))
        self._values += 1
        if self._values > _VALUES_MAX:
            raise _Refused(_TOO_MANY, max(self.lines.values(), default=1), _LESS)
        if isinstance(node, MappingNode):
            return self._mapping(node, location)
        if isinstance(node, SequenceNode):
            return [self._at(one, one, (*location, index)) for index, one in enumerate(node.value)]
        value = self._constructor.construct_object(node)
        if isinstance(value, int) and abs(value) > _NUMBER_MAX:
            raise _Refused(_TOO_LONG, node.start_mark.line + 1)
        return value

    def _mapping(self, node: MappingNode, location: Location) -> dict[str, object]:
        """Return a mapping; a key that comes by a merge (`<<`) has no line: the one that encloses it stands for it."""
        self._constructor.flatten_mapping(node)  # what is merged is in front then
        merged = getattr(node, "merge", None) or []
        found: dict[str, object] = {}
        for key, value in node.value[len(merged) :]:
            name = self._name(key)
            if name in found:
                raise _Refused(f"the key '{name}' appears twice", key.start_mark.line + 1)
            found[name] = self._at(key, value, (*location, name))
        others = {self._name(key): value for key, value in merged}  # the last of several has it
        before = {name: self.plain(value, (*location, name)) for name, value in others.items() if name not in found}
        return before | found

    def _name(self, key: Node) -> str:
        return str(self._constructor.construct_object(key))

    def _at(self, place: Node, value: Node, location: Location) -> object:
        self.lines[location] = place.start_mark.line + 1
        return self.plain(value, location)
