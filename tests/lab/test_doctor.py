import shutil

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


@pytest.mark.parametrize(
    ("said", "found", "hint"),
    [
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "Cannot connect", "install 25.0"),
        ("permission denied while trying to connect to the Docker daemon socket", "this user may not", "do it as root"),
    ],
)
def test_without_an_engine_for_this_user_the_doctor_still_answers(
    fake_docker: InMemoryDocker, said: str, found: str, hint: str
) -> None:
    fake_docker.says("*", stderr=said, exit_code=1)
    all_found = findings()
    engine = all_found["Docker Engine"]
    assert (engine.state, engine.found[: len(found)], str(engine.hint)[: len(hint)]) == ("missing", found, hint)
    assert all_found["open files in a container"].hint is None
    assert all_found["memory"].state in ("ok", "warn")


def test_few_open_files_are_a_warning(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("run *", "Max open files            1024   4096   files\n")
    assert findings()["open files in a container"].found == "4,096"


def test_where_the_kernel_gives_no_events_the_reason_is_named(fake_docker: InMemoryDocker) -> None:
    why = "the kernel does not tell its types (/sys/kernel/btf/vmlinux): no such file"
    fake_docker.says("run * connlab/collector events", stderr=f"collector: {why}\n", exit_code=1)
    assert (findings()["kernel events"].state, findings()["kernel events"].found) == ("warn", why)


def test_without_openssl_runs_with_tls_are_named(fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_docker.says("*", "26.1.5\n")
    assert findings()["openssl"].state == "ok"
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert findings()["openssl"] == Finding(
        "openssl", "warn", "not installed", "runs with TLS need it; apt-get install openssl"
    )
