"""The documents keep up with the tree: their links lead somewhere, and the paths and commands that they name exist."""

import re
from pathlib import Path

import pytest

from lab.console.next_steps import FIRST_LESSON
from lab.scenarios.places import slugs
from setup.loop.parts import PARTS
from tests.bench.goals import BENCHES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    document
    for pattern in ("*.md", "*/*.md", "docs/adr/*.md", "docs/workshops/*.md", "scenarios/*/*.md")
    for document in ROOT.glob(pattern)
    if not document.is_relative_to(ROOT / "results") and not document.relative_to(ROOT).parts[0].startswith(".")
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
PATH = re.compile(r"`([\w.-]+/[\w.<>*/-]*)`")
COMMAND = re.compile(r"(?:`|^\$ )make ([a-z][a-z0-9-]*)(?!<)", re.MULTILINE)
# Names in k6's scripts, and no paths.
MODULE = re.compile(r"k6/(?:x/.+|ws|websockets|net/grpc|browser)")


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_its_links_lead_somewhere(document: Path) -> None:
    links = {link for link in LINK.findall(document.read_text()) if "://" not in link}
    assert sorted(link for link in links if not (document.parent / link).exists()) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_the_paths_that_it_names_exist(document: Path) -> None:
    """Only those that begin with a room of the repository: `raw/` and `derived/` lie in a run's folder."""
    rooms = {entry.name for entry in ROOT.iterdir() if entry.is_dir() and not entry.name.startswith(".")} - {"results"}
    named = {
        path
        for path in PATH.findall(document.read_text())
        if path.partition("/")[0] in rooms and not MODULE.fullmatch(path)
    }
    assert sorted(path for path in named if not any(ROOT.glob(re.sub(r"<[^>]*>", "*", path)))) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_the_commands_that_it_names_are_targets(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for mode in ("test", "check", "fmt"):
        targets |= {f"{mode}-{part.name}" for part in PARTS if getattr(part, mode)}
    targets |= {f"bench-{bench.name}" for bench in BENCHES}
    assert sorted(set(COMMAND.findall(document.read_text())) - targets) == []


@pytest.mark.parametrize("slug", slugs())
def test_a_scenario_is_a_lesson_with_its_answers_apart(slug: str) -> None:
    folder = ROOT / "scenarios" / slug
    assert {"scenario.yaml", "README.md", "ANSWERS.md"} <= {file.name for file in folder.iterdir()}
    assert "](ANSWERS.md)" in (folder / "README.md").read_text()


@pytest.mark.parametrize("slug", slugs())
def test_a_lesson_shows_no_answer_before_it_is_asked_for(slug: str) -> None:
    """Who scrolls on from *Predict* sees headings alone: what was measured, and why, opens on a click."""
    sections = re.split(r"(?m)^## ", (ROOT / "scenarios" / slug / "README.md").read_text())
    told = [
        one for one in sections if one.partition("\n")[0] in ("Evidence", "Explanation", "What was ruled out, and how")
    ]
    assert len(told) >= 2
    for one in told:
        assert re.fullmatch(r"[^\n]+\n\n<details>\n<summary>[^\n]+</summary>\n\n.+\n\n</details>\n+", one, re.DOTALL)


def test_the_lessons_to_start_with_are_five_and_begin_where_the_commands_point() -> None:
    section = (ROOT / "README.md").read_text().partition("## Five lessons to start with")[2].partition("\n## ")[0]
    lessons = re.findall(r"\]\(scenarios/([a-z-]+)/README\.md\)", section)
    assert (len(lessons), lessons[0]) == (5, FIRST_LESSON)
