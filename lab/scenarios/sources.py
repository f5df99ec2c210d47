"""The published experiments that the lab's scenarios repeat, from docs/sources.yaml: how a document cites each."""

from functools import cache

from pydantic import BaseModel, ConfigDict, TypeAdapter

from lab import paths
from lab.reading import document
from lab.scenarios.resolved import ResolvedScenario


class Source(BaseModel):
    """An article with experiments.

    Attributes:
        title: None if it has none.
        date: None if it has none.
        used: the programs that it measured with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
