"""Where things lie."""

import runpy
import shutil
from pathlib import Path

import pytest

from lab import paths


def test_results_of_tests_lie_where_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNLAB_RESULTS", str(tmp_path))
    assert runpy.run_path(paths.__file__)["RESULTS"] == tmp_path


def test_results_may_lie_on_another_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (tmp_path / "connlab" / "lab").mkdir(parents=True)
    disk.mkdir()
    (tmp_path / "connlab" / "results").symlink_to(disk)
    copy = tmp_path / "connlab" / "lab" / "paths.py"
    shutil.copy(paths.__file__, copy)

    assert runpy.run_path(str(copy))["RESULTS"] == disk
