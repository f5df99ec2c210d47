"""Whatever stands in a file that a user writes, the lab reads it or says by file and line what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given

from lab import paths
from lab.errors import BadInput
from lab.reading import document
from lab.roles import declaration
from lab.scenario.resolve import resolve
from lab.series import matrices
from tests.lab.support import MINIMAL
from tests.mutations import files

_SCENARIOS = [
    MINIMAL.encode(),
    *((paths.SCENARIOS / slug / "scenario.yaml").read_bytes() for slug in ("keep-alive-to-servers", "backend-restart")),
]
_MATRIX = b"""schema: 1
title: A title
experiment: B1
question: A question?
scenarios: [one]
axes:
  load.users: [3, 4]
  backend.accept_count: [1, 2]
baseline: {load.users: 3, backend.accept_count: 1}
repetitions: 2
seed: 7
"""
_MATRICES = [_MATRIX, *(file.read_bytes() for file in sorted((paths.SCENARIOS / "matrices").glob("*.yaml")))]
_ROLES = [(paths.ROOT / name / declaration.FILE).read_bytes() for name in ("haproxy", "backend", "k6")]


def _contents(texts: list[bytes]) -> list[object]:
    return [document.parse(text, "f").content for text in texts]


def _refused_with_its_place(refused: BadInput, file: Path) -> None:
    """The message names the file, and a line unless it is about the whole."""
    assert refused.problems
    for problem in refused.problems:
        where = str(problem.where)
        assert re.search(rf"{re.escape(file.name)}(:\d+)?$", where), str(problem)
        assert not re.search(r"\n(?!  )", str(problem)), str(problem)


@given(files(_contents(_SCENARIOS), _SCENARIOS))
def test_any_scenario_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / "one" / "scenario.yaml"
        file.parent.mkdir()
        file.write_bytes(content)
        try:
            resolve("one", (), Path(name))
        except BadInput as refused:
            _refused_with_its_place(refused, file)


@given(files(_contents(_MATRICES), _MATRICES))
def test_any_matrix_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / "matrices" / "two.yaml"
        file.parent.mkdir()
        file.write_bytes(content)
        one = Path(name) / "one" / "scenario.yaml"
        one.parent.mkdir()
        one.write_text(MINIMAL)
        try:
            matrices.plan("two", (), Path(name))
        except BadInput as refused:
            _refused_with_its_place(refused, file)


@given(files(_contents(_ROLES), _ROLES))
def test_any_role_is_read_or_refused_with_its_place(content: bytes) -> None:
    with TemporaryDirectory() as name:
        file = Path(name) / declaration.FILE
        file.write_bytes(content)
        try:
            declaration.read(file)
        except BadInput as refused:
            _refused_with_its_place(refused, file)
