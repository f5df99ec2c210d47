"""`connlab report` and `connlab open`: a run's page again, and the index of all."""

import json
import os
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import paths
from lab.errors import ExitCode
from lab.runs import run_results
from tests.analysis.support import damage_pages
from tests.analysis.whole import make_run
from tests.lab.support import connlab

PROGRAM = Path(__file__).parents[2] / ".cache" / "bin" / "flows"
RUN = "queue/20251121T072640Z-default-r01"


@pytest.fixture
def folder(elsewhere: Path) -> Path:
    """A run with its raw files, and nothing derived from them."""
    found = elsewhere / "results" / RUN
    found.mkdir(parents=True)
    return make_run(found).write()


@pytest.fixture
def derived(elsewhere: Path, derived_run: Callable[[Path], Path]) -> Path:
    """The same with all that is derived from it."""
    return derived_run(elsewhere / "results" / RUN)


def test_a_run_that_was_not_analysed_is_analysed_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("report", RUN) == ExitCode.REPRODUCED

    assert capsys.readouterr().out.splitlines()[0] == str(folder / "report.html")
    assert (folder / "derived" / "verdict.json").is_file()
    assert "100 of 103 requests failed" in (folder / "report.html").read_text()
    assert f'href="{RUN}/report.html"' in (paths.RESULTS / "index.html").read_text()


def test_a_run_with_a_table_that_is_damaged_within_is_analysed_again(derived: Path) -> None:
    damage_pages(derived / "derived" / "requests.parquet")

    assert connlab("report", RUN) == ExitCode.REPRODUCED
    assert "100 of 103 requests failed" in (derived / "report.html").read_text()


def test_an_analysis_ends_with_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connlab("analyse", RUN)

    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_report_is_opened_where_nothing_can_be_written(derived: Path, tmp_path: Path) -> None:
    (derived / "report.html").unlink(missing_ok=True)
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'

    def closed(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        connlab = [str(Path(sys.executable).with_name("connlab")), command, str(derived)]
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", mount, str(derived), *connlab],
            env=os.environ | environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    (tmp_path / "free").mkdir()
    opened = closed("open", TMPDIR=str(tmp_path / "free"), DISPLAY="", WAYLAND_DISPLAY="")
    assert (opened.returncode, opened.stderr) == (0, "")
    (page,) = (tmp_path / "free").glob("*/report.html")
    assert str(page) in opened.stdout
    assert "100 of 103 requests failed" in page.read_text()

    told = closed("report")
    assert told.returncode == ExitCode.LAB_FAILED
    assert told.stderr.startswith(f"connlab: {derived / 'report.html'}: Read-only file system")
    assert "hint: a report that is only looked at needs no such folder: make open RUN=" in told.stderr


def test_a_folder_in_the_place_of_the_report_is_said_with_the_hint(
    derived: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = derived / "report.html"
    page.unlink(missing_ok=True)
    page.mkdir()

    for command in ("analyse", "report"):
        assert connlab(command, RUN) == ExitCode.LAB_FAILED
        said = capsys.readouterr().err
        assert f"{page}: a folder stands where this file belongs" in said
        assert command == "report" or "hint: move that folder away, then analyse it again: make analyse" in said


def test_a_file_in_the_place_of_the_folder_of_derived_files_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "derived").write_text("in the way")

    assert connlab("analyse", RUN) == ExitCode.LAB_FAILED
    assert f"{folder / 'derived'}: File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("none", "CONNLAB_FLOWS names no file; hint: `connlab setup` (make setup) makes it"),
        ("broken", "flows ended with exit code 1"),
        ("earlier", "flows: flag provided but not defined: -packets; hint: `connlab setup` (make setup) makes it"),
    ],
)
def test_without_the_program_that_reads_captures_nothing_is_written(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    why: str,
) -> None:
    without_packets = "flows: flag provided but not defined: -packets"
    for name, script in (
        ("broken", "exit 1"),
        ("earlier", f'[ "$1" != --packets ] || {{ echo "{without_packets}" >&2; exit 2; }}\nexec {PROGRAM} "$@"'),
    ):
        (folder.parent / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder.parent / name).chmod(0o755)
    monkeypatch.setenv("CONNLAB_FLOWS", str(folder.parent / program))

    for command in ("analyse", "report"):
        assert connlab(command, RUN) == ExitCode.LAB_FAILED
        assert why in capsys.readouterr().err
    assert {each.name for each in folder.iterdir()} == {"manifest.json", "raw"}


def test_a_run_without_captures_needs_no_program_that_reads_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNLAB_FLOWS", "/none")
    (folder / "raw" / "backend-1" / "collector" / "capture.pcap").unlink()

    assert connlab("analyse", RUN) == ExitCode.INCONCLUSIVE


def test_a_run_elsewhere_leaves_the_index_alone(derived: Path, tmp_path: Path) -> None:
    copy = derived.rename(tmp_path / "copy")
    run_results.ensure_report(copy)

    assert (copy / "report.html").is_file()
    assert not (paths.RESULTS / "index.html").exists()


def test_the_newest_run_is_opened(
    derived: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")

    def open_page(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)

    assert connlab("open") == ExitCode.REPRODUCED
    assert opened == [(derived / "report.html").as_uri()]
    assert "no browser" not in capsys.readouterr().out


def test_a_cell_of_a_search_is_not_the_newest_run_that_is_opened(derived: Path) -> None:
    cell = shutil.copytree(derived, derived.parent / "20261121T072640Z-accept-count-2-r01")
    file = cell / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"series": "20261121T072600Z-search-queue"}))
    assert run_results.newest_run() == derived
    shutil.rmtree(derived)
    assert run_results.newest_run() == cell


def test_without_a_screen_the_page_is_named(
    derived: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")

    assert connlab("open", "--json") == ExitCode.REPRODUCED
    assert json.loads(capsys.readouterr().out) == {"report": str(derived / "report.html"), "opened": False}


def test_where_there_is_no_run_there_is_a_hint(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("open") == ExitCode.BAD_INPUT

    said = capsys.readouterr().err
    assert f"no run below {elsewhere / 'results'}" in said
    assert "make run SCENARIO=" in said
