"""Configurations in sections of lines, one file; what the lab added stands between two comments, or behind the file."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from formats.role import Configured
from lab.roles.configurations.parsed import Fault, Neighbours, Position, Statement

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
_DURATION = re.compile(r"([0-9]+)(ms|[smhd]?)")
_NEEDS_ROOT = ("chroot", "user", "group", "uid", "gid")


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

    def option(self, name: str) -> Line | None:
        """Return the line that sets an option, if none takes it back."""
        on, off = self.all("option", name), self.all("no", "option", name)
        if on or off:
            return on[-1] if on and (not off or off[-1].where.line < on[-1].where.line) else None
        return self.defaults.option(name) if self.defaults else None


class Sections:
    """A whole configuration."""

    def __init__(self, text: str, folder: str, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        heading, _, content = text.partition("\n")
        file = heading.removeprefix(f"{_HEADING}{folder}/").removesuffix(":")
        mine, self._added = _parted(content)
        self._sections = list(_read(mine, file))
        self._globals = [one for one in self._sections if one.kind == "global"]
        self._traffic = [one for one in self._sections if self._binds(one)]
        self._servers = self._used()

    def _binds(self, section: Section) -> list[Line]:
        """Return the lines that listen on the traffic's port."""
        port = str(self._neighbours.port)
        of_clients = section.kind in ("frontend", "listen")
        lines = section.all("bind") if of_clients else []
        return [one for one in lines if port in (each.rpartition(":")[2] for each in one.words[1].split(","))]

    def _used(self) -> list[Section]:
        """Return the sections with servers that the traffic may come to; all of them if a name depends on a request."""
        named = {one.words[1] for section in self._traffic for one in section.all("use_backend")}
        chosen = [section.last("default_backend") for section in self._traffic]
        named |= {one.words[1] for one in chosen if one is not None}
        any_of_them = any("%" in name for name in named)
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
            return [self._of_bind(section, one) for section in self._traffic for one in self._binds(section)]
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
        """Return the smaller bound of a section's and the process's; 0 is none."""
        lines = [section.last(name), *(one for part in self._globals for one in part.all(name))]
        found = [_told(line, [name]) for line in lines if line is not None and line.words[1:2] != ["0"]]
        numbers = [one for one in found if one.words and one.words[0].isdecimal()]
        if len(numbers) < len(found):
            return next(one for one in found if one not in numbers)
        return min(numbers, key=lambda one: int((one.words or ("0",))[0]), default=Statement(None))

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

    def faults(self) -> list[Fault]:
        """Return where it listens elsewhere, logs too little, or proxies elsewhere."""
        return list(self._listening()) or [*self._logging(), *self._proxying(), *self._of_process()]

    def _listening(self) -> Iterator[Fault]:
        port = self._neighbours.port
        if not self._traffic:
            binds = [one for section in self._sections for one in section.all("bind")]
            first = next((one.where for one in (*binds, *(one.head for one in self._sections))), None)
            ports = ", ".join(sorted({one.words[1] for one in binds}))
            what = f"it listens on {ports}" if ports else "no frontend in it has a bind line"
            yield Fault(f"{what}, and the clients come to port {port}", first, f"write bind :{port}")
        for section in self._traffic:
            for one in self._binds(section):
                for option in ("ssl", "accept-proxy"):
                    if option in one.words:
                        what = f"its port {port} takes {option}, and the clients speak plain HTTP"
                        yield Fault(what, one.where, f"write bind :{port} alone")
                host = one.words[1].rpartition(":")[0]
                if host in ("::", "[::]") and ("v6only" in one.words or len(self._binds(section)) > 1):
                    # A second accept queue on the same port would count with the one that the clients come to.
                    what = "it listens for IPv6, and the lab's network has IPv4 alone"
                    yield Fault(what, one.where, f"leave the line out beside bind :{port}")
                if host not in ("", "*", "0.0.0.0", "::", "[::]"):  # noqa: S104 # no address that the lab binds
                    what = f"it listens on the address {host} alone, and the clients come to the container's own"
                    yield Fault(what, one.where, f"write bind :{port}")
            mode = section.last("mode")
            if mode is None or mode.words[1:2] != ["http"]:
                what = f"{section.kind} {section.name} is in mode tcp, and the lab follows HTTP requests"
                yield Fault(what, (mode or section.head).where, "write mode http")

    def _logging(self) -> Iterator[Fault]:
        for section in (*self._traffic, *self._servers):
            for one in (*section.all("http-request"), *section.all("http-response")):
                if one.words[1:2] == ["set-log-level"]:
                    yield Fault("set-log-level keeps requests out of the lab's log", one.where, "leave the line out")

    def _proxying(self) -> Iterator[Fault]:
        behind = sorted(self._neighbours.behind)
        wanted = " or ".join(behind) or "no server"
        servers = [one for section in self._servers for one in section.all("server")]
        if behind and not servers:
            where = self._traffic[0].head.where if self._traffic else None
            hint = f"write default_backend, and in that backend: server one {behind[-1]}"
            yield Fault("its port leads to no server line", where, hint)
        for one in servers:
            address = one.words[2] if len(one.words) > 2 else ""  # noqa: PLR2004 # server <name> <address>
            if address not in self._neighbours.behind:
                yield Fault(f"it proxies to {address}, and behind it stands {wanted}", one.where, "use that name")
            for option in ("ssl", "send-proxy", "send-proxy-v2"):
                if option in one.words:
                    what = f"{option} towards the server, which takes plain HTTP"
                    yield Fault(what, one.where, f"leave out {option}")
            if "check" in one.words:
                what = "health checks open connections to the server that no request explains"
                yield Fault(what, one.where, "leave out check")
        for section in self._servers:
            again = section.option("redispatch")
            if again is not None and len(section.all("server")) > 1:
                what = "with option redispatch the log does not tell which server the tries before the last went to"
                yield Fault(what, again.where, "leave the line out")
            for one in (*section.all("server-template"), *section.all("retry-on"), *section.all("dispatch")):
                yield Fault(f"the lab cannot follow requests by {one.words[0]}", one.where, "write server lines alone")

    def _of_process(self) -> Iterator[Fault]:
        for section in self._globals:
            for one in section.lines:
                if one.words[0] in _NEEDS_ROOT:
                    what = f"{one.words[0]} needs root, and it runs as an unprivileged user"
                    yield Fault(what, one.where, "leave the line out")


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


def _read(lines: list[str], file: str) -> Iterator[Section]:
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


def _told(line: Line | None, name: list[str]) -> Statement:
    return Statement(None) if line is None else Statement(tuple(line.words[len(name) :]), line.where)


def _first(section: Section, ways: list[list[str]]) -> Statement:
    """Return the first of some lines that a section has."""
    found = ((way, section.last(*way)) for way in ways)
    return next((_told(line, way) for way, line in found if line is not None), Statement(None))


def _of_server(section: Section, server: Line, name: str) -> Statement:
    """Return a server's parameter: on its line, or as the section has it for all of them."""
    level: Section | None = section
    lines = [server]
    while level is not None:
        lines += reversed(level.all("default-server"))
        level = level.defaults
    found = ((line, line.after(name)) for line in lines)
    return next((Statement((value,), line.where) for line, value in found if value is not None), Statement(None))
