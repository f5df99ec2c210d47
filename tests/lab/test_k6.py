import json

import pytest

from lab.engines.compose.containers import Watch
from lab.engines.compose.engine import Compose
from lab.errors import LabError
from lab.runs import phases
from tests.lab.engine import InMemoryDocker


def status(number: int, *, paused: bool) -> str:
    return json.dumps({"data": {"type": "status", "attributes": {"status": number, "paused": paused}}})


def test_it_waits_until_every_instance_stands_paused(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("exec *", status(4, paused=True))
    with Watch("run-1") as watch:
        phases.await_clients(Compose(), ["k6-1", "k6-2"], watch)
    assert sum(call.startswith("exec connlab-collector-k6-") for call in fake_docker.calls) == 2


def test_an_instance_that_ended_is_named_with_its_last_words(fake_docker: InMemoryDocker) -> None:
    died = {"Action": "die", "Actor": {"Attributes": {"name": "connlab-k6-1", "exitCode": "107"}}}
    fake_docker.says("events *", json.dumps(died) + "\n")
    fake_docker.says("exec *", exit_code=1)
    fake_docker.says("logs *", "CONNLAB_USERS must be set\n")
    with (
        Watch("run-1") as watch,
        pytest.raises(LabError, match=r"k6-1 ended with exit code 107 before its load:\n  CONNLAB_USERS"),
    ):
        phases.await_clients(Compose(), ["k6-1"], watch)


def test_all_instances_are_let_go(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("exec *", status(5, paused=False))
    phases.release_clients(Compose(), ["k6-1", "k6-2"])
    assert {call.split(" collector ")[0] for call in fake_docker.calls} == {
        "exec connlab-collector-k6-1",
        "exec connlab-collector-k6-2",
    }
    assert all("--method PATCH" in call and '"paused": false' in call for call in fake_docker.calls)


@pytest.mark.parametrize("answer", [status(4, paused=True), "{}", "null"])
def test_one_that_does_not_go_is_an_error(fake_docker: InMemoryDocker, answer: str) -> None:
    fake_docker.says("exec *", answer)
    with pytest.raises(LabError):
        phases.release_clients(Compose(), ["k6-1"])
