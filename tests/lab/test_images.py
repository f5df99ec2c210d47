"""The set-up of the images, in a copy and with a `docker` that only pretends: what is built beside what; its end."""

import shutil
import signal
from pathlib import Path

import pytest

from lab import paths
from tests.lab.support import FakeDocker
from tests.lab.waiting import end_by, is_at_work, run_program, wait_until

ROOMS = ("collector", "backend", "nginx", "haproxy", "gateway", "k6")


@pytest.fixture
def tree(tmp_path: Path, docker_program: FakeDocker) -> Path:
    """A tree with the set-up and rooms that are empty; its Python and its engine are there."""
    folder = tmp_path / "tree"
    shutil.copytree(paths.SETUP, folder / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(paths.ROOT / "pyproject.toml", folder)
    for room in ROOMS:
        (folder / room).mkdir()
        (folder / room / "source").touch()
    for script in ("python.sh", "engine.sh", "base-image.sh"):
        (folder / "setup" / script).write_text("#!/bin/sh\n")
    (folder / ".cache" / "bin").mkdir(parents=True)
    docker_program.says('"context show"', "default")
    return folder


def builds(image: str) -> str:
    return f'"buildx build "*"--tag connlab/{image} "*'


def stays(docker_program: FakeDocker, image: str, mark: Path) -> None:
    """Let this build write its process's number into a file and go on until it is killed."""
    docker_program.rules.append(f"{builds(image)}) echo $$ >{mark}.part; mv {mark}.part {mark}; exec sleep infinity ;;")
    docker_program.otherwise()


def is_gone(mark: Path) -> bool:
    return not is_at_work(int(mark.read_text()))


def test_what_go_compiles_and_the_others_are_built_beside_each_other(
    tree: Path, tmp_path: Path, docker_program: FakeDocker
) -> None:
    begun, awaited = tmp_path / "begun", "until [ -e {} ]; do sleep 0.05; done; exit"
    for one, other in (("k6", "java"), ("java", "k6")):
        wait = awaited.format(f"{begun}.{other}")
        docker_program.rules.append(f"{builds(one)}) touch {begun}.{one}; {wait} ;;")
    docker_program.otherwise()
    run_program(tree / "setup" / "images.sh", check=True)
    built = [call.split("--tag ")[1].split()[0] for call in docker_program.calls if "--tag" in call]
    assert sorted(built) == sorted(f"connlab/{image}" for image in (*ROOMS, "go", "java"))
    assert (tree / ".cache" / "bin" / "flows.source").exists()


def test_the_fingerprints_are_those_that_the_images_bear(tree: Path, docker_program: FakeDocker) -> None:
    docker_program.says('"image inspect"*connlab/base', "[sha256:1] of a base")
    run_program(tree / "setup" / "images.sh", check=True)
    said = run_program(tree / "setup" / "images.sh", "fingerprints", "[sha256:1] of a base", check=True)
    known = dict(line.split() for line in said.stdout.splitlines())
    assert set(known) == {"base", "flows", *ROOMS}
    built = [call for call in docker_program.calls if "--tag" in call]
    for room in ROOMS:
        assert [call for call in built if f"connlab.source={known[room]} " in call and f"--tag connlab/{room} " in call]
    assert (tree / ".cache" / "bin" / "flows.source").read_text().strip() == known["flows"]


@pytest.mark.parametrize(("failing", "other"), [("k6", "nginx"), ("nginx", "gateway")])
def test_a_build_that_fails_fails_the_set_up_and_leaves_nothing_at_work(
    tree: Path, tmp_path: Path, docker_program: FakeDocker, failing: str, other: str
) -> None:
    mark = tmp_path / "mark"
    if failing == "k6":
        stays(docker_program, other, mark)
    else:
        mark.touch()
    docker_program.rules.append(f"{builds(failing)}) until [ -e {mark} ]; do sleep 0.05; done; exit 1 ;;")
    docker_program.otherwise()
    ended = run_program(tree / "setup" / "images.sh", failing, other)
    assert ended.returncode == 4
    assert f"building connlab/{failing} failed" in ended.stderr
    if failing == "k6":
        wait_until(lambda: is_gone(mark))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_builds(
    tree: Path, tmp_path: Path, docker_program: FakeDocker, number: signal.Signals
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    stays(docker_program, "go", one)
    stays(docker_program, "java", two)
    code, _ = end_by(number, lambda: one.exists() and two.exists(), tree / "setup" / "ready.sh", "test")
    assert code != 0
    wait_until(lambda: is_gone(one) and is_gone(two))
