"""What the manifest says about the repository, as git tells it."""

import subprocess
from pathlib import Path

import pytest

from formats.manifest import Git
from lab import paths
from lab.runs import machine


def git(folder: Path, *arguments: str) -> str:
    as_somebody = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *as_somebody, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_and_whether_the_tree_differs_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert machine.git_state() == Git(commit=commit, dirty=False)
    (tmp_path / "file").write_text("two")
    assert machine.git_state() == Git(commit=commit, dirty=True)


def test_without_a_repository_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.git_state() == Git(commit=None, dirty=None)
