"""A run's folder may come from anybody: what is derived of it is written there and nowhere else."""

from __future__ import annotations

from pathlib import Path

from analysis.derivation import analyse
from analysis.reports import run_report
from tests.analysis.whole import make_run

DERIVED = ("verdict.json", "ledger.json", "figures.json", "ladders.json")
TABLES = ("requests.parquet", "flows.parquet", "timeline.parquet", "readings.parquet")


def test_a_link_in_place_of_derived_leads_nowhere(tmp_path: Path) -> None:
    folder, outside = make_run(tmp_path / "run"), tmp_path / "outside"
    outside.mkdir()
    run = folder.write()
    (run / "derived").symlink_to(outside)
    analyse(run)
    assert list(outside.iterdir()) == []
    assert (run / "derived" / "verdict.json").is_file()


def test_a_link_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    run, outside = make_run(tmp_path / "run").write(), tmp_path / "outside"
    outside.write_text("another's")
    (run / "derived").mkdir()
    files = [*(run / "derived" / name for name in (*DERIVED, *TABLES)), run / "report.html"]
    for file in files:
        file.symlink_to(outside)
        file.with_name(f"{file.name}.partial").symlink_to(outside)
    analyse(run)
    run_report.write(run)
    assert outside.read_text() == "another's"
    assert [file for file in files if file.is_symlink() or not file.is_file()] == []
