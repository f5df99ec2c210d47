"""Configurations in blocks of directives, with includes: a dump of all files, each below a line with its name."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Self

from formats.role import Configured
from lab.roles.configurations.parsed import Fault, Neighbours, Position, Statement

_HEADING = re.compile(r"^# configuration file (.+):$", re.MULTILINE)
# What the lab adds lies there.
_ADDED = "/tmp/connlab"  # noqa: S108 # in the container
_UNITS_MS = {"ms": 1, "": 1000, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]+)(ms|[smhdw]?)")
_LOCATIONS = ("location", "if", "limit_except")
# One of these in a block takes the place of the lab's, which stands in http.
_REPLACING = {
    "access_log": "the lab would miss requests in its log",
    "error_log": "the lab would miss errors",
    "limit_rate": "the lab would not learn which connections are kept",
}
_OTHER_PROTOCOLS = ("fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass")


@dataclass
class Block:
    """A directive with what stands in it."""

    name: str
    arguments: tuple[str, ...]
    where: Position | None
    parent: Self | None
    below: list[Self] = field(default_factory=list)

    def all(self, *names: str) -> list[Self]:
        """Return the directives of these names right in it."""
        return [one for one in self.below if one.name in names]

    def within(self, *names: str) -> Iterator[Self]:
        """Yield the directives of these names in it and in all below."""
        for one in self.below:
            if one.name in names:
                yield one
            yield from one.within(*names)


class Blocks:
    """A whole configuration, includes taken in."""

    def __init__(self, text: str, folder: str, neighbours: Neighbours) -> None:
        parts = _HEADING.split(text)
        self._files = dict(zip(parts[1::2], parts[2::2], strict=True))
        self._folder = PurePosixPath(folder)
        self._neighbours = neighbours
        self._parsed, errors = _parse(self._files)
        self._unread = [
            Fault(f"the lab cannot read it: {what}", Position(self._shown(name), line), "write it in another way")
            for name, line, what in errors
        ]
        self._root = Block("main", (), None, None)
        self._fill(self._root, self._parsed[parts[1]] if self._files else [])
        [*self._https] = self._root.all("http")
        self._servers = [one for http in self._https for one in http.all("server")]
        self._traffic = [one for one in self._servers if any(map(self._takes_traffic, one.all("listen")))]
        self._leaves = [leaf for one in self._traffic for leaf in (one, *one.within(*_LOCATIONS))]
        self._proxied = [one for one in self._leaves if one.all("proxy_pass")]

    def _fill(self, block: Block, content: list[Any]) -> None:
        for one in content:
            if one["directive"] == "include":
                for name in self._included(one["args"][0]):
                    self._fill(block, self._parsed[name])
                continue
            place = Position(self._shown(one["file"]), one["line"])
            inner = Block(one["directive"], tuple(one["args"]), place, block)
            block.below.append(inner)
            self._fill(inner, one.get("block", []))

    def _included(self, pattern: str) -> list[str]:
        path = str(self._folder / pattern)
        # The lab's own lines are not among the file's.
        return [] if path.startswith(_ADDED) else [name for name in sorted(self._files) if fnmatchcase(name, path)]

    def _shown(self, file: str) -> str:
        return str(PurePosixPath(file).relative_to(self._folder)) if file.startswith(f"{self._folder}/") else file

    def _takes_traffic(self, listen: Block) -> bool:
        return _port(listen) == self._neighbours.port

    def statements(self, configured: Configured) -> list[Statement]:
        """Return what holds at each place: main, events, listen, server, traffic, proxied, upstream."""
        first, *rest = configured.directive.split()
        if configured.at == "listen":
            found = [one for server in self._traffic for one in server.all("listen") if self._takes_traffic(one)]
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
            _, host, _ = _target(one)
            found = self._upstream(host)
            if found is None:
                yield Statement(None)
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

    def faults(self) -> list[Fault]:
        """Return where it listens elsewhere, logs elsewhere, or proxies elsewhere."""
        listening = self._unread or list(self._listening())
        return listening or [*self._logging(), *self._proxying(), *self._of_process()]

    def _listening(self) -> Iterator[Fault]:
        port = self._neighbours.port
        if not self._traffic:
            listens = [one for server in self._servers for one in server.all("listen")]
            first = next((one.where for one in (*listens, *self._servers, *self._https)), None)
            ports = ", ".join(sorted({one.arguments[0] for one in listens}))
            what = f"it listens on {ports}" if ports else "no server in it has a listen directive"
            yield Fault(f"{what}, and the clients come to port {port}", first, f"write listen {port};")
        for server in self._traffic:
            for one in filter(self._takes_traffic, server.all("listen")):
                for option in ("ssl", "quic", "proxy_protocol"):
                    if option in one.arguments:
                        what = f"its port {port} takes {option}, and the clients speak plain HTTP"
                        yield Fault(what, one.where, f"write listen {port}; alone")
                host = one.arguments[0].rpartition(":")[0]
                if host == "[::]" and "ipv6only=off" not in one.arguments:
                    # A second accept queue on the same port would count with the one that the clients come to.
                    what = "it listens for IPv6, and the lab's network has IPv4 alone"
                    yield Fault(what, one.where, f"leave the line out beside listen {port};")
                if host not in ("", "*", "0.0.0.0", "[::]"):  # noqa: S104 # no address that the lab binds
                    yield Fault(
                        f"it listens on the address {host} alone, and the clients come to the container's own",
                        one.where,
                        f"write listen {port};",
                    )

    def _logging(self) -> Iterator[Fault]:
        for http in self._https:
            for one in http.all("access_log"):
                if one.arguments[:1] == ("off",):
                    yield Fault("access_log off turns the lab's log off, too", one.where, "leave the line out")
            for one in http.all("limit_rate"):
                yield Fault(f"limit_rate here: {_REPLACING['limit_rate']}", one.where, "leave the line out")
        for leaf in self._leaves:
            for one in leaf.all(*_REPLACING):
                what = f"{one.name} here takes the place of the lab's: {_REPLACING[one.name]}"
                hint = "leave the line out" if one.name == "limit_rate" else "write it in http { }, or leave it out"
                yield Fault(what, one.where, hint)

    def _proxying(self) -> Iterator[Fault]:
        behind = sorted(self._neighbours.behind)
        for leaf in self._leaves:
            for one in leaf.all(*_OTHER_PROTOCOLS):
                yield Fault(f"{one.name} speaks no HTTP to the server", one.where, "write proxy_pass http://…;")
        if behind and not self._proxied and self._traffic:
            what = f"no location of the server on port {self._neighbours.port} has a proxy_pass"
            yield Fault(what, self._traffic[0].where, f"write location / {{ proxy_pass http://{behind[0]}; }}")
        for leaf in self._proxied:
            [one] = leaf.all("proxy_pass")
            scheme, host, port = _target(leaf)
            if "$" in one.arguments[0]:
                what = f"proxy_pass {one.arguments[0]} depends on a request, and the lab follows requests to one place"
                yield Fault(what, one.where, f"write http://{behind[0] if behind else 'the server'}")
                continue
            upstream = self._upstream(host)
            named = [(f"{host}:{port}", one)]
            if upstream is not None:
                named = [(_with_port(each.arguments[0]), each) for each in upstream.all("server")]
            for address, line in named:
                if address not in self._neighbours.behind or scheme != "http":
                    what = f"it proxies to {scheme}://{address}"
                    wanted = " or ".join(behind) or "no server"
                    yield Fault(f"{what}, and behind it stands {wanted}", line.where, "use that name, by http")

    def _of_process(self) -> Iterator[Fault]:
        for name, value in (("daemon", "on"), ("master_process", "off")):
            for one in self._root.all(name):
                if one.arguments == (value,):
                    yield Fault(f"{name} {value} lets the container end", one.where, "leave the line out")


def _parse(files: dict[str, str]) -> tuple[dict[str, list[Any]], list[tuple[str, int, str]]]:
    """Parse each file by itself: the library would look for included ones on this machine.

    Returns:
        The files' directives, and what could not be read, each with its file and line.
    """
    # Few scenarios have such a configuration, and it knows a thousand directives.
    import crossplane  # noqa: PLC0415

    parsed: dict[str, list[Any]] = {}
    errors: list[tuple[str, int, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text) in enumerate(files.items()):
            file = Path(folder) / str(number)
            # A dump has a line break after each heading.
            file.write_text(text.removeprefix("\n"))
            content = crossplane.parse(str(file), single=True, check_ctx=False, check_args=False)
            parsed[name] = _named(content["config"][0]["parsed"], name)
            errors += [(name, one["line"] or 1, one["error"].partition(" in ")[0]) for one in content["errors"]]
    return parsed, errors


def _named(content: list[Any], file: str) -> list[Any]:
    return [
        {**one, "file": file, **({"block": _named(one["block"], file)} if "block" in one else {})} for one in content
    ]


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


def _target(leaf: Block) -> tuple[str, str, str]:
    """Return scheme, host and port of what a location proxies to."""
    url = leaf.all("proxy_pass")[0].arguments[0]
    scheme, _, rest = url.partition("://")
    host, colon, port = rest.partition("/")[0].partition(":")
    return scheme, host, port if colon else "80"


def _with_port(address: str) -> str:
    return address if ":" in address else f"{address}:80"
