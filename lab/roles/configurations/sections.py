"""Configurations in sections of lines, one file; what the lab added stands between two comments, or behind the file."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from formats.role import Checks, Configured, Rule
from lab.roles.configurations.parsed import ClientSide, Fault, Position, Statement

# What a section begins with.
_BEGINS = re.compile(
    r"global|defaults|frontend|backend|listen|userlist|peers|resolvers|mailers|program|http-errors|ring|log-forward"
    r"|log-profile|cache|fcgi-app|crt-store|traces"
)
# The first line has the name of the file.
_HEADING = "# configuration file "
_BEGIN, _END = "# connlab: begin", "# connlab: end"
# haproxy/before.cfg begins so; in what HAProxy read, it follows the user's file.
_BEHIND = "# connlab: lines of the lab"
_UNITS_MS = {"ms": 1, "": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Between two checks of one server, and where no line says it.
_INTERVALS, _INTERVAL_MS = ("inter", "fastinter", "downinter"), 2000
_DURATION = re.compile(r"([0-9]+)(ms|[smhd]?)")


@dataclass
class Line:
    """A line: its words, and its place."""

    words: list[str]
    where: Position

    def after(self, *names: str) -> str | None:
        """Return the word that follows one of these."""
        pairs = zip(self.words, self.words[1:], strict=False)
        return next((value for name, value in pairs if name in names), None)


@dataclass
class Section:
    """A section; `defaults` is the one that it rests on."""

    kind: str
    name: str
    head: Line
    defaults: Self | None
    lines: list[Line] = field(default_factory=list)

    def all(self, *begin: str) -> list[Line]:
        """Return the lines right in it that begin with these words."""
        return [one for one in self.lines if one.words[: len(begin)] == list(begin)]

    def last(self, *begin: str) -> Line | None:
        """Return the line that holds: the last one in it, or in what it rests on."""
        found = self.all(*begin)
        if found:
            return found[-1]
        return self.defaults.last(*begin) if self.defaults else None


def names_led_to(sections: Iterable[Section]) -> tuple[set[str], bool]:
    """Return the names that sections send requests to, and whether one depends on the request: it may be any then."""
    lines = [line for one in sections for line in (*one.all("use_backend"), one.last("default_backend"))]
    names = {line.words[1] for line in lines if line is not None and len(line.words) > 1}
    return names, any("%" in name for name in names)


class Sections:
    """A whole configuration."""

    def __init__(self, text: str, folder: str, clients: ClientSide) -> None:
        self._clients = clients
        heading, _, content = text.partition("\n")
        file = heading.removeprefix(f"{_HEADING}{folder}/").removesuffix(":")
        mine, self._added = _parted(content)
        self._sections = list(read_sections(mine, file))
        self._globals = [one for one in self._sections if one.kind == "global"]
        self._traffic = [one for one in self._sections if self._binds(one)]
        self._servers = self._used()

    def _binds(self, section: Section) -> list[Line]:
        """Return the lines that listen on the traffic's port."""
        of_clients = section.kind in ("frontend", "listen")
        lines = section.all("bind") if of_clients else []
        return [one for one in lines if self._clients.port in _ports(one)]

    def _used(self) -> list[Section]:
        """Return the sections with servers that the traffic may come to; all of them if a name depends on a request."""
        named, any_of_them = names_led_to(self._traffic)
        return [
            one
            for one in self._sections
            if (one.kind == "backend" and (any_of_them or one.name in named))
            or (one.kind == "listen" and one in self._traffic)
        ]

    def statements(self, configured: Configured) -> list[Statement]:
        """Return what holds at each place: global, clients, traffic, bind, servers, server."""
        ways = [way.split() for way in configured.directive.split(" | ")]
        if configured.at == "bind":
            binds = [(section, one) for section in self._traffic for one in self._binds(section)]
            if configured.parameter != "backlog":
                return [_flag(one, str(configured.parameter)) for _, one in binds]
            return [self._of_bind(section, one) for section, one in binds]
        if configured.at == "clients":
            return [self._least(section, *ways[0]) for section in self._traffic]
        if configured.at == "server":
            return [
                _of_server(section, one, str(configured.parameter))
                for section in self._servers
                for one in section.all("server")
            ]
        sections = {"global": self._globals, "traffic": self._traffic, "servers": self._servers}[configured.at]
        if configured.at == "global":
            found = [one for section in sections for one in section.all(*ways[0])]
            return [_told(found[-1] if found else None, ways[0])]
        return [_first(section, ways) for section in sections]

    def _of_bind(self, section: Section, bind: Line) -> Statement:
        """Return the backlog as the program finds it; else it is the connections that it takes at once."""
        for name in ("backlog", "maxconn"):
            value = bind.after(name)
            if value is not None:
                return Statement((value,), bind.where)
            line = section.last(name)
            if line is not None:
                return _told(line, [name])
        every = [one for part in self._globals for one in part.all("maxconn")]
        return _told(every[-1] if every else None, ["maxconn"])

    def _least(self, section: Section, name: str) -> Statement:
        """Return the smallest bound of a section's, its bind line's and the process's, with the others; 0 is none."""
        lines = [section.last(name), *(one for part in self._globals for one in part.all(name))]
        found = [_told(line, [name]) for line in lines if line is not None and line.words[1:2] != ["0"]]
        of_binds = [(line.after(name), line.where) for line in self._binds(section)]
        found += [Statement((value,), where) for value, where in of_binds if value not in (None, "0")]
        numbers = [one for one in found if one.words and one.words[0].isdecimal()]
        if len(numbers) < len(found):
            return next(one for one in found if one not in numbers)
        first, *others = sorted(numbers, key=lambda one: int((one.words or ("0",))[0])) or [Statement(None)]
        return replace(first, besides=tuple(one.where for one in others if one.where is not None))

    def milliseconds(self, text: str) -> int | None:
        """Read a duration, whose unit is the millisecond where none stands."""
        match = _DURATION.fullmatch(text)
        return int(match[1]) * _UNITS_MS[match[2]] if match else None

    def added(self) -> list[str]:
        """Return the lines that the lab added."""
        return [line for line in self._added if line.strip() and not line.lstrip().startswith("#")]

    def called(self) -> dict[str, str]:
        """Return the names of the sections that clients come to, and of those with servers."""
        parts = {"traffic": self._traffic, "servers": self._servers}
        return {place: one[0].name for place, one in parts.items() if len(one) == 1}

    def checks(self) -> Checks | None:
        """Return the health checks of all servers; None if it makes none."""
        every = [
            (section, one)
            for section in self._sections
            for one in section.all("server") + section.all("server-template")
        ]
        checked = [
            [value for name in _INTERVALS if (value := self._interval(section, one, name)) is not None]
            for section, one in every
            if "check" in one.words or any("check" in line.words for line in _defaults(section))
        ]
        shortest = min((min(one, default=_INTERVAL_MS) for one in checked), default=0)
        return Checks(servers=len(checked), every_ms=max(shortest, 1)) if checked else None

    def rules(self, names: Collection[str]) -> Iterator[Rule]:
        """Yield the lines that begin with one of these in the sections that requests pass."""
        for section in (*self._traffic, *(one for one in self._servers if one not in self._traffic)):
            for line in section.lines:
                text = " ".join(line.words)
                if any(f"{text} ".startswith(f"{name} ") for name in names):
                    yield Rule(text=text, where=str(line.where))

    def _interval(self, section: Section, server: Line, name: str) -> int | None:
        said = _of_server(section, server, name).words
        return self.milliseconds(said[0]) if said else None

    def faults(self) -> list[Fault]:
        """Return that nothing listens where the clients come."""
        if self._traffic:
            return []
        what = f"no frontend in it listens on port {self._clients.port}, where the clients come"
        return [Fault(what, next((one.head.where for one in self._sections), None), "write a bind line")]


def _ports(bind: Line) -> Iterator[int]:
    """Yield the ports of a bind line, those of ranges too; none on loopback, which no client can reach."""
    for address in bind.words[1].split(",") if len(bind.words) > 1 else ():
        host, _, port = address.rpartition(":")
        first, dash, last = port.partition("-")
        if first.isdecimal() and not host.startswith("127."):
            yield from range(int(first), int(last if dash and last.isdecimal() else first) + 1)


def _parted(text: str) -> tuple[list[str], list[str]]:
    """Part the user's lines from those that the lab added."""
    own, _, behind = text.partition(_BEHIND)
    mine: list[str] = []
    added: list[str] = []
    into = mine
    for line in own.splitlines():
        if line.strip() == _BEGIN:
            into = added
        elif line.strip() == _END:
            into = mine
        else:
            into.append(line)
    return mine, [*added, *behind.splitlines()[1:]]


def read_sections(lines: list[str], file: str) -> Iterator[Section]:
    """Yield the sections of a file's lines."""
    defaults: dict[str, Section] = {}
    latest: Section | None = None
    section: Section | None = None
    for number, text in enumerate(lines, start=1):
        words = _words(text)
        if not words:
            continue
        line = Line(words, Position(file, number))
        if _BEGINS.fullmatch(words[0]):
            if section is not None:
                yield section
            name = words[1] if len(words) > 1 else ""
            source = line.after("from")
            # Only a proxy rests on the latest defaults unasked.
            rests = (
                defaults.get(source) if source else latest if words[0] in ("frontend", "backend", "listen") else None
            )
            section = Section(words[0], name, line, rests)
            if words[0] == "defaults":
                latest = defaults[name] = section
        elif section is not None:
            section.lines.append(line)
    if section is not None:
        yield section


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _flag(line: Line, name: str) -> Statement:
    return Statement((name,), line.where) if name in line.words else Statement(None)


def _told(line: Line | None, name: list[str]) -> Statement:
    return Statement(None) if line is None else Statement(tuple(line.words[len(name) :]), line.where)


def _first(section: Section, ways: list[list[str]]) -> Statement:
    """Return the first of some lines that a section has."""
    found = ((way, section.last(*way)) for way in ways)
    return next((_told(line, way) for way, line in found if line is not None), Statement(None))


def _defaults(section: Section) -> list[Line]:
    """Return the lines that hold for all servers of a section, the nearest first."""
    level: Section | None = section
    lines: list[Line] = []
    while level is not None:
        lines += reversed(level.all("default-server"))
        level = level.defaults
    return lines


def _of_server(section: Section, server: Line, name: str) -> Statement:
    """Return a server's parameter: on its line, or as the section has it for all of them."""
    lines = [server, *_defaults(section)]
    found = ((line, line.after(name)) for line in lines)
    return next((Statement((value,), line.where) for line, value in found if value is not None), Statement(None))
