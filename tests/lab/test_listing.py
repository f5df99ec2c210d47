import re

import pytest
from rich.console import Console

from lab.console import listing
from lab.scenarios.catalogue import load_catalogue


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_name_can_be_copied_and_every_sentence_read(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    subjects = load_catalogue()
    summaries = [listing.summarize_entry(one.name, entry, whole=False) for one in subjects for entry in one.entries]
    listing.print_list(Console(width=width), summaries)
    shown = capsys.readouterr().out
    entries = [entry for subject in subjects for entry in subject.entries]
    assert {one.slug for one in entries} <= set(shown.split())
    for word in {word for one in entries for word in one.shows.split()}:
        assert word in shown
    assert not re.search(r"…", shown)
    places = [shown.index(subject.name) for subject in subjects]
    assert places == sorted(places)
