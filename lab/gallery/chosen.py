"""What a gallery shows of each scenario: the newest of its runs with the best verdict, with nothing set otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.reports import index
from formats import series as series_file

# Of these states, from the best on; others say nothing of a scenario.
_STATES = ("reproduced", "not-reproduced", "inconclusive")


@dataclass(frozen=True)
class Shown:
    """A run, or a series.

    Attributes:
        results: the folder of results in which it lies.
        folder: below that.
        name: the scenario, or the matrix.
        state: its verdict.
        started: UTC, as `YYYY-MM-DD hh:mm:ss`.
    """

    results: Path
    folder: str
    name: str
    state: str
    started: str


def runs(results: Iterable[Path], slugs: Iterable[str]) -> dict[str, Shown]:
    """Choose a run of each scenario, with nothing set otherwise and of no series, where there is one."""
    found = {slug: list(_runs(results, slug)) for slug in slugs}
    return {slug: _best(candidates) for slug, candidates in found.items() if candidates}


def series(results: Iterable[Path]) -> dict[tuple[str, str], Shown]:
    """Choose a whole series of each scenario with arms, of each matrix and of each search, by its kind and its name."""
    found: dict[tuple[str, str], list[Shown]] = {}
    for folder in results:
        for one in index.list_series(folder):
            try:
                described = series_file.load_series(folder / one.folder)
            except (OSError, ValueError):
                continue
            if described.status == "complete" and not described.overrides and one.state in _STATES:
                shown = Shown(folder, one.folder, described.name, one.state, one.started)
                found.setdefault((described.kind, described.name), []).append(shown)
    return {key: _best(candidates) for key, candidates in found.items()}


def _runs(results: Iterable[Path], slug: str) -> Iterator[Shown]:
    for folder in results:
        for one in index.runs_of_scenario(folder, slug):
            if one.state in _STATES and one.series is None and not one.differed:
                yield Shown(folder, one.folder, slug, one.state, one.started)


def _best(candidates: Sequence[Shown]) -> Shown:
    newest = sorted(candidates, key=lambda one: one.started, reverse=True)
    return min(newest, key=lambda one: _STATES.index(one.state))
