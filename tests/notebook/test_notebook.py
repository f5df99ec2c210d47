"""The notebook over runs of every kind, headless and in marimo's own environment: each cell runs, and shows its part.

`make test-notebook` sees to that environment.
"""

import html
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from analysis.reports import run_report
from lab import paths
from lab.cli import notebook
from lab.errors import LabError
from tests.analysis.support import RunFolder
from tests.analysis.whole import make_run
from tests.pages.make import aborted, failing, hostile, put, without_captures

PROGRAMS = paths.CACHE / "venv-notebook" / "bin"


@pytest.fixture(autouse=True)
def _copies_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_COPIES", tmp_path / "copies")


def over(folder: Path, change: Callable[[RunFolder], None]) -> Path:
    """A run with its derived files, and a notebook for it."""
    put(folder, change)
    run_report.write(folder)
    return notebook.copy_for(folder)


def run(*command: str, cwd: Path) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=900)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("change", [aborted, without_captures, hostile])
def test_every_cell_runs_as_a_script(tmp_path: Path, change: Callable[[RunFolder], None]) -> None:
    folder = tmp_path / "a run's"
    found = over(folder, change)
    run(str(PROGRAMS / "python"), str(found), *notebook.over(folder), cwd=tmp_path)


def exported(found: Path, folder: Path) -> str:
    """What marimo shows of a notebook over a run."""
    page = found.with_suffix(".html")
    options = ["--no-include-code", "-o", str(page)]
    run(str(PROGRAMS / "marimo"), "export", "html", *options, str(found), *notebook.over(folder), cwd=found.parent)
    return page.read_text()


def test_its_cells_show_the_run(tmp_path: Path) -> None:
    found = over(tmp_path / "run", failing)
    shown = html.unescape(exported(found, tmp_path / "run"))
    for text in ("reproduced", "accept-queue-drop", "kernel.backend.TcpExt.ListenOverflows", "Accept queues against"):
        assert text in shown
    assert re.search(r"MarimoException|Traceback|BinderException", shown) is None


def test_a_kept_connection_is_no_second_one_in_the_mean_of_connecting(tmp_path: Path) -> None:
    def change(run: RunFolder) -> None:
        client = run.clients["k6-1"]
        client.requests = client.requests[:2]
        again = client.requests[1] | {"id": 3, "iteration": 1, "reused": True, "connecting_us": 0}
        begin_us = again["end_us"] + 1_000
        client.requests.append(again | {"time_us": begin_us, "end_us": begin_us + 2_000})
        for dial, duration_us in zip(client.dials, (3_000, 1_000), strict=False):
            dial["duration_us"] = duration_us

    found = over(tmp_path / "run", change)
    (query,) = re.findall(r'"""\s*(SELECT outcome, cause,.*?)"""', found.read_text(), re.DOTALL)
    with duckdb.connect() as database:
        database.read_parquet(str(tmp_path / "run" / "derived" / "requests.parquet")).create_view("requests")
        rows = database.sql(query)
        shown = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]

    assert [(row["requests"], row["connecting_ms_mean"]) for row in shown] == [(3, 2.0)]


PLANTED = """import pathlib
pathlib.Path({mark!r}).touch()
"""
SETTINGS = """[tool.marimo.runtime]
pythonpath = ["."]
dotenv = [".env"]
"""


def test_nothing_in_a_run_s_folder_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, mark = tmp_path / "run", tmp_path / "executed"
    run = make_run(folder)
    failing(run)
    run.write()
    modules = ("notebook", "run", "altair", "duckdb", "sitecustomize", "usercustomize", "json", "marimo/__init__")
    for name in modules:
        planted = folder / f"{name}.py"
        planted.parent.mkdir(exist_ok=True)
        planted.write_text(PLANTED.format(mark=str(mark)))
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / ".marimo.toml").write_text(SETTINGS.replace("tool.marimo.", ""))
    monkeypatch.chdir(folder)

    opened: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, arguments: opened.append(arguments))
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    found = notebook.copy_for(folder)
    notebook.open_(found, folder)

    # What marimo would open is the lab's own, in a folder with nothing else in it, which it works in.
    (command,) = opened
    assert str(found) in command
    assert found.read_bytes() == (paths.ROOT / "notebook" / "run.py").read_bytes()
    assert Path.cwd() == found.parent
    assert list(found.parent.iterdir()) == [found]
    assert folder not in found.parents
    assert "accept-queue-drop" in html.unescape(exported(found, folder))
    assert not mark.exists()
    assert (folder / "notebook.py").read_text() == PLANTED.format(mark=str(mark))


def test_the_words_of_a_run_are_no_markup(tmp_path: Path) -> None:
    def change(run: RunFolder) -> None:
        failing(run)
        run.manifest["title"] = "<img src=x onerror=planted()>"

    folder = tmp_path / "run"
    page = exported(over(folder, change), folder)
    # It holds what the cells show as JSON in a script.
    shown = re.sub(r"\\u00([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), page)
    assert "&lt;img src=x" in shown
    assert "<img src=x" not in shown


def test_each_notebook_is_a_copy_of_its_own(tmp_path: Path) -> None:
    found = over(tmp_path / "run", failing)
    found.write_text("# mine\n")
    assert notebook.copy_for(tmp_path / "run") != found
    assert found.read_text() == "# mine\n"


def test_it_opens_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    command = notebook.command(tmp_path / "notebook.py", tmp_path)
    options = ["edit", "--skip-update-check", "--headless"]
    assert command[1:] == [*options, str(tmp_path / "notebook.py"), "--", "--run", str(tmp_path)]
    assert "default: 127.0.0.1" in run(command[0], "edit", "--help", cwd=tmp_path)


def test_without_its_environment_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "python.sh"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(paths, "SETUP", tmp_path)
    with pytest.raises(LabError, match="environment is missing"):
        notebook.install()
