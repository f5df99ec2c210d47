"""The answer of a comparison: one sentence for each difference, with its interval and what it is worth."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare_runs, compare_series, judge_series
from analysis.pages import comparison_page
from tests.analysis.results import Results

if TYPE_CHECKING:
    from tests.analysis.support import Record

LESS = "arms.on.client.latency_ms.mean < arms.off.client.latency_ms.mean"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def latencies(*values: float | None) -> list[Record]:
    return [{"figures": {"client.latency_ms.mean": value}} for value in values]


def answer(results: Results, off: list[Record], on: list[Record]) -> list[str]:
    return compare_series(results.series({"off": off, "on": on}, {"faster": LESS}))[0].answer


def test_a_difference_is_told_with_its_interval_and_the_claim(results: Results) -> None:
    told, claim = answer(results, latencies(1.20, 1.22, 1.18, 1.21), latencies(0.60, 0.58, 0.62, 0.61))
    assert re.fullmatch(
        r"The mean answer time is 0\.6 ms lower with on than with off: 0\.6\d* in place of 1\.2 ms"
        r" \(95 %: 0\.5\d* to 0\.6\d*; 4 repetitions of each\)\.",
        told,
    )
    assert claim == "The claim holds."


def test_too_few_repetitions_say_how_many_would_do(results: Results) -> None:
    told, claim = answer(results, latencies(1.2, 1.5, 0.9, 1.3), latencies(1.0, 1.3, 0.9, 0.8))
    assert claim == "1 of 1 claim cannot be decided: faster."
    assert told.startswith(("4 repetitions cannot tell whether the mean answer time differs", "The mean answer time d"))


def test_what_is_the_same_is_told_so(results: Results) -> None:
    told, claim = answer(results, latencies(1.0, 1.0, 1.0, 1.0), latencies(1.0, 1.0, 1.0, 1.0))
    assert told == "The mean answer time is the same with off and with on."
    assert claim == "1 of 1 claim does not hold: faster."


def test_what_is_not_known_is_told_so(results: Results) -> None:
    told, _ = answer(results, latencies(1.0, 1.0), latencies(None, None))
    assert told.startswith("The mean answer time is not known of both off and on: ")


def test_one_run_of_each_tells_no_difference_from_chance(results: Results) -> None:
    a, b = results.run(), results.run({"client.latency_ms.mean": 9.0})
    assert compare_runs([a], [b]).answer == [
        "One run of A or B does not tell a difference from chance: repeat both, and compare groups of runs."
    ]


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (
            {"found": 101, "predicted": 101, "goal": "smallest"},
            "smallest {knob} with which {until} holds is 101. The model had it there, too.",
        ),
        (
            {"found": 2_101, "predicted": 103, "goal": "largest"},
            "largest {knob} with which {until} holds is 2,101. The model had it at 103.",
        ),
        (
            {"found": None, "why": "always"},
            "No value of {knob} was found at which it begins to hold that {until}: always.",
        ),
    ],
)
def test_a_search_says_what_it_found(results: Results, search: Record, told: str) -> None:
    asked = {"knob": "backend.max_connections", "until": "client.requests.failed == 0", "low": 1, "high": 200}
    folder = results.series({"off": latencies(1.0)}, kind="search", search=asked | search)
    assert compare_series(folder)[0].answer[0].removeprefix("The ") == told.format(**asked)


def test_a_search_is_its_tries_in_their_order(results: Results) -> None:
    knob = "backend.max_connections"
    folder = results.series(
        {"low": latencies(1.0), "high": latencies(1.0, 1.0)},
        kind="search",
        search={"knob": knob, "until": "client.requests.failed == 0", "found": 9, "predicted": 8, "goal": "smallest"},
        knobs={"low": {knob: 7}, "high": {knob: 9}},
        holds={"low": "false", "high": "true"},
    )
    found = compare_series(folder)[0].search
    assert found is not None
    assert [(each.value, each.holds) for each in found.tries] == [(7, "false"), (9, "true"), (9, "true")]
    assert (found.predicted, found.found, found.goal) == (8, 9, "smallest")


def test_a_series_that_says_nothing_of_what_it_is_about_says_what_to_do(results: Results) -> None:
    (told,) = compare_series(results.series({"off": latencies(1.0), "on": latencies(2.0)}))[0].answer
    assert told.startswith("Neither figures: nor a claim over the arms says what this series is about.")
    (told,) = compare_series(results.series({"off": latencies(1.0)}))[0].answer
    assert told.startswith("Nothing can be compared yet")


def test_a_matrix_says_where_users_failed(results: Results) -> None:
    failing = [{"figures": {"client.requests.failed": 4}}] * 2
    folder = results.series({"off": [{"figures": {"client.requests.failed": 0}}] * 2, "on": failing}, kind="matrix")
    assert compare_series(folder)[0].answer[0] == "Users failed in 1 of 2 cells: on."


def test_a_matrix_of_two_axes_says_where_the_border_lies(results: Results) -> None:
    def run(failed: int) -> list[Record]:
        return [{"figures": {"client.requests.failed": failed}}]

    cells = {"few-3": run(0), "few-9": run(4), "many-3": run(0), "many-9": run(0)}
    levels = {name: {"places": name.split("-")[0], "users": name.split("-")[1]} for name in cells}
    found = compare_series(results.series(cells, kind="matrix", levels=levels))[0].answer
    assert [*found[:2], found[-1]] == [
        "Users failed in 1 of 4 cells.",
        "users by places: 3 is clean with few, many; 9 fails with few and is clean with many.",
        "Each cell ran once, so nothing tells how far repetitions lie apart.",
    ]


def test_the_page_begins_with_the_answer_and_leads_to_the_reports(results: Results, tmp_path: Path) -> None:
    folder = results.series({"off": latencies(1.2, 1.2, 1.2, 1.2), "on": latencies(0.6, 0.6, 0.6, 0.6)}, {"f": LESS})
    comparison_page.write(compare_series(folder)[0], folder / "derived", tmp_path / "results", judge_series(folder))
    page = (folder / "derived" / "comparison.html").read_text()
    order = [
        "How long?",
        "0.6 ms lower with on than with off",
        "Verdict: reproduced",
        "The figure that it is about",
        "What moved",
        "<h2>Runs",
    ]
    found = [page.index(part) for part in order]
    assert found == sorted(found)
    link = page.split('<a href="')[1].split('"')[0]
    assert (folder / "derived" / link).resolve().parent.is_dir()


def test_the_page_sets_what_was_published_beside_what_was_measured(results: Results, tmp_path: Path) -> None:
    folder = results.series({"off": latencies(1.2, 1.2, 1.2, 1.2), "on": latencies(0.6, 0.6, 0.6, 0.6)}, {"f": LESS})
    content = json.loads((folder / "series.json").read_text())
    content["published"] = {
        "says": "Half",
        "here": {"off, ms": "arms.off.client.latency_ms.mean", "on, ms": "arms.on.client.latency_ms.mean"},
        "there": {"off, ms": 2.215},
    }
    content["leaves_open"] = "the order alone"
    (folder / "series.json").write_text(json.dumps(content))
    judged = judge_series(folder)
    assert judged.published is not None
    assert [(one.name, one.published) for one in judged.published.here] == [("off, ms", 2.215), ("on, ms", None)]
    comparison_page.write(compare_series(folder)[0], folder / "derived", tmp_path / "results", judged)
    page = (folder / "derived" / "comparison.html").read_text()
    assert "What stands of the published claim: the order alone." in page
    assert '<th scope="col" class="number">published</th>' in page
    assert '<td class="number" data-label="published">-</td>' in page
