"""What became of an advice, said first after a run that follows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.console import advice
from lab.scenarios.resolve import resolve
from tests.lab.test_advice import recorded

ADVISED = "backend.max_connections=103"


def run(home: Path, name: str, *overrides: str, failed: int, slow: int = 0, cell: str = "default") -> Path:
    """A complete run of accept-queue-overflow, whose failures are those of a full accept queue."""
    folder = home / name
    folder.mkdir()
    causes = {"accept-queue-drop": failed, "waited-in-accept-queue": slow}
    requests = {"total": 103, "ok": 103 - failed, "failed": failed, "slow": slow}
    recorded(
        folder,
        resolve("accept-queue-overflow", list(overrides)),
        {name: count for name, count in causes.items() if count},
        cell=cell,
        requests=requests,
        failed_causes={"accept-queue-drop": failed} if failed else {},
    )
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"status": "complete", "cell": cell}))
    return folder


def test_a_run_that_follows_an_advice_says_what_became_of_the_failures(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=100)
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=0)
    said = advice.advice_outcome(after)
    assert said is not None
    assert said.startswith("100 failures → 0, with backend.max_connections = 103, as advised on ")
    assert said.endswith("20260101T000000Z")


def test_where_nobody_failed_it_says_so_of_the_slow_requests(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=0, slow=2)
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=0, slow=1)
    assert str(advice.advice_outcome(after)).startswith("2 slow requests → 1, ")


def test_an_advice_that_did_not_help_is_not_passed_over(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=1)
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=7)
    assert str(advice.advice_outcome(after)).startswith("1 failure → 7, ")


def test_the_run_before_it_is_found_behind_a_repetition(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=90)
    run(tmp_path, "20260101T000100Z", failed=100)
    run(tmp_path, "20260101T000200Z", ADVISED, failed=0)
    again = run(tmp_path, "20260101T000300Z", ADVISED, failed=0)
    assert str(advice.advice_outcome(again)).startswith("100 failures → 0, ")


@pytest.mark.parametrize(
    "overrides",
    [(), ("backend.max_connections=50",), (ADVISED, "backend.accept_count=2"), ("load.connect_timeout=10s",)],
)
def test_a_run_with_other_settings_follows_no_advice(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    run(tmp_path, "20260101T000000Z", failed=100)
    assert advice.advice_outcome(run(tmp_path, "20260101T000100Z", *overrides, failed=50)) is None


def test_neither_another_arm_nor_a_later_nor_a_broken_run_counts(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=100, cell="other")
    broken = run(tmp_path, "20260101T000001Z", failed=100)
    (broken / "derived" / "ledger.json").write_text("{}")
    torn = run(tmp_path, "20260101T000002Z", failed=100)
    (torn / "manifest.json").write_text("{")
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=0)
    run(tmp_path, "20260101T000200Z", failed=100)
    (tmp_path / "latest").symlink_to("20260101T000200Z")
    assert advice.advice_outcome(after) is None
