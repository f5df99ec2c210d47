"""Builds a gallery in a folder of its own, which then takes the place of the one before."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from analysis import suggested
from analysis.formatting import counted
from analysis.reports import rendering, run_report
from lab import paths
from lab.errors import BadInput, LabError, Problem
from lab.experiments import documents as experiments
from lab.experiments import lines, outcome
from lab.gallery import chosen
from lab.gallery.chosen import Shown
from lab.gallery.document_pages import Documents
from lab.reading import markdown
from lab.results import listing
from lab.scenario.effective import Effective

_ASSETS = "assets"
_INDEX = "index.html"
# By this file a folder is known as a gallery, which the next one may take the place of.
_MARK = ".connlab-gallery"
BYTES_MAX = 40_000_000
_LARGEST = 3


@dataclass
class Gallery:
    """What was built.

    Attributes:
        folder: where.
        pages: how many.
        size: in bytes.
        without: the scenarios of which no report is at hand.
        left_out: runs and series that could not be shown, and why.
    """

    folder: Path
    pages: int = 0
    size: int = 0
    without: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def build(results: Sequence[Path], to: Path) -> Gallery:
    """Build a gallery.

    Args:
        results: folders of results, as the lab writes them.
        to: the folder that it becomes.

    Raises:
        BadInput: a folder of results is none, or `to` is something else than a gallery.
        LabError: the gallery is too large.
        OSError: it cannot be written.
    """
    _check(results, to)
    to.parent.mkdir(parents=True, exist_ok=True)
    making = Path(mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    try:
        making.chmod(0o755)
        built = _Builder(making, [folder.resolve() for folder in results]).build()
        if to.exists():
            shutil.rmtree(to)
        making.rename(to)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    built.folder = to
    return built


def _check(results: Iterable[Path], to: Path) -> None:
    problems = [
        Problem(f"there is no folder {paths.shown(folder)}", way_on="name a folder of results, as results/")
        for folder in results
        if not folder.is_dir()
    ]
    if to.is_symlink() or (to.exists() and not (to / _MARK).is_file() and not (to.is_dir() and not any(to.iterdir()))):
        problems.append(
            Problem(f"{paths.shown(to)} is there, and is not a gallery", way_on="name another folder: TO=<folder>")
        )
    if problems:
        raise BadInput(problems)


class _Builder:
    def __init__(self, folder: Path, results: Sequence[Path]) -> None:
        self._results = results
        self._documents = Documents()
        self._built = Gallery(folder)

    @cached_property
    def _scenarios(self) -> list[Effective]:
        return listing.in_order(list(outcome.all_planned()))

    def build(self) -> Gallery:
        for name, text in rendering.shared_files().items():
            self._write(f"{_ASSETS}/{name}", text)
        shown = self._shown()
        links = {slug: link for slug, one in shown.items() if (link := self._report(one))}
        others = [
            (kind, name, one)
            for (kind, name), one in sorted(chosen.series(self._results).items())
            if kind != "arms" and self._report(one)
        ]
        self._built.without = [one.slug for one in self._scenarios if one.slug not in links]
        recorded = lines.read()
        told = {
            one.slug: _told(one, lines.counting(one, recorded), shown.get(one.slug), links.get(one.slug))
            for one in self._scenarios
        }
        for name in self._documents.names:
            self._document(name, told)
        for place, file in self._documents.files():
            self._write(place, file.read_bytes())
        self._page(
            _INDEX,
            "gallery",
            scenarios=list(told.values()),
            others=[_other(kind, name, one) for kind, name, one in others],
            documents={name: self._documents.page(name) for name in ("README.md", "docs/glossary.md", "docs/map.md")},
        )
        self._write(_MARK, "")
        self._weigh()
        return self._built

    def _shown(self) -> dict[str, Shown]:
        """Give the run of each scenario, or the series of its arms."""
        armed = {one.slug for one in self._scenarios if one.scenario.arms}
        runs = chosen.runs(self._results, (one.slug for one in self._scenarios if one.slug not in armed))
        series = {
            name: one for (kind, name), one in chosen.series(self._results).items() if kind == "arms" and name in armed
        }
        return runs | series

    def _report(self, shown: Shown) -> str | None:
        """Write the page of a run or a series, and give where it lies; None if there can be none."""
        if shown.folder.startswith("series/"):
            return self._series(shown)
        return self._run(shown.results, shown.folder)

    def _run(self, results: Path, name: str) -> str | None:
        place = f"{name}/{run_report.FILE}"
        try:
            self._write(place, run_report.render(results / name, _up(place, _ASSETS)))
        except run_report.ReportError as error:
            self._built.left_out.append(str(error))
            return None
        return place

    def _series(self, shown: Shown) -> str | None:
        from analysis import compare  # noqa: PLC0415 # it brings scipy, which is only needed where there is a series
        from analysis.compare import comparison_file  # noqa: PLC0415 # as above
        from analysis.reports import comparison_page, side_by_side  # noqa: PLC0415 # as above

        folder = shown.results / shown.folder
        place = f"{shown.folder}/derived/{comparison_file.PAGE}"
        try:
            comparison, verdict = compare.compare_series(folder)
        except compare.CompareError as error:
            self._built.left_out.append(str(error))
            return None
        beside = side_by_side.draw_timelines(comparison, shown.results)
        # The others of a group are like the one in its middle, and would weigh as much again.
        runs = side_by_side.runs_drawn(beside)
        self._write(
            place,
            comparison_page.html(
                comparison,
                _up(place, "").rstrip("/"),
                verdict,
                beside,
                reports={run for run in runs if self._run(shown.results, run)},
                linked=_up(place, _ASSETS),
            ),
        )
        return place

    def _document(self, name: str, told: Mapping[str, Mapping[str, Any]]) -> None:
        slug = posixpath.basename(posixpath.dirname(name)) if name.endswith("/README.md") else ""
        place = self._documents.page(name)
        lesson = told.get(slug) if name == f"scenarios/{slug}/README.md" else None
        self._page(
            place,
            "document",
            title=markdown.title(self._documents.read(name)) or name,
            text=self._documents.html(name),
            lesson=lesson,
            home=_up(place, _INDEX),
            report=_up(place, lesson["report"]) if lesson and lesson["report"] else None,
            experiments=_up(place, self._documents.page("docs/experiments.md")),
        )

    def _page(self, place: str, template: str, **context: Any) -> None:  # noqa: ANN401 # whatever a template names
        filters = {"counted": counted}
        linked = _up(place, _ASSETS)
        styles = ("theme", "gallery")
        html = rendering.render(
            template, None, context, filters, styles=styles, scripts=(), charts=False, linked=linked
        )
        self._write(place, html)

    def _write(self, place: str, content: str | bytes) -> None:
        path = self._built.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._built.pages += place.endswith(".html")

    def _weigh(self) -> None:
        sizes = {file: file.stat().st_size for file in self._built.folder.rglob("*") if file.is_file()}
        self._built.size = sum(sizes.values())
        if self._built.size <= BYTES_MAX:
            return
        largest = sorted(sizes, key=lambda file: -sizes[file])[:_LARGEST]
        named = ", ".join(f"{file.relative_to(self._built.folder)} ({sizes[file] / 1e6:.1f} MB)" for file in largest)
        raise LabError(
            f"the gallery would have {self._built.size / 1e6:.1f} MB, and {BYTES_MAX / 1e6:.0f} are the most;"
            f" the largest: {named}",
            way_on="leave the folders of results out that have them",
        )


def _up(place: str, target: str) -> str:
    """Give a place below the gallery as a page at another one names it."""
    return os.path.relpath(target or ".", posixpath.dirname(place) or ".")


def _told(
    effective: Effective, counting: Sequence[lines.RecordedRun], shown: Shown | None, link: str | None
) -> dict[str, Any]:
    """Say what a page tells of a scenario."""
    scenario = effective.scenario
    return {
        "slug": effective.slug,
        "title": scenario.title,
        "question": scenario.question,
        "published": scenario.published.says if scenario.published else None,
        "claim": experiments.claim(effective, counting),
        "hold": experiments.count(counting),
        "page": Documents().page(f"scenarios/{effective.slug}/README.md"),
        "report": link,
        "kind": "comparison" if scenario.arms else "report",
        "state": shown.state if shown and link else None,
        "started": shown.started if shown and link else None,
        "command": suggested.make("run", {"SCENARIO": effective.slug}),
    }


def _other(kind: str, name: str, shown: Shown) -> dict[str, Any]:
    place = f"{shown.folder}/derived/comparison.html"
    return {"kind": kind, "name": name, "report": place, "state": shown.state, "started": shown.started}
