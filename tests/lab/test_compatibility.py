"""docs/compatibility.md says what the lab does with each feature; tests/e2e asks the programs, too."""

import shutil
from pathlib import Path

import pytest

from tools import compatibility


@pytest.mark.parametrize(
    "folder",
    [one for kind in ("nginx", "haproxy", "compose", "k6") for one in compatibility.folders(kind)],
    ids=lambda one: f"{one.parent.name}/{one.name}",
)
def test_the_page_has_what_the_lab_does_with_a_feature(folder: Path) -> None:
    if folder.parent.name == "compose" and shutil.which("docker") is None:
        pytest.skip("Docker Compose itself reads these files")
    found = compatibility.examine(folder, None)
    rows = [line for line in compatibility.PAGE.read_text().splitlines() if line.startswith(f"| {found.name} |")]
    # Only the program itself knows what it refuses.
    by_program = [row for row in rows if " refuses it: " in row]
    assert found.row() in rows or (by_program and not found.refusals)
