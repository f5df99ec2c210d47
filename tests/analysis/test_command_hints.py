"""The commands that the lab suggests."""

from pathlib import Path

import pytest

from analysis import command_hints
from analysis.installation import ROOT


def test_a_command_names_the_lab_s_folder_where_the_user_s_own_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert str(ROOT) in command_hints.make_command_here("list", {})
