"""docs/reliability.md says what was seen, what was seen is what is due, and every fault of the table can be done."""

import json
from pathlib import Path

import pytest

from lab.errors import ExitCode
from tests.faults import reliability, strikes
from tests.faults.table import CELLS, REAL, REAL_FAULTS, REAL_PHASES

RECORDS = reliability.load()


def test_the_document_has_what_was_seen() -> None:
    assert reliability.generated(RECORDS) in reliability.DOCUMENT.read_text(), "make test-faults"


@pytest.mark.parametrize("cell", RECORDS)
def test_what_was_seen_is_what_has_to_be(cell: tuple[str, str]) -> None:
    seen, due = reliability.shown(RECORDS[cell]), reliability.expected(cell)
    # Whether containers stay may be a matter of moments.
    assert (seen if REAL[cell].stays is not None else seen.removesuffix(" ¹")) == due


def test_every_fault_can_be_done() -> None:
    assert {fault for fault, _ in REAL} == strikes.STRIKES.keys() <= REAL_FAULTS.keys()
    assert {phase for _, phase in REAL} == set(REAL_PHASES)


def test_what_both_try_has_the_same_word() -> None:
    # In memory an engine that went away has taken nothing with it.
    both = [cell for cell in REAL if cell in CELLS and not cell[0].startswith("engine")]
    assert both
    assert [REAL[cell].status for cell in both] == [CELLS[cell].status for cell in both]


def test_a_fault_that_does_not_exist_is_refused_with_those_that_do() -> None:
    assert reliability.refused("disk full, KILL") is None
    assert "there is no fault 'disk ful'; there are: INT, INT twice, " in str(reliability.refused("disk ful"))
    assert reliability.main(["--known", "disk ful"]) == ExitCode.BAD_INPUT


def test_what_is_seen_takes_the_place_of_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reliability, "DOCUMENT", tmp_path / "reliability.md")
    monkeypatch.setattr(reliability, "RECORDS", tmp_path / "reliability.jsonl")
    monkeypatch.setattr(reliability, "_versions", lambda: ("6.1", "26.1", "2.26"))
    reliability.DOCUMENT.write_text(f"before\n{reliability.BEGIN}\n{reliability.END}\nafter\n")
    seen = tmp_path / "seen"
    good = {"fault": "KILL", "phase": "load", "status": "running", "code": -9, "status_after": "aborted", "stays": True}
    seen.write_text(json.dumps(good | {"wrong": []}) + "\n")
    assert reliability.main([str(seen)]) == 0
    assert "| not tried yet | not tried yet | running → aborted, killed ¹ |" in reliability.DOCUMENT.read_text()
    seen.write_text(json.dumps(good | {"wrong": ["left behind: k6"]}) + "\n")
    assert reliability.main([str(seen)]) == 1
    text = reliability.DOCUMENT.read_text()
    assert "| not tried yet | not tried yet | **wrong** |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "wrong: KILL, load: left behind: k6" in capsys.readouterr().out
