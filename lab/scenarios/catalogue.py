"""The lab's own scenarios by subject, in the order in which one learns them, and the experiments that they repeat.

scenarios/catalogue.yaml has the subjects. docs/sources.yaml has the published experiments, and how to cite each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from formats.knob_types import Duration
from formats.predictions import Part
from lab import paths
from lab.reading import document
from lab.scenarios import places
from lab.scenarios.resolved import ResolvedScenario

# Where scenarios stand that the file does not name.
OTHERS = "Others"


class _Entry(Part):
    level: Literal[1, 2, 3]
    takes: Duration
    shows: str


class _Subject(Part):
    subject: str
    about: str
    scenarios: Mapping[str, _Entry]


@dataclass(frozen=True)
class Entry:
    """A scenario in the catalogue.

    Attributes:
        level: 1 to 3; None if the file does not name it.
        takes: about how long all of its runs take, as a reader writes it.
        shows: one sentence; empty if the file does not name it.
    """

    slug: str
    level: int | None = None
    takes: str = ""
    shows: str = ""


@dataclass(frozen=True)
class Subject:
    """Scenarios of one subject.

    Attributes:
        about: one or two sentences.
    """

    name: str
    about: str
    entries: tuple[Entry, ...]


_FILE = TypeAdapter(list[_Subject])


@cache
def _read() -> list[_Subject]:
    return _FILE.validate_python(document.read(paths.CATALOGUE).content)


def load_catalogue() -> list[Subject]:
    """Return the scenarios that there are; those that the file does not name come last."""
    left = dict.fromkeys(places.slugs())
    subjects = []
    for one in _read():
        entries = [
            Entry(slug, entry.level, _in_words(entry.takes), entry.shows)
            for slug, entry in one.scenarios.items()
            if slug in left
        ]
        for entry in entries:
            del left[entry.slug]
        subjects.append(Subject(one.subject, one.about, tuple(entries)))
    subjects.append(Subject(OTHERS, "", tuple(map(Entry, left))))
    return [one for one in subjects if one.entries]


def _in_words(ms: int) -> str:
    return f"{ms // 60_000} min" if ms % 60_000 == 0 else f"{ms // 1000} s"


class Source(Part):
    """An article with experiments.

    Attributes:
        title: None if it has none.
        date: None if it has none.
        used: the programs that it measured with.
    """

    title: str | None = None
    language: str
    date: str | None = None
    about: str
    used: str

    @property
    def cited(self) -> str:
        """Return how a text cites it."""
        named = f'"{self.title}"' if self.title else f"an untitled article on {self.about}"
        return f"{named} ({self.language}, {self.date or 'undated'})"


_SOURCES = TypeAdapter(dict[str, Source])


@cache
def load_sources() -> dict[str, Source]:
    """Return the sources by their letters."""
    return _SOURCES.validate_python(document.read(paths.SOURCES).content)


def source_of(resolved: ResolvedScenario) -> Source | None:
    """Return the source of one of the lab's own scenarios; None if it repeats no published experiment."""
    return load_sources().get(resolved.scenario.experiment[:1]) if resolved.place.own else None
