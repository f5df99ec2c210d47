"""The page of a comparison: one file that reaches nothing and in which nothing of a run can act, and its time lines."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import analysis.reports
from analysis.compare import compare_runs, compare_series
from analysis.reports import comparison_page
from tests.analysis.results import Results

if TYPE_CHECKING:
    from tests.analysis.support import Record

VENDOR = Path(analysis.reports.__file__).parent / "vendor"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028"


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style") and data.strip():
            self.texts.append((attributes.get("type") or tag, data))

    @property
    def policy(self) -> str:
        return next(str(attributes["content"]) for _, attributes in self.elements if "http-equiv" in attributes)

    @property
    def data(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(next(text for kind, text in self.texts if kind == "application/json"))
        return content


def page_of(results: Results, comparison: Any) -> str:  # noqa: ANN401  a Comparison
    comparison_page.write(comparison, results.root, results.root)
    return (results.root / "comparison.html").read_text()


@pytest.mark.parametrize("kind", ["arms", "matrix", "search"])
def test_a_series_of_which_no_run_is_complete_has_a_page_without_comparisons(results: Results, kind: str) -> None:
    comparison = compare_series(results.series({"off": [], "on": []}, kind=kind))[0]

    assert (comparison.groups, comparison.pairs) == ([], [])
    assert "missing" in page_of(results, comparison)


@pytest.fixture
def hostile(results: Results) -> Page:
    figures = {f"kernel.backend.TcpExt.{HOSTILE}": 3}
    a = results.run({f"kernel.backend.TcpExt.{HOSTILE}": 900}, {"load.path": HOSTILE})
    spoilt = results.run(figures, {"load.path": "/x"}, status="aborted", reason=HOSTILE)
    return Page(page_of(results, compare_runs([a], [results.run(figures, {"load.path": "/x"}), spoilt])))


def test_nothing_of_a_run_becomes_markup_and_the_page_loads_no_other_file(hostile: Page) -> None:
    assert not [tag for tag, _ in hostile.elements if tag == "img"]
    assert [tag for tag, _ in hostile.elements].count("script") == 6
    assert any(HOSTILE in effect["figure"] for effect in hostile.data["pairs"][0]["effects"])
    for tag, attributes in hostile.elements:
        assert not {"src", "style"} & attributes.keys(), tag
        # It leads to all runs and to the reports of its own, and nowhere else.
        assert re.fullmatch(r"\./([\w-]+/[\w-]+/report|index)\.html", attributes.get("href") or "./index.html"), tag
        assert not [name for name in attributes if name.startswith("on")], tag


def test_the_policy_lets_in_the_page_s_own_scripts_and_styles_by_hash_and_nothing_else(hostile: Page) -> None:
    directives = dict(directive.strip().split(" ", 1) for directive in hostile.policy.split(";"))
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, text in hostile.texts:
        if kind in hashes:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")

    assert directives["default-src"] == "'none'"
    assert directives["script-src"].split() == hashes["script"]
    assert directives["style-src"].split() == hashes["style"]
    assert len(hashes["script"]) == 5


def test_echarts_is_the_release_as_published(pytestconfig: pytest.Config) -> None:
    record = (pytestconfig.rootpath / "docs" / "adr" / "0007-pages-are-one-file-with-echarts.md").read_text()
    digest = hashlib.sha256((VENDOR / "echarts.min.js").read_bytes()).hexdigest()

    assert digest in record
    assert {path.name for path in VENDOR.iterdir()} == {
        "echarts.min.js", "echarts.LICENSE", "echarts.LICENSE-d3", "echarts.NOTICE", "zrender.LICENSE",
    }  # fmt: skip


def test_a_large_matrix_stays_below_two_megabytes(results: Results) -> None:
    cells = {f"{users}-{places}": users * 8 + places for users in range(9) for places in range(8)}

    def figures(number: int) -> Record:
        return {f"kernel.backend.TcpExt.Counter{index}": 100_000 * number + index for index in range(200)}

    runs: dict[str, list[Record]] = {
        cell: [{"figures": figures(number)}, {"figures": figures(number + 1)}] for cell, number in cells.items()
    }
    levels = {cell: dict(zip(("users", "places"), cell.split("-"), strict=True)) for cell in cells}
    folder = results.series(runs, kind="matrix", levels=levels)
    text = comparison_page.html(compare_series(folder)[0])

    assert len(text.encode()) < 2_000_000
    assert len(Page(text).data["matrix"]["cells"]) == 72


def test_beside_the_charts_of_a_matrix_stands_a_table_of_their_numbers_with_intervals(results: Results) -> None:
    failed = {"9": [1000, 1000], "20": [2000, 2400]}
    runs: dict[str, list[Record]] = {
        cell: [{"figures": {"client.users.failed": count}} for count in counts] for cell, counts in failed.items()
    }
    levels = {cell: {"load.users": cell} for cell in failed}
    text = page_of(results, compare_series(results.series(runs, kind="matrix", levels=levels))[0])
    shown = Page(text).data["matrix"]["figures"]
    _, _, table = text.partition("<summary>Numbers of each cell, with intervals</summary>")
    rows = re.findall(r"<tr>(.*)</tr>", table.partition("</table>")[0])

    assert re.findall(r"<th[^>]*>([^<]*)</th>", rows[0]) == ["figure", "9", "20"]
    assert [re.findall(r"<th[^>]*>([^<]*)</th>", row) for row in rows[1:]] == [[name] for name in shown]
    (users,) = [row for row in rows if ">client.users.failed<" in row]
    assert re.search(r'<td class="number">1,000</td><td class="number">2,200 \[2,\d00, 2,\d00\]</td>', users)


def test_the_page_of_two_groups_has_what_nobody_set_first_and_says_what_chance_makes(results: Results) -> None:
    a, b = ([results.run({"client.users.failed": count + each}) for each in range(4)] for count in (10, 90))
    other = results.run(knobs={"load.users": 7}, images={"backend": "sha256:" + "1" * 64})
    single, several = (page_of(results, compare_runs(*pair)) for pair in ((a[:1], [other]), (a, b)))
    (chart,) = [attributes for _, attributes in Page(single).elements if "data-pair" in attributes]

    assert (chart["role"], chart["aria-label"]) == ("img", "Chart: B vs. A. The tables below have its numbers.")
    assert single.index("Unintended differences") < single.index("load.users")
    assert "The noise is unknown." in single
    assert "By chance alone, about 0 figures would exceed the noise." in several


def test_the_page_of_a_series_begins_with_the_answer_and_leads_to_the_reports(results: Results) -> None:
    mean = "client.latency_ms.mean"
    arms: dict[str, list[Record]] = {
        arm: [{"figures": {mean: value}}] * 4 for arm, value in {"off": 1.2, "on": 0.6}.items()
    }
    here = {f"{arm}, ms": f"arms.{arm}.{mean}" for arm in arms}
    folder = results.series(
        arms,
        {"faster": f"arms.on.{mean} < arms.off.{mean}"},
        published={"description": "Half", "here": here, "there": {"off, ms": 2.215}},
        leaves_open="the order alone",
    )
    comparison, judged = compare_series(folder)
    (folder / "derived").mkdir()
    comparison_page.write(comparison, folder / "derived", results.root, judged)
    page = (folder / "derived" / "comparison.html").read_text()
    order = [
        "How long?",
        "0.6 ms lower with on than with off",
        "Published: Half.",
        "Verdict: reproduced",
        "Of the published claim, this leaves open: the order alone.",
        '<th scope="col" class="number">published</th>',
        '<td class="number" data-label="published">2.21</td>',
        '<td class="number" data-label="published">-</td>',
        "Main figure",
        "What changed",
        "<h2>Runs",
    ]
    found = [page.index(part) for part in order]
    assert found == sorted(found)
    found_values = re.findall(r'<td>(off|on)</td><td class="number">([\d.]+)</td><td>', page.partition("<h2>Runs")[2])
    assert found_values == [("off", "1.2")] * 4 + [("on", "0.6")] * 4
    link = page.split('<a href="')[1].split('"')[0]
    assert (folder / "derived" / link).resolve().parent.is_dir()


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
        (FAILED, "Requests by outcome and cause"),
        ("listen.backend.depth.max", "Accept queue and its limit"),
        ("sockets.k6.time_wait.max", "Sockets in TIME_WAIT and the port range"),
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
    folder = results.series({"a": failed(1), "b": failed(2)})
    assert comparison_page.draw_timelines(compare_series(folder)[0], results.root) is None
    drawn = beside(results, {"a": failed(1), "b": failed(2)}, underived="b", figures=[FAILED])

    assert drawn is not None
    for chart in drawn["charts"]:
        assert [run["chart"] is not None for run in chart["runs"]] == [True, False]
        assert "has no" in chart["runs"][1]["missing"]


def test_of_many_groups_some_are_drawn_from_the_least_to_the_most(results: Results) -> None:
    drawn = beside(results, {f"cell{count}": failed(count) for count in (11, 3, 9, 1, 7, 5, 10)}, figures=[FAILED])

    assert drawn is not None
    assert [run["group"] for run in drawn["charts"][0]["runs"]] == [f"cell{n}" for n in (1, 3, 5, 9, 10, 11)]
    assert drawn["left_out"] == ["6 of 7 cells, from the lowest to the highest value."]


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
