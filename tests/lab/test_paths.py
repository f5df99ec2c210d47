"""Where things lie."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

from lab import paths


def test_results_may_lie_on_another_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (tmp_path / "connlab" / "lab").mkdir(parents=True)
    disk.mkdir()
    (tmp_path / "connlab" / "results").symlink_to(disk)
    copy = shutil.copy(paths.__file__, tmp_path / "connlab" / "lab")

    assert runpy.run_path(copy)["RESULTS"] == disk
