"""The README's commands on bare machines, with a `docker` that only pretends: what a machine gets, and what is left."""

import platform
import re
import shutil
import signal
from pathlib import Path

import pytest

from lab import paths
from tests.lab.support import FakeDocker
from tests.lab.waiting import APT_GET, end_by, run_program, write_program

pytestmark = pytest.mark.skipif(
    platform.freedesktop_os_release()["ID"] != "debian", reason="debootstrap makes bare machines on Debian only"
)
PROGRAMS = {
    "debootstrap": '#!/usr/bin/env bash\nmkdir -p "${@: -2:1}"\n',
    "apt-get": APT_GET,
    "apt-config": "#!/bin/sh\necho 'Acquire::http::Proxy \"http://proxy\";'\n",
    "id": "#!/bin/sh\necho 0\n",
}


@pytest.fixture
def tree(tmp_path: Path, docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the set-up alone, an engine that answers, and machines that start."""
    folder = tmp_path / "tree"
    shutil.copytree(paths.SETUP, folder / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "setup" / "engine.sh").write_text("#!/bin/sh\n")
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        run_program(*git, *command, check=True)
    for name, text in PROGRAMS.items():
        write_program(tmp_path / "bin" / name, text)
    docker_program.does(f'"exec "*"/etc/apt/apt.conf.d/"*) cat >{tmp_path}/apt.conf; exit ;;')
    docker_program.does('"exec --interactive "* | "import "*) cat >/dev/null; exit ;;')
    docker_program.says('"logs "*', "ready\n")
    monkeypatch.setenv("GOPROXY", "http://modules")
    monkeypatch.delenv("CONNLAB_DOCKER_ARGUMENTS", raising=False)
    return folder


def removals(docker_program: FakeDocker) -> list[str]:
    """The machines whose container and volume were removed, without the number of the process."""
    calls = docker_program.calls
    names = [call.split()[-1] for call in calls if call.startswith("rm --force --volumes ")]
    assert all(f"volume rm {name}" in calls for name in names)
    return [name.rpartition("-")[0] for name in names]


@pytest.mark.parametrize(
    ("run", "test", "code"), [(0, 0, 0), (1, 0, 1), (0, 1, 1)], ids=["all pass", "the first fails", "the second fails"]
)
def test_both_commands_run_on_each_release_and_both_must_pass(
    tree: Path, docker_program: FakeDocker, run: int, test: int, code: int
) -> None:
    docker_program.says('"exec "*"make run "*', "connlab set-up: building k6: done in 9 s\n", exit_code=run)
    docker_program.says('"exec "*" make test"', "=== k6: passed after 12.5 s\n", exit_code=test)
    ended = run_program(tree / "setup" / "bare.sh")
    assert ended.returncode == code, ended.stderr
    said = [line.split() for line in ended.stdout.splitlines()]
    for release in ("bookworm", "trixie"):
        told = {" ".join(words[2:]) for words in said if words and words[0] == release}
        first = "ok" if run == 0 else "failed (1)"
        second = "ok" if test == 0 else "failed (1)"
        steps = {"ok root file system", "ok machine", "ok clone"}
        installed = {"ok pipx install", "ok connlab run accept-queue-overflow"}
        commands = {f"{first} make run SCENARIO=accept-queue-overflow", f"{second} make test"}
        assert told == steps | commands | installed
        assert "=== k6: passed" in (tree / ".cache" / "test-bare" / f"{release}.log").read_text()
    assert said.count(["9", "building", "k6"]) == said.count(["12", "passed", "k6"]) == 2
    assert set(removals(docker_program)) == {"connlab-bare-bookworm", "connlab-bare-trixie"}


def test_a_machine_has_an_engine_s_volume_a_label_and_the_user_s_settings(
    tree: Path, tmp_path: Path, docker_program: FakeDocker
) -> None:
    run_program(tree / "setup" / "bare.sh", "trixie", check=True)
    started = next(call for call in docker_program.calls if call.startswith("run "))
    of_engine = ("--privileged", "--cgroupns private", ":/var/lib/docker ")
    assert all(part in started for part in (*of_engine, "--label connlab.check=bare", "--env GOPROXY "))
    assert any(call.startswith("volume create --label connlab.check=bare ") for call in docker_program.calls)
    assert (tmp_path / "apt.conf").read_text() == 'Acquire::http::Proxy "http://proxy";\n'
    assert not any(word in " ".join(docker_program.calls) for word in ("docker.sock", str(tree), "bookworm "))


REGISTRY = """#!/usr/bin/env python3
import re, socket, sys, time
served = socket.create_server(("127.0.0.1", int(re.search(r"127.0.0.1:([0-9]+)", open(sys.argv[2]).read())[1])))
time.sleep(600)
"""


def test_with_images_from_a_registry_the_machine_has_it_and_an_engine_before_the_first_result(
    tree: Path, tmp_path: Path, docker_program: FakeDocker
) -> None:
    # The tree's clone pushes, so it must have these before.
    write_program(
        tree / "setup" / "registry.sh", f"#!/bin/sh\nmkdir -p .cache/bin; cp {tmp_path}/registry .cache/bin/\n"
    )
    write_program(tree / "setup" / "push-images.sh", f'#!/bin/sh\necho "$1" >{tmp_path}/pushed\n')
    write_program(tmp_path / "registry", REGISTRY)
    git = ("git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b")
    run_program(*git, "commit", "--quiet", "--all", "--message", "registry", check=True)
    ended = run_program(tree / "setup" / "bare.sh", "--pull", "trixie")
    assert ended.returncode == 0, ended.stderr
    pushed = (tmp_path / "pushed").read_text().strip()
    assert re.fullmatch(r"127\.0\.0\.1:[0-9]+/connlab", pushed)
    steps = [line.split(maxsplit=3)[3] for line in ended.stdout.splitlines() if line.startswith("trixie")]
    assert steps[2:] == [
        "clone",
        "a registry with the images",
        "a Docker Engine",
        "make run SCENARIO=accept-queue-overflow",
    ]
    [run] = [call for call in docker_program.calls if " make run " in call]
    assert f"--env CONNLAB_IMAGES={pushed} " in run
    served = [call for call in docker_program.calls if "exec --detach " in call]
    assert re.search(r"/registry/registry serve /\S+/registry/config\.yaml$", served[0])


def test_a_machine_that_does_not_start_ends_its_release_alone(tree: Path, docker_program: FakeDocker) -> None:
    docker_program.says('"run "*"bare-bookworm"*', exit_code=125)
    ended = run_program(tree / "setup" / "bare.sh")
    assert ended.returncode == 1
    assert "failed (125) machine" in ended.stdout.replace("  ", " ")
    made = [call for call in docker_program.calls if " make " in call and call.startswith("exec ")]
    assert [call.split()[3].rpartition("-")[0] for call in made] == ["connlab-bare-trixie"] * 2
    assert "connlab-bare-bookworm" in removals(docker_program)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_machine(tree: Path, docker_program: FakeDocker, number: signal.Signals) -> None:
    docker_program.stays('"exec "*"make run "*')
    script = tree / "setup" / "bare.sh"
    code, _ = end_by(number, lambda: any("make run" in call for call in docker_program.calls), script, "bookworm")
    assert code == 4
    assert "connlab-bare-bookworm" in removals(docker_program)
    assert not any("make test" in call for call in docker_program.calls)


def test_a_release_that_nobody_knows_is_refused(tree: Path, docker_program: FakeDocker) -> None:
    ended = run_program(tree / "setup" / "bare.sh", "buster")
    assert ended.returncode == 4
    assert "there is no release 'buster'" in ended.stderr
    assert "hint: RELEASE=bookworm" in ended.stderr
    assert docker_program.calls == []
