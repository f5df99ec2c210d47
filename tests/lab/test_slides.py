"""A workshop's slides: every part of its page and the lessons that it runs, none too full, and one file each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab import paths
from lab.cli import main
from lab.teach import slides

WORKSHOPS = paths.ROOT / "docs" / "workshops"


@pytest.mark.parametrize("name", slides.names())
def test_each_part_of_a_workshop_has_its_slides(name: str) -> None:
    text = (WORKSHOPS / f"{name}.md").read_text()
    made = list(slides.slides(text))
    parts = re.findall(r"(?m)^## (.+)$", text)
    titles = [one.title for one in made if one.title in parts]
    assert list(dict.fromkeys(titles)) == parts
    lessons = set(re.findall(r"make lesson SCENARIO=([a-z-]+)", text))
    for slug in lessons:
        heading = (paths.SCENARIOS / slug / "README.md").read_text().partition("\n")[0].removeprefix("# ")
        assert {"Predict", "Explanation"} <= {one.title for one in made if one.of == heading}
    assert lessons
    assert all(one.text.strip() for one in made)


@pytest.mark.parametrize("name", slides.names())
def test_a_prediction_comes_before_its_explanation(name: str) -> None:
    made = list(slides.slides((WORKSHOPS / f"{name}.md").read_text()))
    first: dict[tuple[str, str], int] = {}
    for number, one in enumerate(made):
        first.setdefault((one.of, one.title), number)
    for (of, title), number in first.items():
        if title == "Explanation":
            assert first[of, "Predict"] < number


def test_the_slides_are_one_file_that_asks_for_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["slides"])
    assert end.value.code == 0
    written = sorted(tmp_path.glob("slides/*.html"))
    assert [file.stem for file in written] == slides.names()
    assert "the arrow keys" in capsys.readouterr().out
    for file in written:
        page = file.read_text()
        assert "default-src &#39;none&#39;" in page
        assert not re.search(r"<(?:img|script|link)[^>]*(?:src|href)=", page)
        assert "<a " not in page
        assert "&lt;details" not in page


def test_a_workshop_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["slides", "90-minute"])
    assert end.value.code == 2
    assert "90-minutes" in capsys.readouterr().err
