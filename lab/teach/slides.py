"""A workshop's slides, one HTML file without a network: its own page, part by part, and the lessons that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from analysis.output import write as write_file
from analysis.reports import rendering
from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import markdown
from lab.reading.nearest import did_you_mean
from lab.scenario import places

FOLDER = "slides"
_WORKSHOPS = paths.ROOT / "docs" / "workshops"
_INSTRUCTOR = "-instructor"
_LESSON = re.compile(r"make lesson SCENARIO=([a-z0-9-]+)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]*\)")
_FOLDED = re.compile(r"</?details>|<summary>[^<>]*</summary>")
# What a lesson puts before its run; what explains it comes after.
_BEFORE, _AFTER = ("Predict",), ("Explanation",)
# So much text can be read from behind; a longer part becomes several slides.
_CHARS_MAX = 600


@dataclass(frozen=True)
class Slide:
    """A slide: whose it is, its heading, and its text in Markdown."""

    of: str
    title: str
    text: str


def names() -> list[str]:
    """Give the workshops."""
    return sorted(file.stem for file in _WORKSHOPS.glob("*.md") if not file.stem.endswith(_INSTRUCTOR))


def write(name: str) -> Path:
    """Write a workshop's slides below results/.

    Raises:
        BadInput: there is no such workshop, or it runs a lesson that is not there.
        OSError: they cannot be written.
    """
    if name not in names():
        raise BadInput(
            Problem(f"there is no workshop '{name}'", way_on=did_you_mean(name, names()) or ", ".join(names()))
        )
    text = (_WORKSHOPS / f"{name}.md").read_text()
    shown = [{"of": one.of, "title": one.title, "html": _html(one.text)} for one in slides(text)]
    page = rendering.render(
        "slides",
        None,
        {"title": markdown.title(text), "slides": shown},
        styles=("theme", "slides"),
        charts=False,
    )
    file = paths.RESULTS / FOLDER / f"{name}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, page)
    return file


def slides(text: str) -> Iterator[Slide]:
    """Give the slides of a workshop's page: each of its parts, and around a lesson's run the lesson's own."""
    workshop = markdown.title(text)
    yield Slide(workshop, workshop, _parts(text)[""])
    for title, part in _parts(text).items():
        if not title:
            continue
        yield from _cut(workshop, title, part)
        for slug in dict.fromkeys(_LESSON.findall(part)):
            yield from _of_lesson(slug)


def _of_lesson(slug: str) -> Iterator[Slide]:
    lesson = places.find(slug).lesson.read_text()
    title, parts = markdown.title(lesson), _parts(lesson)
    yield from _cut(title, title, parts[""])
    for heading in (*_BEFORE, *_AFTER):
        if heading in parts:
            yield from _cut(title, heading, _FOLDED.sub("", parts[heading]))


def _parts(text: str) -> dict[str, str]:
    """Give a document's parts by their headings of the second level, what stands before them under an empty one."""
    first, *others = re.split(r"(?m)^## ", re.sub(r"(?m)\A# .+\n", "", text))
    return {"": first, **{title: body for title, _, body in (one.partition("\n") for one in others)}}


def _cut(of: str, title: str, text: str) -> Iterator[Slide]:
    """Cut a part between its blocks into slides that can be read; a table or a command stays whole."""
    taken: list[str] = []
    for block in re.split(r"\n{2,}(?=\S)", text.strip()):
        if taken and sum(map(len, taken)) + len(block) > _CHARS_MAX:
            yield Slide(of, title, "\n\n".join(taken))
            taken = []
        taken.append(block)
    yield Slide(of, title, "\n\n".join(taken))


def _html(text: str) -> Markup:
    # Its links lead from where the document lies.
    return markdown.html(_LINK.sub(r"\1", text))
