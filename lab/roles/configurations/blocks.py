"""Configurations in blocks of directives, with includes: a dump of all files, each below a line with its name."""

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from formats.role import Configured, Rule
from lab.roles.configurations.directives import Block, Tree, server_names
from lab.roles.configurations.parsed import ClientSide, Fault, Statement

_HEADING = re.compile(r"^# configuration file (.+):$", re.MULTILINE)
# What the lab adds lies there.
_ADDED = "/tmp/connlab"  # noqa: S108 # in the container
_UNITS_MS = {"ms": 1, "": 1000, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]+)(ms|[smhdw]?)")
_LOCATIONS = ("location", "if", "limit_except")


class Blocks:
    """A whole configuration, includes taken in."""

    def __init__(self, text: str, folder: str, clients: ClientSide) -> None:
        parts = _HEADING.split(text)
        # A dump has a line break after each heading.
        self._files = dict(zip(parts[1::2], (one.removeprefix("\n") for one in parts[2::2]), strict=True))
        self._clients = clients
        self._tree = Tree(parts[1] if self._files else "", folder, self._files.get, self._included)
        self._root = self._tree.root
        self._https = self._root.all("http")
        self._servers = [one for http in self._https for one in http.all("server")]
        here = [one for one in self._servers if any(map(self._takes_traffic, one.all("listen")))]
        named = [one for one in here if clients.host and clients.host in server_names(one)]
        self._traffic = named or here
        self._leaves = [leaf for one in self._traffic for leaf in (one, *one.within(*_LOCATIONS))]
        self._proxied = [one for one in self._leaves if one.all("proxy_pass")]

    def _included(self, path: str) -> list[str]:
        # The lab's own lines are not among the file's.
        return [] if path.startswith(_ADDED) else [name for name in sorted(self._files) if fnmatchcase(name, path)]

    def _takes_traffic(self, listen: Block) -> bool:
        return _port(listen) == self._clients.port

    def statements(self, configured: Configured) -> list[Statement]:
        """Return what holds at each place: main, events, listen, server, traffic, proxied, upstream."""
        first, *rest = configured.directive.split()
        if configured.at == "listen":
            found = [one for server in self._traffic for one in server.all("listen") if self._takes_traffic(one)]
            # Beside an IPv4 socket, one of IPv6 has a queue of its own, and no client of the other family comes there.
            six = self._clients.ipv6
            found = [one for one in found if one.arguments[0].startswith("[") == six] or found
            return [_parameter(one, configured.parameter) for one in found]
        if configured.at == "upstream":
            return list(self._of_upstreams(configured))
        blocks = {
            "main": [self._root],
            "events": self._root.all("events"),
            "server": self._traffic,
            "traffic": self._leaves,
            "proxied": self._proxied,
        }[configured.at]
        return [_inherited(block, first, rest) for block in blocks]

    def _of_upstreams(self, configured: Configured) -> Iterator[Statement]:
        for one in self._proxied:
            found = self._upstream(_host(one))
            if found is None:
                yield Statement(None, named=False)
            elif configured.parameter is None:
                yield _inherited(found, configured.directive, [], inherits=False)
            else:
                yield from (_parameter(server, configured.parameter) for server in found.all(configured.directive))

    def _upstream(self, host: str) -> Block | None:
        every = (one for http in self._https for one in http.all("upstream"))
        return next((one for one in every if one.arguments[:1] == (host,)), None)

    def milliseconds(self, text: str) -> int | None:
        """Read a duration, whose unit is the second where none stands."""
        parts = _DURATION.findall(text)
        if not text or "".join(number + unit for number, unit in parts) != text:
            return None
        return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)

    def added(self) -> list[str]:
        """Return the lines of the files that the lab added."""
        lines = (line for name, text in self._files.items() if name.startswith(_ADDED) for line in text.splitlines())
        return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def called(self) -> dict[str, str]:
        """Return no names: no page tells of blocks by theirs."""
        return {}

    def checks(self) -> None:
        """Return nothing: this nginx makes no connection without a request."""

    def rules(self, names: Collection[str]) -> Iterator[Rule]:
        """Yield the directives of these names that requests may meet."""
        seen = set()
        for http in self._https:
            for one in http.within(*names):
                level = one.parent
                while level is not None and level.name != "server":
                    level = level.parent
                if one.where is not None and one.where not in seen and (level is None or level in self._traffic):
                    seen.add(one.where)
                    yield Rule(text=one.text, where=str(one.where))

    def faults(self) -> list[Fault]:
        """Return what could not be read, and that nothing listens where the clients come."""
        if self._tree.unread or self._traffic:
            return self._tree.unread
        what = f"no server in it listens on port {self._clients.port}, where the clients come"
        return [Fault(what, next((one.where for one in self._servers), None), "write a server in http { }")]


def _inherited(block: Block, first: str, rest: list[str], *, inherits: bool = True) -> Statement:
    """Return what a directive says in a block: the nearest level that has any of its name counts."""
    level: Block | None = block
    while level is not None:
        lines = level.all(first)
        if lines:
            wanted = [one.lower() for one in rest]
            for one in reversed(lines):
                if [word.lower() for word in one.arguments[: len(rest)]] == wanted:
                    return Statement(one.arguments[len(rest) :], one.where)
            return Statement(None)
        level = level.parent if inherits else None
    return Statement(None)


def _parameter(block: Block, name: str | None) -> Statement:
    for argument in block.arguments[1:]:
        key, equals, value = argument.partition("=")
        if key == name:
            return Statement((value if equals else "on",), block.where)
    return Statement(None)


def _port(listen: Block) -> int | None:
    """Return the port that a listen directive names; None for a socket in the file system."""
    address = listen.arguments[0] if listen.arguments else ""
    last = address.rpartition(":")[2]
    if last.isdecimal():
        return int(last)
    return None if address.startswith("unix:") else 80


def _host(leaf: Block) -> str:
    """Return the host of what a location proxies to."""
    url = leaf.all("proxy_pass")[0].arguments[0]
    return url.partition("://")[2].partition("/")[0].partition(":")[0]
