import re
from typing import Any

import pytest
from rich.console import Console

from lab.console import listing
from lab.scenarios.catalogue import load_catalogue


@pytest.fixture(scope="module")
def summaries() -> list[dict[str, Any]]:
    return [listing.summarize_entry(subject.name, entry) for subject in load_catalogue() for entry in subject.entries]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_name_can_be_copied_and_every_sentence_read(
    width: int, summaries: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    listing.print_list(Console(width=width), summaries)
    shown = capsys.readouterr().out
    assert {one["scenario"] for one in summaries} <= set(shown.split())
    for word in {word for one in summaries for word in one["shows"].split()}:
        assert word in shown
    assert not re.search(r"…", shown)
    assert ("k6 → nginx → backend" in shown) == (width >= 140)
    places = [shown.index(one) for one in dict.fromkeys(summary["subject"] for summary in summaries)]
    assert places == sorted(places)
