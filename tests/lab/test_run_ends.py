"""How a run ends: status, exits and `latest`; evidence before clearing up, which no signal breaks off."""

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from formats import manifest
from lab.engines.compose.engine import Compose
from lab.errors import EngineFailed, Interruption, LabError
from lab.runs import run_results
from lab.runs.run import run
from lab.scenarios.topology import Topology
from tests.lab.container_states import event, state
from tests.lab.engine import InMemoryDocker, InMemoryEngine
from tests.lab.support import IMAGES, MINIMAL, Go, Make, connlab, the_run
from tests.lab.test_phases import status
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
        fake_docker.stays("events *", event("die", name="connlab-run-k6-1", exitCode=str(client)) + "\n")
        fake_docker.says("ps *", "connlab-run-k6-1\n")
        fake_docker.says("inspect *", state("k6-1", code=client))
        fake_docker.says("logs --tail *", "last words\n")
        return run(resolved, Compose(), ["connlab", "run", "one"], Console(quiet=True), tries_out=tries_out)

    return go


@pytest.mark.parametrize(
    ("client", "expected", "reason"),
    [(0, "complete", None), (99, "complete", None), (107, "failed", "k6-1 ended with exit code 107:\n  last words")],
)
def test_how_its_load_ended_says_how_it_ended(
    ended: Callable[..., Path], fake_docker: InMemoryDocker, client: int, expected: str, reason: str | None
) -> None:
    left = manifest.load_manifest(ended(client))
    assert (left.status, left.reason) == (expected, reason)
    assert [phase.name for phase in left.phases] == ["prepare", "measure", "drain"]
    assert all(phase.end_us for phase in left.phases)
    assert left.exits == {"k6-1": client, "backend-1": None}
    stop, remove = "stop --time 15 connlab-run-k6-1", "rm --force --volumes connlab-run-k6-1"
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


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Disturbed(InMemoryEngine):
    """A signal reaches the lab each time a verb is used."""

    def __init__(self, at: str, number: signal.Signals, found: dict[str, object] | None = None) -> None:
        super().__init__(found=found)
        self._at = at
        self._number = number

    def _do(self, what: str) -> None:
        super()._do(what)
        if what == self._at and self.did.count("start"):
            os.kill(os.getpid(), self._number)


class Silent(InMemoryEngine):
    """It does not give what its containers said."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        assert topology.all
        assert raw.is_dir()
        raise self._error


@pytest.fixture(autouse=True)
def heeded() -> None:
    """Signals as a command meets them, whatever those ignore who started the tests."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("at", ["stop along the path", "remove"])
def test_a_signal_does_not_break_off_the_clearing_up_of_a_failed_run(
    go: Go, elsewhere: Path, at: str, number: signal.Signals
) -> None:
    engine = Disturbed(at, number, found={"backend.accept_count": 100})
    with pytest.raises(LabError, match="asked 1, found 100"):
        go(engine)
    assert engine.did == ["remove", "start", "stop along the path", "remove"]
    assert engine.running == set()
    assert (the_run(elsewhere).status, the_run(elsewhere).exits) == ("aborted", {"k6-1": 0, "backend-1": 0})


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("at", ["stop along the path", "remove"])
def test_a_signal_in_the_ending_leaves_a_run_complete(go: Go, elsewhere: Path, at: str, number: signal.Signals) -> None:
    engine = Disturbed(at, number)
    with pytest.raises(Interruption, match=r"after the end of the run, which is complete.*\n.*make analyse RUN="):
        go(engine)
    assert engine.did == ["remove", "start", "stop along the path", "remove"]
    assert engine.running == set()
    assert (the_run(elsewhere).status, the_run(elsewhere).reason, the_run(elsewhere).exits) == (
        "complete",
        None,
        {"k6-1": 0, "backend-1": 0},
    )
    assert (elsewhere / "results" / "one" / "latest" / "raw" / "backend-1" / "container.log").is_file()


@pytest.mark.parametrize("error", [EngineFailed("no logs"), OSError(errno.ENOSPC, "no logs")])
def test_logs_that_cannot_be_had_spoil_no_run(
    go: Go, elsewhere: Path, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    go(Silent(error))
    assert (the_run(elsewhere).status, the_run(elsewhere).exits) == ("complete", {"k6-1": 0, "backend-1": 0})
    said = capsys.readouterr().err
    assert "what the containers said was not kept: " in said
    assert "no logs" in said


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_analysis_says_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr("lab.runs.run_results.derive_run", lambda *_: os.kill(os.getpid(), number))
    monkeypatch.setattr(run_results, "write_report", lambda folder: folder)
    assert connlab("analyse", str(tmp_path)) == 4
    said = capsys.readouterr().err
    assert "during the analysis; what was recorded stays in" in said
    assert f"make analyse RUN={tmp_path}" in said
