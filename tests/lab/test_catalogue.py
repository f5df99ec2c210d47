"""The catalogue names each of the lab's scenarios once, and what it says of them is so."""

import json
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from lab import paths
from lab.console.next_steps import FIRST_LESSON
from lab.scenarios.catalogue import OTHERS, load_catalogue
from lab.scenarios.places import slugs
from tests.lab.support import MINIMAL, connlab
from tools.recording import recorded_runs

_SECONDS = {"s": 1, "min": 60}


def test_it_names_each_scenario_once_and_begins_with_the_first_lesson() -> None:
    catalogue = load_catalogue()
    named = [entry.slug for subject in catalogue for entry in subject.entries]
    assert Counter(named) == Counter(slugs())
    assert OTHERS not in [subject.name for subject in catalogue]
    assert named[0] == FIRST_LESSON


def test_a_scenario_takes_about_as_long_as_its_recorded_runs() -> None:
    recorded = recorded_runs.read()
    for entry in (entry for subject in load_catalogue() for entry in subject.entries):
        number, unit = entry.takes.split()
        took = median(line.took_s for line in recorded if line.scenario == entry.slug)
        assert took / 1.5 < int(number) * _SECONDS[unit] < took * 1.5, entry.slug


def test_a_scenario_that_it_does_not_name_is_listed_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for slug in ("aaa", FIRST_LESSON):
        (tmp_path / slug).mkdir()
        (tmp_path / slug / "scenario.yaml").write_text(MINIMAL)
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path)
    assert [(one.name, [entry.slug for entry in one.entries]) for one in load_catalogue()] == [
        ("The accept queue", [FIRST_LESSON]),
        (OTHERS, ["aaa"]),
    ]
    connlab("list", "--json")
    listed = json.loads(capsys.readouterr().out)
    assert [(one["scenario"], one["subject"], one["level"]) for one in listed] == [
        (FIRST_LESSON, "The accept queue", 1),
        ("aaa", OTHERS, None),
    ]
