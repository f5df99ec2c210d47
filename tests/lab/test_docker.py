import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.engines.compose.docker import DockerFailed, docker, follow, save, try_folder
from lab.errors import LabError
from tests.lab.engine import InMemoryDocker
from tests.lab.support import FakeDocker
from tests.lab.waiting import is_at_work, wait_until


def test_arguments_reach_docker_as_they_are_and_what_it_prints_is_returned(docker_program: FakeDocker) -> None:
    docker_program.says('"exec "*', "26.1.5\n")
    assert docker("exec", "a b", "$(reboot)", "; ls") == "26.1.5\n"
    assert docker_program.calls == ["exec a b $(reboot) ; ls"]


@pytest.mark.parametrize(
    ("folder", "field"),
    [("/a b:c/$d", "source=/a b:c/$d"), ("/a,target=/b", '"source=/a,target=/b"'), ('/a"b', '"source=/a""b"')],
)
def test_a_folder_of_any_name_is_mounted_by_that_name(fake_docker: InMemoryDocker, folder: str, field: str) -> None:
    try_folder("k6", "inspect", (Path(folder), "/script"), {}, refused=LabError)
    assert f" --mount type=bind,{field},target=/script,readonly connlab/k6 inspect" in fake_docker.calls[0]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
            r"^Cannot connect to .*docker\.sock\.\nhint: start the Docker Engine",
        ),
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///run/docker.sock: Get …",
            r"^this user may not use the Docker Engine: .*\nhint: do it as root",
        ),
        ("no such container: a", r"'docker ps …' failed with exit code 1:\n  no such container: a$"),
        ("write /x: no space left on device", "hint: free space on the disk"),
        ("pull access denied for connlab/k6", "hint: build the images"),
    ],
)
def test_a_failure_says_what_docker_said_and_the_hint(docker_program: FakeDocker, said: str, message: str) -> None:
    docker_program.says("*", stderr=said, exit_code=1)
    with pytest.raises(DockerFailed, match=message):
        docker("ps")


def test_one_that_does_not_answer_is_ended(docker_program: FakeDocker) -> None:
    docker_program.says("*", seconds=300)
    began = time.monotonic()
    with pytest.raises(LabError, match=r"'docker ps …' did not end within 0.2 s"):
        docker("ps", timeout_s=0.2)
    assert time.monotonic() - began < 300


def test_what_it_runs_as_a_program_of_its_own_ends_with_it(docker_program: FakeDocker, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    docker_program.does(f"*) sleep 300 & echo $! >{plugin}.new; mv {plugin}.new {plugin}; wait ;;")
    with pytest.raises(DockerFailed):
        docker("compose", "up", timeout_s=300, unless=plugin.is_file)
    wait_until(lambda: not is_at_work(int(plugin.read_text())))


@pytest.fixture
def left_alone(docker_program: FakeDocker, tmp_path: Path) -> Callable[[], int | None]:
    """Let `docker` end while what it started holds its output open; the pid of that once `docker` has ended."""
    plugin, leader = tmp_path / "plugin", tmp_path / "leader"
    docker_program.does(f"*) sleep 300 & echo $! >{plugin}; echo $$ >{leader}; exit 1 ;;")
    return lambda: int(plugin.read_text()) if leader.is_file() and has_ended(leader.read_text()) else None


def has_ended(pid: str) -> bool:
    """Whether a process has ended, if nobody has waited for it yet, too."""
    return bool(pid) and not is_at_work(int(pid))


def test_what_it_runs_ends_at_its_time_out_although_it_ended_itself(left_alone: Callable[[], int | None]) -> None:
    with pytest.raises(DockerFailed):
        docker("compose", "up", timeout_s=300, unless=left_alone)
    wait_until(lambda: not is_at_work(left_alone() or 0))


def test_what_is_followed_ends_with_what_it_runs_although_it_ended_itself(
    left_alone: Callable[[], int | None],
) -> None:
    told = follow("events")
    wait_until(lambda: not told.goes_on)
    plugin = left_alone()
    assert plugin
    assert is_at_work(plugin)
    told.end()
    assert list(told) == []
    wait_until(lambda: not is_at_work(plugin))


def test_all_that_a_command_says_reaches_a_file_in_order(docker_program: FakeDocker, tmp_path: Path) -> None:
    docker_program.says('"logs "*', "out\n", stderr="error\n", exit_code=3)
    with (tmp_path / "log").open("wb") as log:
        assert save(log, "logs", "one", timeout_s=60) == 3
    assert (tmp_path / "log").read_text() == "out\nerror\n"


def test_what_is_followed_tells_each_line_and_goes_on_until_it_is_ended(docker_program: FakeDocker) -> None:
    docker_program.stays('"events "*', "one\ntwo\n")
    told = follow("events", "--format", "json")
    lines = iter(told)
    assert (next(lines), next(lines), told.goes_on) == ("one\n", "two\n", True)
    told.end()
    assert (list(lines), told.goes_on) == ([], False)
    assert docker_program.calls == ["events --format json"]


def test_without_docker_the_way_on_is_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="the command 'docker' is not installed\nhint: 'connlab doctor'"):
        docker("ps")
