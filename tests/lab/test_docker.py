import time
from pathlib import Path

import pytest

from lab.docker import DockerFailed, docker
from lab.errors import LabError
from tests.lab.support import FakeDocker


def test_it_gives_what_docker_printed(fake_docker: FakeDocker) -> None:
    fake_docker.says('"version "*', "26.1.5\n")
    assert docker("version", "--format", "{{.Server.Version}}") == "26.1.5\n"


def test_arguments_reach_docker_as_they_are(fake_docker: FakeDocker) -> None:
    docker("exec", "a b", "$(reboot)", "; ls")
    assert fake_docker.calls == ["exec a b $(reboot) ; ls"]


def test_a_failure_says_what_docker_said_and_the_way_on(fake_docker: FakeDocker) -> None:
    fake_docker.says("*", stderr="Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", exit_code=1)
    with pytest.raises(DockerFailed, match=r"(?s)exit code 1:\n  Cannot connect.*way on: start the Docker Engine"):
        docker("ps")


def test_a_full_disk_has_its_own_way_on(fake_docker: FakeDocker) -> None:
    fake_docker.says("*", stderr="write /x: no space left on device", exit_code=1)
    with pytest.raises(DockerFailed, match="way on: free space on the disk"):
        docker("compose", "up")


def test_one_that_does_not_answer_is_ended(fake_docker: FakeDocker) -> None:
    fake_docker.says("*", seconds=30)
    began = time.monotonic()
    with pytest.raises(LabError, match=r"'docker ps …' did not end within 0.2 s"):
        docker("ps", timeout_s=0.2)
    assert time.monotonic() - began < 5


def test_without_docker_the_way_on_is_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="the command 'docker' is not installed\nway on: 'connlab doctor'"):
        docker("ps")
