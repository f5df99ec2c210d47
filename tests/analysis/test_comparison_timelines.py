"""The time lines of a comparison's groups under one another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.compare import compare_series
from analysis.reports import comparison_page
from tests.analysis.results import Results

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
FAILED = "client.requests.failed"

Drawn = dict[str, Any]


def beside(results: Results, runs: dict[str, list[Drawn]], *, underived: str = "", **content: Any) -> Drawn | None:  # noqa: ANN401  as a series has
    """What a page draws of a series whose runs have figures of their own, and the example's time lines."""
    folder = results.series(runs, **content)
    for run in (results.root / "queue").iterdir():
        for file in (EXAMPLE / "derived").iterdir():
            if file.name not in ("figures.json", "verdict.json") and underived not in run.name.split("-"):
                shutil.copy(file, run / "derived")
        path = run / "manifest.json"
        example = json.loads((EXAMPLE / "manifest.json").read_text())
        path.write_text(json.dumps(json.loads(path.read_text()) | {"phases": example["phases"]}))
    return comparison_page.draw_timelines(compare_series(folder)[0], results.root)


def failed(*counts: int) -> list[Drawn]:
    return [{"figures": {FAILED: count}} for count in counts]


def test_the_run_in_the_middle_stands_for_its_group(results: Results) -> None:
    drawn = beside(results, {"few": failed(7, 1, 4), "many": failed(90, 80)}, figures=[FAILED])

    assert drawn is not None
    runs = drawn["charts"][0]["runs"]
    assert [(each["group"], each["run"].split("-")[0], each["why"]) for each in runs] == [
        ("few", "queue/20261121T080003Z", f"{FAILED} = 4"),
        ("many", "queue/20261121T080005Z", f"{FAILED} = 80"),
    ]


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        ("client.latency_ms.mean", "How long each request took"),
        (FAILED, "Requests that ended, by what became of them"),
        ("listen.backend.depth.max", "Accept queue: connections that wait for the server, against its limit"),
        ("sockets.k6.time_wait.max", "Sockets in TIME_WAIT, against the range of ports"),
        ("process.backend.cpu_percent.max", "Processor time by process"),
    ],
)
def test_the_time_line_that_shows_the_figure_comes_first(results: Results, figure: str, title: str) -> None:
    runs: dict[str, list[Drawn]] = {cell: [{"figures": {figure: number}}] for number, cell in enumerate(("a", "b"))}
    drawn = beside(results, runs, figures=[figure])

    assert drawn is not None
    titles = [chart["title"] for chart in drawn["charts"]]
    assert titles[0] == title
    assert len(titles) == len(set(titles)) > 4


def test_a_run_without_derived_tables_says_so_in_the_place_of_its_time_lines(results: Results) -> None:
    drawn = beside(results, {"a": failed(1), "b": failed(2)}, underived="b", figures=[FAILED])

    assert drawn is not None
    for chart in drawn["charts"]:
        assert chart["runs"][0]["chart"] is not None
        assert chart["runs"][1]["chart"] is None
        assert "has no" in chart["runs"][1]["missing"]


def test_without_any_time_line_there_is_nothing_to_draw(results: Results) -> None:
    folder = results.series({"a": failed(1), "b": failed(2)})

    assert comparison_page.draw_timelines(compare_series(folder)[0], results.root) is None


def test_of_many_groups_some_are_drawn_from_the_least_to_the_most(results: Results) -> None:
    drawn = beside(results, {f"cell{count}": failed(count) for count in (11, 3, 9, 1, 7, 5, 10)}, figures=[FAILED])

    assert drawn is not None
    assert [run["group"] for run in drawn["charts"][0]["runs"]] == [f"cell{n}" for n in (1, 3, 5, 9, 10, 11)]
    assert drawn["left_out"] == ["6 of 7 cells, from the least to the most."]


def test_the_page_keeps_its_size(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"a": failed(1), "b": failed(2)}
    whole = beside(results, runs, figures=[FAILED])
    assert whole is not None
    first, second, *_ = whole["charts"]
    monkeypatch.setattr(comparison_page, "_BYTES_MAX", len(json.dumps(first)) + len(json.dumps(second)) + 10)
    cut = beside(results, runs, figures=[FAILED])

    assert cut is not None
    assert [chart["title"] for chart in cut["charts"]] == [first["title"], second["title"]]
    assert whole["charts"][2]["title"] in cut["left_out"][0]
