import pytest

from lab.doctor import examine
from lab.engines.compose.engine import Compose
from lab.engines.protocol import Finding
from tests.lab.engine import InMemoryDocker


def findings() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(Compose())}


def test_a_machine_that_has_everything_is_reported_as_complete(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("version *", "26.1.5+dfsg1\n")
    fake_docker.says("compose version *", "2.26.1-4\n")
    fake_docker.says("buildx version*", "github.com/docker/buildx 0.13.1 0.13.1-3\n")
    fake_docker.says("run *", "Limit Soft Hard\nMax open files            20000   20000   files\n")
    found = findings()
    assert [found[name].state for name in ("Docker Engine", "Compose", "buildx", "open files in a container")] == [
        "ok"
    ] * 4
    assert found["images"].state == "warn"
    assert "not built yet: connlab/collector" in found["images"].found


@pytest.mark.parametrize(("version", "state"), [("24.0.9", "missing"), ("25.0.0", "ok"), ("26.1", "ok")])
def test_an_engine_that_is_too_old_is_missing(fake_docker: InMemoryDocker, version: str, state: str) -> None:
    fake_docker.says("version *", version)
    assert findings()["Docker Engine"].state == state


def test_without_an_engine_the_doctor_still_answers(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("*", stderr="Cannot connect to the Docker daemon at unix:///var/run/docker.sock", exit_code=1)
    found = findings()
    assert found["Docker Engine"].state == "missing"
    assert "Cannot connect" in found["Docker Engine"].found
    assert found["open files in a container"].way_on is None
    assert found["memory"].state in ("ok", "warn")


def test_a_user_who_may_not_use_the_engine_need_not_install_one(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("*", stderr="permission denied while trying to connect to the Docker daemon socket", exit_code=1)
    found = findings()["Docker Engine"]
    assert found.state == "missing"
    assert found.way_on is not None
    assert found.way_on.startswith("do it as root")


def test_few_open_files_are_a_warning(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("run *", "Max open files            1024   4096   files\n")
    assert findings()["open files in a container"].found == "4,096"
