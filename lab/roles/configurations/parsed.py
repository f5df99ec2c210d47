"""What a reader of a format returns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from formats.role import Default


@dataclass(frozen=True)
class Neighbours:
    """What is around a program.

    Attributes:
        port: where the clients come.
        behind: host names and ports of the next role's instances, and of all of them together; none at the path's end.
    """

    port: int
    behind: Collection[str]


@dataclass(frozen=True)
class Position:
    """A line of the user's: the file by its path from the configuration's folder, the line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Statement:
    """What holds for a knob at one place; no words where no line says it, and the program's default holds."""

    words: tuple[str, ...] | None
    where: Position | None = None


@dataclass(frozen=True)
class Setting:
    """A knob's value.

    Attributes:
        value: durations in milliseconds; None if it is not known.
        where: the lines that say it; none for the program's default.
        why: why it is not known.
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
        faults: why it cannot be run.
        added: the lines that the lab added, without comments.
        text: all of it, as the program read it.
        called: what the file calls the sections that the role's scraped pages name, where there is one of each.
    """

    settings: Mapping[str, Setting]
    faults: Sequence[Fault]
    added: Sequence[str]
    text: str
    called: Mapping[str, str]
