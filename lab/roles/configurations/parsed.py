"""What a reader of a format returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from formats.role import Checks, Default, Rule


@dataclass(frozen=True)
class ClientSide:
    """Where and how the clients come to a program.

    Attributes:
        port: where the clients come.
        host: the name that the clients ask for; None if any does.
        ipv6: whether the clients come over IPv6.
    """

    port: int
    host: str | None = None
    ipv6: bool = False


@dataclass(frozen=True)
class Position:
    """A line of the user's: the file by its path from the configuration's folder, the line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Statement:
    """What holds for a knob at one place; no words where no line says it, and the program's default holds.

    Attributes:
        named: whether the place is a block of the file; else the program has made it of an address.
        besides: further lines that bound the value, and now bound it less.
    """

    words: tuple[str, ...] | None
    where: Position | None = None
    named: bool = True
    besides: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Setting:
    """A knob's value.

    Attributes:
        value: durations in milliseconds; None if it is not known.
        where: the lines that say it; none for the program's default.
    """

    value: Default | None = None
    where: tuple[Position, ...] = ()
    why: str | None = None


@dataclass(frozen=True)
class Fault:
    """Why a configuration cannot stand on the path; the place is None if no line is to blame."""

    what: str
    where: Position | None
    hint: str


@dataclass(frozen=True)
class ParsedConfiguration:
    """What a configuration says.

    Attributes:
        settings: by the knobs' names within the role.
        added: the lines that the lab added, without comments.
        called: what the file calls the sections that the role's scraped pages name, where there is one of each.
        changes: what differs in the copy that runs.
        checks: its health checks; None if it makes none.
        rules: the lines by which it answers without a server.
        version: of the program that read it; None if it did not say.
    """

    settings: Mapping[str, Setting]
    faults: Sequence[Fault]
    added: Sequence[str]
    text: str
    called: Mapping[str, str]
    changes: "Sequence[Change]" = ()
    checks: Checks | None = None
    rules: tuple[Rule, ...] = ()
    version: str | None = None


@dataclass(frozen=True)
class Change:
    """What differs in the copy that runs: in a few words, with the line; the place is None if it has none."""

    what: str
    where: Position | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where else self.what


@dataclass(frozen=True)
class Entry:
    """Where the load enters.

    Attributes:
        port: of the listening socket.
        tls: whether clients speak TLS there.
        host: the name that clients must ask for to come to this server; None if any name leads there.
        where: the line that listens.
        requests: whether the program sees requests there; else it passes on bytes, and logs no request.
        ipv6: whether clients can come over IPv6 alone.
    """

    port: int
    tls: bool = False
    host: str | None = None
    where: Position | None = None
    requests: bool = True
    ipv6: bool = False


@dataclass(frozen=True)
class WantedEntry:
    """What a scenario says of where the load enters; None for what it does not say.

    Attributes:
        tls: whether clients speak TLS.
        host: the name that they ask for.
        family: of their addresses.
        url: the scenario's URL, for messages.
    """

    port: int | None = None
    tls: bool | None = None
    host: str | None = None
    family: Literal["ipv4", "ipv6"] | None = None
    url: str | None = None

    def takes(self, port: int, *, tls: bool, ipv6: bool) -> bool:
        """Return whether the load may come to a socket."""
        return self.port in (None, port) and self.tls in (None, tls) and (self.family != "ipv6" or ipv6)

    def __str__(self) -> str:
        """Say where the load is to come."""
        if self.url is not None:
            return f"port {self.port}, where {self.url} leads{' with TLS' if self.tls else ''}"
        return f"port {self.port}" if self.port is not None else "IPv6" if self.family == "ipv6" else "any port"


@dataclass(frozen=True)
class Surroundings:
    """What the copy that runs must fit.

    Attributes:
        behind: host names and ports of the next role: of all its instances together first, then of each.
        tls: whether the next role takes TLS.
        own_service: whether it is a service of the scenario's own, which may speak another protocol than HTTP.
        hosts: by a host of the file, with its port or without, the address in its place.
        beside: the addresses of services beside the path, which the scenario may name.
        writable: folders that the program may write to.
        wanted: where the load is to enter, as far as the scenario says.
        role: the next role's name; None at the path's end.
        page: what the lab's own role at the path's end answers with 200; None for a service of the scenario's own.
        ipv6: whether the kernel has IPv6.
        own_image: whether the program is that of an image of the user's, which may have modules of its own.
    """

    behind: Sequence[str] = ()
    tls: bool = False
    own_service: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    beside: Sequence[str] = ()
    writable: Sequence[str] = ()
    wanted: WantedEntry = WantedEntry()
    role: str | None = None
    page: str | None = None
    ipv6: bool = True
    own_image: bool = False


@dataclass(frozen=True)
class Adaptation:
    """How a user's configuration becomes the copy that runs.

    Attributes:
        entry: where the load enters; None if it cannot.
        files: the changed files, as the program names them.
        changes: what differs from the user's files, a line each.
        faults: why it cannot run.
        certificates: files to make, and for which names each is.
        added: what the lab's own lines need besides.
    """

    entry: Entry | None
    files: Mapping[str, str] = field(default_factory=dict)
    changes: Sequence[Change] = ()
    faults: Sequence[Fault] = ()
    certificates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    added: str = ""
