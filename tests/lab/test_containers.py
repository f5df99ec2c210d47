"""What is read off the containers of a run when it is over."""

import pytest

from lab.engines.compose.engine import Compose
from lab.errors import EngineFailed, LabError
from lab.scenarios.topology import topology_of
from tests.lab.container_states import NEVER, state
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, Make


def test_what_never_ran_has_no_exit_code(effective: Make, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-k6-1\nconnlab-backend-1\n")
    fake_docker.says("inspect *", state("k6-1", StartedAt=NEVER) + state("backend-1", code=143))
    assert Compose().exit_codes(topology_of(effective())) == {"k6-1": None, "backend-1": 143}


def test_roles_end_along_the_path_and_then_their_collectors(effective: Make, fake_docker: InMemoryDocker) -> None:
    text = MINIMAL.replace("[k6, backend]", "[k6, nginx, backend]")
    topology = topology_of(effective("backend.instances=2", text=text))
    services = [*topology.all, *map("collector-{}".format, topology.all)]
    fake_docker.says("ps *", "\n".join(f"connlab-{service}" for service in services) + "\n")
    Compose().stop_along_the_path(topology)
    assert [call for call in fake_docker.calls if call.startswith("stop ")] == [
        "stop --time 15 connlab-k6-1",
        "stop --time 15 connlab-nginx",
        "stop --time 15 connlab-backend-1 connlab-backend-2",
        "stop --time 15 " + " ".join(f"connlab-collector-{instance}" for instance in topology.all),
    ]


def test_what_the_engine_was_still_making_is_removed_too(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-late\n", after="network rm", once=True)
    fake_docker.says("network ls *", "connlab_lab\n", once=True)
    assert Compose().remove() == ["connlab_lab", "connlab-late"]
    assert [call for call in fake_docker.calls if call.split()[0] == "rm" or call.startswith("network rm")] == [
        "network rm connlab_lab",
        "rm --force --volumes connlab-late",
    ]


def test_a_network_that_a_late_container_has_joined_is_tried_again(fake_docker: InMemoryDocker) -> None:
    for _ in range(2):
        fake_docker.says("network ls *", "connlab_lab\n", once=True)
    fake_docker.says("network rm *", stderr="has active endpoints", exit_code=1, once=True)
    assert Compose().remove() == ["connlab_lab"]


def test_what_cannot_be_removed_is_said(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("network ls *", "connlab_lab\n")
    fake_docker.says("network rm *", stderr="has active endpoints", exit_code=1)
    with pytest.raises(EngineFailed, match="has active endpoints"):
        Compose().remove()


def test_what_comes_back_after_each_removal_is_named(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *", "connlab-again\n")
    fake_docker.revives = True
    with pytest.raises(LabError, match=r"(?s)after 5 removals .*connlab-again.*make clean"):
        Compose().remove()
    assert fake_docker.calls.count("rm --force --volumes connlab-again") == 5
