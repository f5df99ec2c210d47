"""The set-up of the images, in a copy and with a `docker` that only pretends: what is pulled or built; its end."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from lab import paths
from lab.cli import main
from lab.runs import machine
from tests.lab.support import FakeDocker
from tests.lab.waiting import end_by, is_at_work, run_program, wait_until

VERSION = machine.lab_version().version
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
    docker_program.says('"create "*', "made")
    docker_program.does('"cp "*) echo flows >"$3"; chmod +x "$3"; exit ;;')
    return folder


def builds(image: str) -> str:
    return f'"buildx build "*"--tag connlab/{image} "*'


def stays(docker_program: FakeDocker, image: str, mark: Path) -> None:
    """Let this build write its process's number into a file and go on until it is killed."""
    docker_program.does(f"{builds(image)}) echo $$ >{mark}.part; mv {mark}.part {mark}; exec sleep infinity ;;")


def is_gone(mark: Path) -> bool:
    return not is_at_work(int(mark.read_text()))


def test_what_go_compiles_and_the_others_are_built_beside_each_other(
    tree: Path, tmp_path: Path, docker_program: FakeDocker
) -> None:
    begun, awaited = tmp_path / "begun", "until [ -e {} ]; do sleep 0.05; done; exit"
    for one, other in (("k6", "java"), ("java", "k6")):
        wait = awaited.format(f"{begun}.{other}")
        docker_program.does(f"{builds(one)}) touch {begun}.{one}; {wait} ;;")
    run_program(tree / "setup" / "images.sh", check=True)
    built = [call.split("--tag ")[1].split()[0] for call in docker_program.calls if "--tag" in call]
    assert sorted(built) == sorted(f"connlab/{image}" for image in (*ROOMS, "go", "java"))
    assert (tree / ".cache" / "bin" / "flows.source").exists()


def fingerprints(tree: Path) -> dict[str, str]:
    """What each image of a run is made from."""
    said = run_program(tree / "setup" / "images.sh", "fingerprints", check=True).stdout
    return dict(line.split() for line in said.splitlines())


def test_the_fingerprints_are_those_that_the_images_bear_whatever_they_are_built_on(
    tree: Path, docker_program: FakeDocker
) -> None:
    docker_program.says('"image inspect"*connlab/base', "[sha256:1] of a base")
    run_program(tree / "setup" / "images.sh", check=True)
    docker_program.rules.clear()
    docker_program.says('"image inspect"*connlab/base', "[sha256:2] of another base")
    known = fingerprints(tree)
    assert set(known) == {"base", "flows", *ROOMS}
    built = [call for call in docker_program.calls if "--tag" in call]
    for room in ROOMS:
        assert [call for call in built if f"connlab.source={known[room]} " in call and f"--tag connlab/{room} " in call]
    assert (tree / ".cache" / "bin" / "flows").read_text() == "flows\n"
    assert (tree / ".cache" / "bin" / "flows.source").read_text().strip() == known["flows"]


def test_a_copy_has_the_fingerprints_of_the_repository_also_inside_somebody_else_s(tmp_path: Path) -> None:
    repository, copy = tmp_path / "repository", tmp_path / "project" / "packages" / "copy"
    files = run_program("git", "-C", paths.ROOT, "ls-files", "setup", *ROOMS, check=True).stdout.split("\n")
    for folder in (repository, copy):
        for name in ("pyproject.toml", *filter(None, files)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.ROOT / name, folder / name)
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "k6" / "output.log").touch()
    for other, ignored in ((repository, ""), (copy.parent.parent, "packages\n")):
        run_program("git", "init", "--quiet", other, check=True)
        if ignored:
            (other / ".gitignore").write_text(ignored)
    known = fingerprints(copy)
    assert known == fingerprints(repository)
    (copy / "k6" / "main.go").write_text("another program")
    (copy / "nginx" / "role.yaml").write_text("declared anew")
    changed = {name for name, source in fingerprints(copy).items() if source != known[name]}
    assert changed == {"k6"}
    (copy / "setup" / "base.Dockerfile").write_text("another base")
    assert all(source != known[name] for name, source in fingerprints(copy).items())


# --- pulled ---------------------------------------------------------------------------------------------------

REGISTRY = "127.0.0.1:5000/lab"


def has(docker_program: FakeDocker, name: str, label: str) -> None:
    """Let the engine have an image of this name, with this label."""
    docker_program.says(f'"image inspect "*" {name}"', label)


def pulled(tree: Path, monkeypatch: pytest.MonkeyPatch, *images: str) -> str:
    monkeypatch.setenv("CONNLAB_IMAGES", REGISTRY)
    return run_program(tree / "setup" / "images.sh", *images, check=True).stderr


def builds_of(docker_program: FakeDocker) -> list[str]:
    return [call.split("--tag ")[1].split()[0] for call in docker_program.calls if "--tag" in call]


def test_an_image_that_the_registry_has_is_pulled_under_its_local_name_and_nothing_is_built(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = fingerprints(tree)
    for room in (*ROOMS, "base"):
        name, version = f"{REGISTRY}/{room}:{VERSION}-{known[room]}", known[room]
        label = f"{version}.of-its-certificates" if room == "base" else version
        has(docker_program, name, label)
        # Once it has that name it has that label.
        docker_program.says(f'"image inspect "*" connlab/{room}"', label, after=f"tag {name} connlab/{room}")
    pulled(tree, monkeypatch)
    assert builds_of(docker_program) == []
    assert (tree / ".cache" / "bin" / "flows").read_text() == "flows\n"
    for room in (*ROOMS, "base"):
        name = f"{REGISTRY}/{room}:{VERSION}-{known[room]}"
        wanted = [f"pull --quiet {name}", f"tag {name} connlab/{room}", f"rmi --no-prune {name}"]
        assert [call for call in docker_program.calls if call in wanted] == wanted


def test_what_is_here_is_not_pulled(tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    has(docker_program, "connlab/nginx", fingerprints(tree)["nginx"])
    pulled(tree, monkeypatch, "nginx")
    assert not any(call.startswith(("pull", "buildx build")) for call in docker_program.calls)


def test_an_image_that_was_pushed_from_here_is_pulled_by_its_digest_alone(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, digest = fingerprints(tree), f"sha256:{'d' * 64}"
    (tree / "setup" / "images.digests").write_text(
        f"k6 {VERSION}-{known['nginx']} sha256:of-k6\n"
        f"nginx {VERSION}-{'0' * 16} sha256:of-other-sources\n"
        f"nginx {VERSION}-{known['nginx']} {digest}\n"
    )
    assert fingerprints(tree) == known
    docker_program.says('"pull "*', stderr="Error: manifest unknown\n", exit_code=1)
    said = pulled(tree, monkeypatch, "nginx")
    assert [call for call in docker_program.calls if call.startswith("pull ")] == [
        f"pull --quiet {REGISTRY}/nginx@{digest}"
    ]
    assert builds_of(docker_program) == ["connlab/nginx"]
    assert f"not pulled from {REGISTRY}, so built: nginx (manifest unknown)\n" in said


def test_what_is_only_to_be_pulled_is_not_built(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker_program.says('"pull "*', stderr="Error: connection refused\n", exit_code=1)
    said = pulled(tree, monkeypatch, "pull")
    [line] = [line for line in said.splitlines() if "not pulled" in line]
    assert line.endswith(" (connection refused)")
    assert set(line.split("built: ")[1].split(" (")[0].split()) == {*ROOMS, "base"}
    assert builds_of(docker_program) == []


def test_an_image_of_other_sources_is_built_instead_and_a_line_says_why(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{REGISTRY}/nginx:{VERSION}-{fingerprints(tree)['nginx']}"
    has(docker_program, name, "0" * 16)
    said = pulled(tree, monkeypatch, "nginx")
    why = "it has the label of other sources than those of this folder"
    assert f"not pulled from {REGISTRY}, so built: nginx ({why})\n" in said
    assert builds_of(docker_program) == ["connlab/nginx"]
    assert f"rmi --no-prune {name}" in docker_program.calls
    assert not any(call.startswith("tag ") for call in docker_program.calls)


def test_what_only_builds_and_tests_is_not_pulled(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled(tree, monkeypatch, "java")
    assert not any(call.startswith("pull") for call in docker_program.calls)


@pytest.mark.parametrize("prefix", ["127.0.0.1:5000", "reg.example/", "Reg.example/lab", "-x/lab", "a b/lab", "a/b:1"])
def test_what_is_no_prefix_of_images_is_refused(
    tree: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv("CONNLAB_IMAGES", prefix)
    ended = run_program(tree / "setup" / "images.sh")
    assert (ended.returncode, docker_program.calls) == (2, [])
    assert f"CONNLAB_IMAGES: '{prefix}' is no registry with a prefix" in ended.stderr
    assert "hint: write it as <registry>/<prefix>" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([""], "make push-images needs a registry"),
        (["127.0.0.1:5000"], "REGISTRY: '127.0.0.1:5000' is no registry with a prefix"),
        (["--join", REGISTRY, "java"], "there is no image 'java' of a run"),
    ],
)
def test_what_cannot_be_pushed_is_refused_before_anything_is_built(
    tree: Path, docker_program: FakeDocker, arguments: list[str], said: str
) -> None:
    ended = run_program(tree / "setup" / "push-images.sh", *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "hint: " in ended.stderr
    assert docker_program.calls == []


def test_a_command_s_option_is_checked_and_reaches_the_set_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONNLAB_IMAGES", "")
    with pytest.raises(SystemExit) as ended:
        main(["run", "none", "--images=127.0.0.1:5000"])
    assert (ended.value.code, os.environ["CONNLAB_IMAGES"]) == (2, "")
    assert "'127.0.0.1:5000' is no registry with a prefix" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "none", f"--images={REGISTRY}"])
    assert os.environ["CONNLAB_IMAGES"] == REGISTRY


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_pulls(
    tree: Path, tmp_path: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("CONNLAB_IMAGES", REGISTRY)
    marks = {room: tmp_path / f"{room}.mark" for room in ("nginx", "k6")}
    for room, mark in marks.items():
        docker_program.does(f'"pull "*/{room}:*) echo $$ >{mark}.part; mv {mark}.part {mark}; exec sleep infinity ;;')
    code, _ = end_by(
        number, lambda: all(mark.exists() for mark in marks.values()), tree / "setup" / "images.sh", *marks
    )
    assert code == 4
    wait_until(lambda: all(map(is_gone, marks.values())))
    assert builds_of(docker_program) == []


# --- how the set-up ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("failing", "other"), [("k6", "nginx"), ("nginx", "gateway")])
def test_a_build_that_fails_fails_the_set_up_and_leaves_nothing_at_work(
    tree: Path, tmp_path: Path, docker_program: FakeDocker, failing: str, other: str
) -> None:
    mark = tmp_path / "mark"
    if failing == "k6":
        stays(docker_program, other, mark)
    else:
        mark.touch()
    docker_program.does(f"{builds(failing)}) until [ -e {mark} ]; do sleep 0.05; done; exit 1 ;;")
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
