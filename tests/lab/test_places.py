"""Where scenarios lie: by name among the lab's own, by path anywhere, and what results and commands call each."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.reports.advice import rerun_command
from formats.manifest import load_manifest
from lab import paths
from lab.console.run_lookup import find_run
from lab.engines.compose.engine import Compose
from lab.errors import BadInput
from lab.lessons import scaffold
from lab.runs.run_context import open_run, refuse_taken
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from lab.series import arms, matrices
from tests.lab.support import MINIMAL, Write
from tools.recording import recorder

ARMS = """\
arms:
  variants:
    few: {load.users: 1}
    more: {load.users: 2}
"""
GRID = """\
schema: 1
title: A grid
experiment: workshop
question: How many?
scenarios: [./shop]
axes: {load.users: [1, 2]}
"""

WriteFolder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> WriteFolder:
    """Write a scenario into a folder of one's own."""

    def write(name: str = "shop", text: str = MINIMAL) -> Path:
        home = tmp_path / "mine" / name
        home.mkdir(parents=True)
        (home / places.FILE).write_text(text)
        return home

    return write


def test_a_folder_is_a_scenario_under_its_name(folder: WriteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder()
    monkeypatch.chdir(home.parent)
    for named in (str(home), "./shop", "./shop/", "./shop/scenario.yaml", "../mine/shop"):
        found = resolve(named)
        assert found.where("title").startswith("shop/scenario.yaml:")
        assert (found.slug, found.place.home, found.place.named) == ("shop", home, str(home))


def test_the_lab_s_own_folder_is_the_scenario_of_that_name() -> None:
    by_path = resolve(str(paths.SCENARIOS / "accept-queue-healthy"))
    assert by_path.place == resolve("accept-queue-healthy").place
    assert by_path.place.named == "accept-queue-healthy"


@pytest.mark.parametrize("name", ["../one", "a/b", "a" * 300 + "/"])
def test_a_path_that_leads_nowhere_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"there is no scenario\.yaml in"):
        places.find(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("accept-queue-healthy", "is for the lab's own 'accept-queue-healthy'"),
        ("series", "is for the lab's own 'series'"),
        ("My_Shop", "the name of a scenario's folder can have only small letters, digits and hyphens"),
    ],
)
def test_a_name_that_cannot_stand_for_results_is_refused(folder: WriteFolder, name: str, said: str) -> None:
    home = folder(name)
    with pytest.raises(BadInput, match=said) as refused:
        places.find(str(home))
    assert str(home) in str(refused.value)
    with pytest.raises(BadInput, match=said):
        scaffold.write_scenario(str(home.parent.parent / "elsewhere" / name))


def test_a_folder_that_is_named_like_a_scenario_is_answered_with_the_slash(
    folder: WriteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder().parent)
    with pytest.raises(BadInput, match=r"for the folder, write \./shop"):
        places.find("shop")


def test_arms_matrices_and_records_take_or_refuse_a_folder(folder: WriteFolder) -> None:
    home = folder(text=MINIMAL + ARMS)
    resolved = resolve(str(home))
    assert [one.resolved.place for one in arms.plan_arms(resolved, []).cells.values()] == [resolved.place] * 2
    (home.parent / "grid.yaml").write_text(GRID)
    planned = matrices.plan_matrix(str(home.parent / "grid.yaml"))
    assert {one.resolved.place.home for one in planned.cells.values()} == {home}
    with pytest.raises(BadInput, match="records the lab's own scenarios alone"):
        recorder.refuse_folders([resolved])
    recorder.refuse_folders([resolve("accept-queue-healthy")])


def test_a_matrix_takes_no_two_folders_of_one_name(folder: WriteFolder) -> None:
    home = folder()
    folder("other/shop", MINIMAL)
    grid = home.parent / "grid.yaml"
    grid.write_text(GRID.replace("[./shop]", "[./shop, ./other/shop]"))
    with pytest.raises(BadInput, match=r"grid\.yaml:5: 2 of the scenarios' folders are named shop"):
        matrices.plan_matrix(str(grid))


@pytest.mark.usefixtures("fake_docker")
def test_a_run_says_its_folder_and_is_found_and_made_again_by_it(folder: WriteFolder, elsewhere: Path) -> None:
    home = folder()
    context = open_run(resolve(str(home)), Compose(), ["connlab"])
    assert context.folder.parent == elsewhere / "results" / "shop"
    manifest = load_manifest(context.folder)
    assert manifest.folder == str(home)
    assert rerun_command(manifest, {"load.users": "2"}).command == f'make run SCENARIO={home} SET="load.users=2"'
    (context.folder.parent / "latest").symlink_to(context.folder.name)
    assert find_run(str(home)) == context.folder


@pytest.mark.usefixtures("fake_docker", "elsewhere")
def test_a_name_has_one_folder(folder: WriteFolder) -> None:
    first, second = folder(), folder("other/shop")
    open_run(resolve(str(first)), Compose(), ["connlab"])
    refuse_taken(places.find(str(first)))
    with pytest.raises(BadInput, match=f"has runs of {first}; rename the folder, or move"):
        open_run(resolve(str(second)), Compose(), ["connlab"])
    # What was moved is no other folder.
    (first / places.FILE).unlink()
    refuse_taken(places.find(str(second)))


@pytest.mark.usefixtures("fake_docker", "elsewhere")
def test_the_results_of_a_scenario_of_the_lab_s_are_not_shared(folder: WriteFolder, write_scenario: Write) -> None:
    write_scenario(slug="shop")
    open_run(resolve("shop"), Compose(), ["connlab"])
    paths.SCENARIOS = paths.ROOT / "scenarios"
    with pytest.raises(BadInput, match="has runs of a scenario of the lab itself"):
        refuse_taken(places.find(str(folder())))


def test_what_new_writes_resolves_and_has_its_lesson(tmp_path: Path) -> None:
    home = tmp_path / "slow-start"
    files, command = scaffold.write_scenario(str(home))
    assert [file.name for file in files] == ["scenario.yaml", "ANSWERS.md", "README.md"]
    assert command == f"make run SCENARIO={home}"
    texts = [file.read_text() for file in files]
    assert "@" not in "".join(texts)
    schema = texts[0].splitlines()[0].split("$schema=")[1]
    assert (home / schema).resolve() == paths.SCHEMAS / "scenario.schema.json"
    assert resolve(str(home)).scenario.title == "Slow start: five users, three places"
    with pytest.raises(BadInput, match=r"scenario\.yaml is there already"):
        scaffold.write_scenario(str(home))


def test_new_writes_among_the_lab_s_own_by_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path / "scenarios")
    files, command = scaffold.write_scenario("slow-start")
    assert files[0] == tmp_path / "scenarios" / "slow-start" / "scenario.yaml"
    assert command == "make run SCENARIO=slow-start"
    with pytest.raises(BadInput, match="'Slow' cannot be a scenario's name"):
        scaffold.write_scenario("Slow")


def test_the_template_s_lesson_has_the_headings_of_all_lessons(tmp_path: Path) -> None:
    scaffold.write_scenario(str(tmp_path / "one"))

    def headings(file: Path) -> list[str]:
        return [line for line in file.read_text().splitlines() if line.startswith("## ")]

    assert headings(tmp_path / "one" / "README.md") == headings(paths.SCENARIOS / "accept-queue-overflow" / "README.md")


@pytest.mark.parametrize(
    ("example", "file", "says"),
    [
        ("own-nginx", "nginx.conf", "there is no configuration"),
        ("own-haproxy", "haproxy.cfg", "there is no configuration"),
        ("checkout", "checkout.js", "there is no script"),
    ],
)
def test_a_link_that_leads_to_itself_is_no_file(tmp_path: Path, example: str, file: str, says: str) -> None:
    home = tmp_path / example
    shutil.copytree(paths.ROOT / "examples" / example, home)
    (home / file).unlink()
    (home / file).symlink_to(file)
    with pytest.raises(BadInput, match=says):
        resolve(str(home))


def test_a_folder_that_links_to_itself_is_no_scenario(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BadInput, match="there is no scenario"):
        resolve(str(tmp_path / "loop"))


def test_a_file_beside_a_scenario_leads_to_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (places.FILE, "docker-compose.yml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"give the folder, \.: it has a scenario\.yaml"):
        places.find("./docker-compose.yml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("docker-compose.yml", "by the line 'compose: ./docker-compose.yml'"),
        ("nginx.conf", "by the line 'nginx: {config: ./nginx.conf}'"),
        ("incident.pcap", "'connlab inspect' reads captures"),
    ],
)
def test_a_file_in_place_of_a_folder_has_its_line_of_a_scenario_named(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(BadInput, match=r"is a file, and no folder of a scenario") as refused:
        places.find(str(tmp_path / name))
    assert hint in str(refused.value)
