"""The notebook over runs of every kind, headless and in marimo's own environment: each cell runs, and shows its part.

`make test-notebook` sees to that environment.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from analysis import analyse, report
from lab import notebook, paths
from lab.errors import LabError
from tests.analysis.support import RunFolder
from tests.analysis.whole import make_run
from tests.pages.make import aborted, failing, hostile, without_captures

PROGRAMS = paths.ROOT / ".venv-notebook" / "bin"


def beside(folder: Path, change: Callable[[RunFolder], None]) -> Path:
    """A run with its derived files, and its notebook."""
    run = make_run(folder)
    change(run)
    run.write()
    analyse(folder)
    report.write(folder)
    return notebook.beside(folder)


def run(*command: str, cwd: Path) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("change", [aborted, without_captures, hostile])
def test_every_cell_runs_as_a_script(tmp_path: Path, change: Callable[[RunFolder], None]) -> None:
    found = beside(tmp_path / "a run's", change)
    run(str(PROGRAMS / "python"), str(found), cwd=tmp_path)


def test_its_cells_show_the_run(tmp_path: Path) -> None:
    found = beside(tmp_path / "run", failing)
    page = tmp_path / "notebook.html"
    run(str(PROGRAMS / "marimo"), "export", "html", "--no-include-code", str(found), "-o", str(page), cwd=tmp_path)
    shown = html.unescape(page.read_text())
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

    found = beside(tmp_path / "run", change)
    (query,) = re.findall(r'"""\s*(SELECT outcome, cause,.*?)"""', found.read_text(), re.DOTALL)
    with duckdb.connect() as database:
        database.read_parquet(str(tmp_path / "run" / "derived" / "requests.parquet")).create_view("requests")
        rows = database.sql(query)
        shown = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]

    assert [(row["requests"], row["connecting_ms_mean"]) for row in shown] == [(3, 2.0)]


def test_the_users_own_changes_stay(tmp_path: Path) -> None:
    found = beside(tmp_path / "run", failing)
    found.write_text("# mine\n")
    assert notebook.beside(tmp_path / "run").read_text() == "# mine\n"


def test_it_opens_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    command = notebook.command(tmp_path / "notebook.py")
    assert command[1:] == ["edit", "--skip-update-check", "--headless", str(tmp_path / "notebook.py")]
    assert "default: 127.0.0.1" in run(command[0], "edit", "--help", cwd=tmp_path)


def test_without_its_environment_there_is_a_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "python.sh"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(notebook, "_SETUP", failing)
    with pytest.raises(LabError, match="environment is missing"):
        notebook.install()
