"""The recorded run in docs/example, derived again: what was recorded elsewhere, by an earlier state, is still read.

It needs the program flows, which `make setup` builds.
"""

import shutil
from pathlib import Path

from analysis.derivation import analyse

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


def test_the_example_gives_what_it_gave(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("derived", "report.html"))

    assert analyse(folder).verdict == "reproduced"

    made = {file.name: file.read_bytes() for file in (folder / "derived").iterdir()}
    kept = {file.name: file.read_bytes() for file in (EXAMPLE / "derived").iterdir()}
    assert sorted(made) == sorted(kept)
    for name, content in kept.items():
        assert made[name] == content, f"{name} differs; if it should: make analyse RUN=docs/example"
