"""A gallery: every document and lesson is a page, every link leads to something, and it needs no network."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from analysis.reports import rendering
from lab import paths
from lab.cli import main
from lab.errors import BadInput, LabError
from lab.experiments import outcome
from lab.gallery import gallery_folder
from lab.gallery.document_pages import Documents
from lab.gallery.gallery_folder import Gallery

EXAMPLE = paths.ROOT / "docs" / "example"
SLUG = "accept-queue-overflow"
RUN = "20261121T141444Z-default-r01"
FEW = (SLUG, "accept-queue-healthy")


@pytest.fixture(scope="module", autouse=True)
def _few() -> Iterator[None]:
    """Two scenarios tell as much as all: what a scenario is, is tested elsewhere."""
    planned = [outcome.planned(slug) for slug in FEW]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcome, "all_planned", lambda: iter(planned))
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    put(folder)
    return folder


@pytest.fixture(scope="module")
def gallery(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return gallery_folder.build([results], tmp_path_factory.mktemp("built") / "gallery")


def put(results: Path, run: str = RUN, verdict: str = "reproduced", **manifest: object) -> None:
    """A run that is the example's, but for its verdict and some of its manifest."""
    folder = results / SLUG / run
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("raw"))
    for file, changed in (("manifest.json", {"run": run, **manifest}), ("derived/verdict.json", {"verdict": verdict})):
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def links(gallery: Path) -> dict[str, list[str]]:
    """Where each page leads below the gallery, and what it loads."""
    return {
        str(page.relative_to(gallery)): [
            unescape(link) for link in re.findall(r'(?:href|src)="([^"#]+)(?:#[^"]*)?"', page.read_text())
        ]
        for page in gallery.rglob("*.html")
    }


def test_every_document_has_a_page(gallery: Gallery) -> None:
    for name in ("README.md", "docs/map.md", "docs/workshops/one-day.md", f"scenarios/{SLUG}/ANSWERS.md"):
        assert (gallery.folder / "pages" / name).with_suffix(".html").is_file()
    assert gallery.pages == len(links(gallery.folder)) > len(list(paths.SCENARIOS.glob("*/README.md")))


def test_every_link_leads_to_something_in_the_gallery_or_to_another_site(gallery: Gallery) -> None:
    broken = [
        (page, link)
        for page, found in links(gallery.folder).items()
        for link in found
        if not re.match(r"https?://", link) and not (gallery.folder / page).parent.joinpath(unquote(link)).exists()
    ]
    assert broken == []


def test_scripts_and_styles_are_there_once(gallery: Gallery) -> None:
    report = (gallery.folder / SLUG / RUN / "report.html").read_text()
    assert 'src="../../assets/echarts.min.js"' in report
    assert len(report) < len(rendering.shared_files()["echarts.min.js"])
    assert {file.name for file in (gallery.folder / "assets").iterdir()} == set(rendering.shared_files())


def test_a_lesson_leads_to_its_report_or_says_how_to_make_one(gallery: Gallery) -> None:
    lessons = {slug: (gallery.folder / f"pages/scenarios/{slug}/README.html").read_text() for slug in FEW}
    assert f'href="../../../{SLUG}/{RUN}/report.html"' in lessons[SLUG]
    assert "make run SCENARIO=accept-queue-healthy" in lessons["accept-queue-healthy"]
    assert gallery.without == ["accept-queue-healthy"]


def test_the_newest_of_the_best_runs_is_shown(tmp_path: Path) -> None:
    put(tmp_path / "a", "20261121T141444Z-default-r01", started="2026-11-21T14:14:44Z")
    put(tmp_path / "a", "20261122T000000Z-default-r01", started="2026-11-22T00:00:00Z")
    put(tmp_path / "b", "20261123T000000Z-default-r01", "not-reproduced", started="2026-11-23T00:00:00Z")
    put(tmp_path / "b", "20261124T000000Z-default-r01", started="2026-11-24T00:00:00Z", series="other")
    put(tmp_path / "b", "20261125T000000Z-default-r01", started="2026-11-25T00:00:00Z", status="aborted")
    built = gallery_folder.build([tmp_path / "a", tmp_path / "b"], tmp_path / "gallery")
    assert [page.parent.name for page in (built.folder / SLUG).glob("*/report.html")] == [
        "20261122T000000Z-default-r01"
    ]


def test_a_run_that_cannot_be_reported_is_left_out_with_its_reason(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / SLUG / RUN / "derived" / "ladders.json").unlink()
    built = gallery_folder.build([tmp_path], tmp_path / "gallery")
    assert SLUG in built.without
    assert "ladders.json" in built.left_out[0]


def test_a_series_that_is_none_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "series" / "x").mkdir(parents=True)
    (tmp_path / "series" / "x" / "series.json").write_text("{}")
    assert SLUG not in gallery_folder.build([tmp_path], tmp_path / "gallery").without


def test_no_link_of_a_folder_is_followed(tmp_path: Path, results: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / SLUG).symlink_to(results / SLUG)
    built = gallery_folder.build([tmp_path / "results"], tmp_path / "gallery")
    assert SLUG in built.without


def test_another_gallery_takes_its_place_and_nothing_else_does(tmp_path: Path, results: Path) -> None:
    to = tmp_path / "gallery"
    gallery_folder.build([results], to)
    (to / "old.html").write_text("old")
    gallery_folder.build([results], to)
    assert not (to / "old.html").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not a gallery"):
        gallery_folder.build([results], mine)
    assert (mine / "thesis.txt").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_one_that_is_too_large_is_refused_with_what_is_largest(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery_folder, "BYTES_MAX", 100_000)
    with pytest.raises(LabError, match=r"the largest: assets/echarts\.min\.js \(1\.1 MB\)"):
        gallery_folder.build([results], tmp_path / "gallery")
    assert not (tmp_path / "gallery").exists()


def test_the_command_says_where_it_is_and_what_it_lacks(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gallery", str(results), "--to", str(tmp_path / "gallery")])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "no run at hand of: accept-queue-healthy" in said
    assert re.search(r"\d+ pages, \d\.\d MB", said)


def test_folders_that_are_not_there_are_named_together(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        gallery_folder.build([tmp_path / "a", tmp_path / "b"], tmp_path / "gallery")
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize(
    ("document", "target", "led"),
    [
        ("docs/a.md", "b.md#part", "b.html#part"),
        ("docs/a.md", "../scenarios/x/README.md", "../scenarios/x/README.html"),
        ("docs/a.md", "picture.png", "picture.png"),
        ("docs/a.md", "#here", "#here"),
        ("docs/a.md", "https://example.org/x.md", "https://example.org/x.md"),
        ("docs/a.md", "../lab", None),
        ("docs/a.md", "missing.md", None),
        ("docs/a.md", "../../outside.md", None),
        ("docs/a.md", "key.pem", None),
    ],
)
def test_links_between_documents(tmp_path: Path, document: str, target: str, led: str | None) -> None:
    for name in ("docs/a.md", "docs/b.md", "scenarios/x/README.md", "docs/picture.png", "docs/key.pem", "lab/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path.parent / "outside.md").write_text("not ours")
    (tmp_path / document).write_text(f"[link]({target})")
    found = re.findall(r'href="([^"]*)"', str(Documents(tmp_path).html(document)))
    assert found == ([] if led is None else [led])
