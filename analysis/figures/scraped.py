"""What programs say of themselves, on the pages that their declarations name: a figure for each declared value."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from analysis.diagnosis.health import Evidence
from analysis.evidence import timeline
from analysis.expressions.values import Kind, Value, unknown
from analysis.figures.declaration import Figure
from analysis.figures.run import Run, greatest, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analysis.evidence.rawrun import Scraped
    from analysis.evidence.window import Window


class Number(Protocol):
    """What a figure needs of a value's declaration."""

    @property
    def grows(self) -> bool:
        """Whether it counts from the program's start on."""

    @property
    def says(self) -> str | None:
        """What it counts; None if it is not a figure."""


class Page(Protocol):
    """What a figure needs of a page's declaration."""

    @property
    def called(self) -> str | None:
        """The first part of the names of its figures; the page's name."""

    @property
    def values(self) -> Mapping[str, Number]:
        """Its values, by name."""


class Role(Protocol):
    """What a figure needs of a role's declaration."""

    @property
    def kind(self) -> str:
        """Client, proxy or server."""

    @property
    def scrape(self) -> Mapping[str, Page]:
        """Its pages."""


def figures(path: Mapping[str, Role]) -> tuple[Figure, ...]:
    """The figures of all pages of these roles."""
    return tuple(figure for role, declared in path.items() for figure in _of_role(role, declared))


def _of_role(role: str, declared: Role) -> Iterator[Figure]:
    # Several servers may stand beside each other.
    instance = "<backend>." if declared.kind == "server" else ""
    for page, content in declared.scrape.items():
        for name, number in content.values.items():
            if number.says is None:
                continue
            compute = partial(_value, role=role, page=page, name=name, grows=number.grows)
            yield Figure(
                f"{content.called or page}.{instance}{name}" + ("" if number.grows else ".max"),
                Kind.NUMBER,
                "",
                f"The {number.says}, over the window; the sum of the instances."
                if number.grows
                else f"The most {number.says} at once, in readings once a second.",
                f"collector: {page}.jsonl",
                compute,
                of_role=role,
            )


def _value(run: Run, found: Mapping[str, str], *, role: str, page: str, name: str, grows: bool) -> Value:
    instances = run.instances(found.get("backend", role))
    pages = {each.instance: each for each in run.raw.scraped if each.name == page}
    combine, of_one = (total, _growth) if grows else (greatest, _level)
    if any(each not in pages for each in instances):
        return unknown(f"{' and '.join(instances)} has no page {page}")
    return run.resting_on(
        instances,
        {Evidence.SCRAPES: page, Evidence.TIMES: ""},
        lambda window: combine(of_one(pages[each], name, window) for each in instances),
    )


def _level(scraped: Scraped, name: str, window: Window) -> Value:
    known = [values[name] for values in _inside(scraped, window) if name in values]
    return max(known) if known else unknown(f"no scrape has {name}")


def _growth(scraped: Scraped, name: str, window: Window) -> Value:
    inside = list(_inside(scraped, window))
    if not inside or scraped.scrape.times_us[0] > window.start_us:
        return unknown("there is no scrape before the measurement")
    before, after = inside[0].get(name), inside[-1].get(name)
    if before is None or after is None:
        return unknown(f"no scrape has {name}")
    return after - before if after >= before else unknown(f"{name} went back from {before} to {after}")


def _inside(scraped: Scraped, window: Window) -> Iterable[Mapping[str, int]]:
    times_us = scraped.scrape.times_us
    return (scraped.values[index] for index in timeline.within(times_us, window.start_us, window.end_us))
