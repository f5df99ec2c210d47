"""What the documents show of docs/example is of that run: its pictures, and the story of one of its requests.

It needs the program flows, which `make setup` builds.
"""

import shutil
import struct
import zlib
from pathlib import Path

import pytest

from lab.errors import BadInput
from setup.example import __main__ as example
from tests.lab.support import yaml_with


@pytest.mark.parametrize("picture", example.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_the_example(picture: Path) -> None:
    assert example.source_of(picture.read_bytes()) == example.shown_run(), "run: make example RUN=docs/example"


def test_the_moving_picture_shows_the_example_and_is_small() -> None:
    picture = example.MOVING.read_bytes()
    assert example.shown_run().encode() in picture, "run: make example RUN=docs/example"
    assert picture.startswith(b"GIF89a")
    assert len(picture) < 1_000_000


def test_a_picture_that_says_what_it_shows_is_still_a_picture() -> None:
    png = example.signed(example.PICTURES[0].read_bytes(), "queue/r01")
    at, kinds = 8, []
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        content, checksum = png[at + 4 : at + 8 + length], png[at + 8 + length : at + 12 + length]
        assert struct.pack(">I", zlib.crc32(content)) == checksum
        kinds.append(content[:4])
        at += 12 + length
    assert (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
    assert example.source_of(png) == "queue/r01"


def test_the_story_is_the_example_s() -> None:
    document = example.STORY.read_text()
    assert document == example.with_story(document), "run: make example RUN=docs/example"


@pytest.mark.parametrize(
    ("file", "changes", "said"),
    [
        ("manifest.json", {'"scenario": "accept-queue-overflow"': '"scenario": "one-port"'}, "it is not accept-queue"),
        ("manifest.json", {'"source": "scenario"': '"source": "set"'}, "it is not accept-queue-overflow as it stands"),
        ("derived/verdict.json", {'"verdict": "reproduced"': '"verdict": "inconclusive"'}, "it is inconclusive"),
        ("derived/verdict.json", {'"cpu_idle_percent": ': '"cpu_idle_percent": 7, "_": '}, "idle for 7 % of the load"),
    ],
)
def test_a_run_that_the_documents_would_be_wrong_about_is_refused(
    tmp_path: Path, file: str, changes: dict[str, str], said: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(example.EXAMPLE, folder)
    example.refuse_unfit(folder, quiet=False)
    (folder / file).write_text(yaml_with((folder / file).read_text(), changes))
    with pytest.raises(BadInput, match=said):
        example.refuse_unfit(folder, quiet="idle" in said)
