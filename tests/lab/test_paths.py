"""Where things lie."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import paths

SHOW = "from lab import paths; print(paths.RESULTS, paths.CACHE, paths.ROOT, sep='\\n')"


def places(packages: Path, where: Path, **environment: str) -> list[str]:
    """The folders of results, cache and lab, as a program has them that imports `packages`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONNLAB_", "XDG_"))}
    given = kept | {"PYTHONPATH": str(packages), "HOME": "/home/me"} | environment
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], cwd=where, env=given, capture_output=True, text=True, check=True
    )
    return shown.stdout.splitlines()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The two modules that say where things lie, in a folder of their own."""
    folder = tmp_path / "connlab"
    for file in ("lab/paths.py", "analysis/installation.py"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).with_name("__init__.py").touch()
        (folder / file).write_text((paths.PACKAGES / file).read_text())
    return folder


def test_results_of_tests_lie_where_they_say(copy: Path, tmp_path: Path) -> None:
    assert places(copy, tmp_path, CONNLAB_RESULTS=str(tmp_path))[0] == str(tmp_path)


def test_results_may_lie_on_another_disk(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (copy / "results").symlink_to(tmp_path / "disk")
    assert places(copy, tmp_path) == [str(tmp_path / "disk"), str(copy / ".cache"), str(copy)]


def test_an_installed_lab_leaves_results_where_the_user_stands(copy: Path, tmp_path: Path) -> None:
    (copy / "lab" / "shipped").mkdir()
    lab = str(copy / "lab" / "shipped")
    assert places(copy, tmp_path) == [str(tmp_path / "results"), "/home/me/.cache/connlab", lab]
    assert places(copy, tmp_path, XDG_CACHE_HOME="/fast")[1] == "/fast/connlab"
    assert places(copy, tmp_path, XDG_CACHE_HOME="here")[1] == "/home/me/.cache/connlab"
    assert places(copy, tmp_path, CONNLAB_CACHE="there")[1] == str(tmp_path / "there")
