"""The containers of a run on Docker: how they end, what is read off them, and how all of the lab's is removed."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.compose.containers import Watch, clean
from lab.engines.compose.engine import Compose
from lab.errors import LabError
from lab.scenarios.topology import topology_of
from tests.lab.container_states import NEVER, event, state
from tests.lab.engine import InMemoryDocker
from tests.lab.support import THROUGH_NGINX, FakeDocker, Make
from tests.lab.waiting import is_at_work, wait_until


def test_what_never_ran_has_no_exit_code(effective: Make, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-run-k6-1\nconnlab-run-backend-1\n")
    fake_docker.says("inspect *", state("k6-1", StartedAt=NEVER) + state("backend-1", code=143))
    assert Compose().exit_codes(topology_of(effective())) == {"k6-1": None, "backend-1": 143}


def test_roles_end_along_the_path_and_then_their_collectors(effective: Make, fake_docker: InMemoryDocker) -> None:
    topology = topology_of(effective("backend.instances=2", text=THROUGH_NGINX))
    services = [*topology.all, *map("collector-{}".format, topology.all)]
    fake_docker.says("ps *", "\n".join(f"connlab-run-{service}" for service in services) + "\n")
    Compose().stop_along_the_path(topology)
    assert [call for call in fake_docker.calls if call.startswith("stop ")] == [
        "stop --time 15 connlab-run-k6-1",
        "stop --time 15 connlab-run-nginx",
        "stop --time 15 connlab-run-backend-1 connlab-run-backend-2",
        "stop --time 15 " + " ".join(f"connlab-run-collector-{instance}" for instance in topology.all),
    ]


# --- the engine's events ----------------------------------------------------------------------------------------


@pytest.fixture
def watch(fake_docker: InMemoryDocker) -> Watch:
    fake_docker.says("events *", event("die", name="connlab-run-nginx", exitCode="1") + "\n")
    return Watch("run-1")


def test_the_end_of_a_container_is_seen(watch: Watch, fake_docker: InMemoryDocker) -> None:
    with watch:
        wait_until(lambda: watch.ended("nginx") is not None)
        watch.take(event("oom", name="connlab-run-backend-1"))
        watch.take(event("die", name="connlab-run-backend-1", exitCode="137"))
    assert watch.ended("nginx") == "nginx ended with exit code 1"
    assert watch.ended("backend-1") == "backend-1 ended with exit code 137, out of memory"
    assert (watch.exit_code("k6-1"), watch.ended("k6-1")) == (None, None)
    assert "label=connlab.run=run-1" in fake_docker.calls[0]


@pytest.mark.parametrize(
    "line", ["", "no json", "[]", '{"Action": "die"}', '{"Action": "die", "Actor": {"Attributes": {}}}']
)
def test_what_is_no_event_is_passed_over(watch: Watch, line: str) -> None:
    with watch:
        watch.take(line)


def test_what_listens_to_the_engine_ends_with_a_lab_that_is_killed(docker_program: FakeDocker) -> None:
    docker_program.stays('"events "*')
    program = (
        "import time; from lab.engines.compose.containers import Watch; watch = Watch('run-1'); "
        "print(watch._events.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout
        listener = int(lab.stdout.readline())
        # Before that it is setpriv, which may not have asked yet to be ended with its parent, or a program that is just
        # being started, which has no command line.
        wait_until(lambda: Path(f"/proc/{listener}/cmdline").read_text().startswith("sleep"))
        lab.kill()
    wait_until(lambda: not is_at_work(listener))


# --- removal ----------------------------------------------------------------------------------------------------


def test_what_the_engine_was_still_making_is_removed_too(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-run-late\n", after="network rm", once=True)
    fake_docker.says("network ls *", "connlab-run_lab\n", once=True)
    assert Compose().remove() == ["connlab-run_lab", "connlab-run-late"]
    assert [call for call in fake_docker.calls if call.split()[0] == "rm" or call.startswith("network rm")] == [
        "network rm connlab-run_lab",
        "rm --force --volumes connlab-run-late",
    ]


def test_a_network_that_a_late_container_has_joined_is_tried_again(fake_docker: InMemoryDocker) -> None:
    for _ in range(2):
        fake_docker.says("network ls *", "connlab-run_lab\n", once=True)
    fake_docker.says("network rm *", stderr="has active endpoints", exit_code=1, once=True)
    assert Compose().remove() == ["connlab-run_lab"]


def test_what_comes_back_after_each_removal_is_named(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-run-again\n")
    fake_docker.revives = True
    with pytest.raises(LabError, match=r"(?s)after 5 removals .*connlab-run-again.*make clean"):
        Compose().remove()
    assert fake_docker.calls.count("rm --force --volumes connlab-run-again") == 5


def test_only_what_bears_the_lab_s_labels_or_its_own_names_is_removed(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *label=connlab.run*", "connlab-run-k6-1\n")
    fake_docker.says("ps *label=connlab.check*", "eager_name\n")
    fake_docker.says("ps --all --format*", "connlab-run-db\n")
    fake_docker.says("network ls *label=*", "connlab-run_lab\n")
    fake_docker.says("volume ls *label=connlab.check*", "connlab-bare-trixie-1\n")
    fake_docker.says("volume ls --format *", "connlab-cache\nconnlab-backup\nold-connlab-cache\n")
    fake_docker.says("image ls *dangling*label=connlab.source*", "abc123\n")
    fake_docker.says("image ls *dangling*")
    fake_docker.says("image ls *label=connlab.source*", "connlab/k6:latest\n<none>:<none>\n")
    fake_docker.says("image ls *label=connlab.base*", "connlab/base:latest\n")
    fake_docker.says("image ls *label=connlab.check*", "connlab/bare:trixie\n")
    fake_docker.says("image ls *reference=connlab/trixie-slim*", "connlab/trixie-slim:latest\n")
    fake_docker.says("image ls *reference=*", "connlab/mine:latest\n")
    cleaned = clean()
    assert cleaned.containers == ["connlab-run-k6-1", "eager_name"]
    assert cleaned.networks == ["connlab-run_lab"]
    assert cleaned.volumes == ["connlab-bare-trixie-1", "connlab-cache"]
    roles, bases = ["connlab/k6:latest", "connlab/bare:trixie"], ["connlab/base:latest", "connlab/trixie-slim:latest"]
    assert cleaned.images == [*roles, *bases, "abc123"]
    assert cleaned.kept == []
    removals = [call for call in fake_docker.calls if call.split()[0] in ("rm", "rmi") or " rm " in call]
    assert len(removals) == 10


@pytest.mark.parametrize(
    ("said", "kept"),
    [("image is used by container 1234\n", "image is used by container 1234"), ("", "(it said nothing)")],
)
def test_what_is_in_use_is_kept_and_told(fake_docker: InMemoryDocker, said: str, kept: str) -> None:
    fake_docker.says("image ls *reference=*", "connlab/base:latest\n")
    fake_docker.says("rmi *", stderr=said, exit_code=1)
    assert clean().kept == [f"connlab/base:latest: {kept}"]
