"""A run that comes to its end, its load well or not: its status, its exits, and `latest`, which points at it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from formats import manifest
from lab.engines.compose.engine import Compose
from lab.errors import LabError
from lab.runs.run import run
from tests.lab.container_states import event
from tests.lab.engine import InMemoryDocker
from tests.lab.support import IMAGES, MINIMAL, Make
from tests.lab.test_k6 import status
from tests.lab.test_readback import SETTINGS, namespace


@pytest.fixture
def ended(effective: Make, elsewhere: Path, fake_docker: InMemoryDocker) -> Callable[..., Path]:
    """Run the minimal scenario; its client ends with this exit code, or Compose with that one."""
    assert elsewhere.is_dir()
    resolved = effective(text=MINIMAL + "drain: 0s\n")

    def go(client: int, *, compose: int = 0, tries_out: bool = False) -> Path:
        fake_docker.forget()
        fake_docker.says("version *", "26.1.5")
        fake_docker.says("compose version *", "2.26.1")
        fake_docker.says("image ls *", IMAGES)
        fake_docker.says("compose * up *", exit_code=compose)
        fake_docker.says("* inspect *", namespace())
        fake_docker.says("*/actuator/tomcat", json.dumps({"settings": SETTINGS}))
        fake_docker.says("* PATCH *", status(5, paused=False))
        fake_docker.says("*/v1/status", status(4, paused=True))
        fake_docker.stays("events *", event("die", name="connlab-k6-1", exitCode=str(client)) + "\n")
        fake_docker.says("ps *", "connlab-k6-1\n")
        state = {
            "Running": False,
            "ExitCode": client,
            "StartedAt": "2026-01-31T12:00:00Z",
            "OOMKilled": False,
            "Error": "",
        }
        fake_docker.says("inspect *", f"/connlab-k6-1 {json.dumps(state)}\n")
        fake_docker.says("logs --tail *", "last words\n")
        return run(resolved, Compose(), ["connlab", "run", "one"], Console(quiet=True), tries_out=tries_out)

    return go


@pytest.mark.parametrize(
    ("client", "state", "reason"),
    [(0, "complete", None), (99, "complete", None), (107, "failed", "k6-1 ended with exit code 107:\n  last words")],
)
def test_how_its_load_ended_says_how_it_ended(
    ended: Callable[..., Path], fake_docker: InMemoryDocker, client: int, state: str, reason: str | None
) -> None:
    left = manifest.load_manifest(ended(client))
    assert (left.status, left.reason) == (state, reason)
    assert [phase.name for phase in left.phases] == ["prepare", "measure", "drain"]
    assert all(phase.end_us for phase in left.phases)
    assert left.exits == {"k6-1": client, "backend-1": None}
    stop, remove = "stop --time 15 connlab-k6-1", "rm --force --volumes connlab-k6-1"
    calls = [call for call in fake_docker.calls if call in (stop, remove)]
    assert set(calls[calls.index(stop) + 1 :]) == {remove}


def test_latest_points_at_the_newest_that_came_to_its_end(ended: Callable[..., Path], elsewhere: Path) -> None:
    latest = elsewhere / "results" / "one" / "latest"
    for client in (0, 107):
        assert ended(client) == latest.resolve()
    before = latest.resolve()
    with pytest.raises(LabError, match="the run was aborted"):
        ended(0, compose=1)
    assert latest.resolve() == before


def test_a_run_that_tries_settings_out_leaves_latest_where_it_is(ended: Callable[..., Path], elsewhere: Path) -> None:
    first = ended(0)
    assert ended(0, tries_out=True) != first
    assert (elsewhere / "results" / "one" / "latest").resolve() == first
