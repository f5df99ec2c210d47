"""Fixtures: scenarios in a folder of their own, a fake `docker`, results and lock elsewhere."""

import itertools
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from formats import manifest
from formats.manifest import Git, Manifest
from lab import paths
from lab.engines import protocol
from lab.engines.compose.engine import Compose
from lab.engines.protocol import Engine
from lab.observe import observing
from lab.runs import phases, run_results
from lab.runs.run import run
from lab.runs.run_context import RunContext, open_run
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from tests.analysis.whole import make_run
from tests.lab import support
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, FakeDocker, Go, Make, Open, Run, Write
from tests.remembered import remembered

__all__ = ["remembered"]


@pytest.fixture(autouse=True)
def _nobody_looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    # The engine in memory is never long about anything.
    for module, seconds in ((phases, "_TICK_S"), (phases, "_POLL_S"), (protocol, "_POLL_S"), (observing, "_LOOK_S")):
        monkeypatch.setattr(module, seconds, 0.01)


@pytest.fixture(autouse=True)
def _samplers_are_awaited_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # The engine in memory has samplers that write nothing; a test that is about them sets a limit of its own.
    monkeypatch.setattr(phases, "_SAMPLE_MAX_S", 0)


@pytest.fixture(scope="session")
def _derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("derived")
    run_results.derive_run(make_run(folder).write())
    return folder


@pytest.fixture
def derived_run(_derived: Path) -> Callable[[Path], Path]:
    """Put a run, with all that is derived from it, into a folder; it is derived once, and copied."""

    def put(folder: Path) -> Path:
        shutil.copytree(_derived, folder)
        return folder

    return put


@pytest.fixture(autouse=True)
def _own_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test that writes scenarios lets theirs be the lab's folder, until it has ended.
    monkeypatch.setattr(paths, "SCENARIOS", paths.SCENARIOS)


@pytest.fixture
def write_scenario(tmp_path: Path) -> Write:
    """Write scenarios/<slug>/scenario.yaml, and give the folder, which is the lab's own from then on."""

    def write(text: str = MINIMAL, slug: str = "one") -> Path:
        folder = tmp_path / "scenarios"
        file = folder / slug / "scenario.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        paths.SCENARIOS = folder
        return folder

    return write


@pytest.fixture
def effective(write_scenario: Write) -> Make:
    """Resolve a scenario given as text, with overrides."""

    def make(*overrides: str, text: str = MINIMAL) -> ResolvedScenario:
        write_scenario(text)
        return resolve("one", overrides)

    return make


@pytest.fixture
def fake_docker(monkeypatch: pytest.MonkeyPatch) -> InMemoryDocker:
    """Let an engine in memory stand behind the lab's door to Docker."""
    made = InMemoryDocker()
    monkeypatch.setattr("lab.engines.compose.docker.client", made)
    return made


@pytest.fixture
def opened(effective: Make, elsewhere: Path, fake_docker: InMemoryDocker) -> Open:
    """Open a run of a scenario, by Compose; it is asked for its version once."""
    assert elsewhere.is_dir()
    fake_docker.says("version *", "26.1.5", once=True)
    fake_docker.says("compose version *", "2.26.1")

    def make(*overrides: str, text: str = MINIMAL) -> RunContext:
        return open_run(effective(*overrides, text=text), Compose(), ["connlab"])

    return make


@pytest.fixture
def go(effective: Make, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Take a scenario through a run on an engine, without its analysis; give what its manifest says."""
    assert elsewhere.is_dir()
    monkeypatch.setattr("lab.runs.run_results.analyse_run", lambda _: {})

    def take(engine: Engine, *overrides: str, text: str = MINIMAL + "drain: 0s\n") -> Manifest:
        return manifest.load_manifest(run(effective(*overrides, text=text), engine, ["connlab"], Console(quiet=True)))

    return take


@pytest.fixture
def connlab(capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a command line to the lab, and give what came of it."""
    return lambda *arguments: (support.connlab(*arguments), *capsys.readouterr())


@pytest.fixture
def docker_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Put a fake `docker` before everything else on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/bin:/usr/bin:/bin")
    return FakeDocker(folder)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let results, the machine's lock and the note of its holder lie below a folder of the test's own.

    Nor is git asked about the checkout, which each session would do with two processes. Each folder is made in a second
    of its own, for which nobody waits.
    """
    began = time.time()
    seconds = (time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(began + passed)) for passed in itertools.count())
    monkeypatch.setattr("lab.runs.run_folders.stamp", lambda: next(seconds))
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr("lab.runs.lock.lock_file", lambda: tmp_path / "connlab.lock")
    monkeypatch.setattr("lab.runs.lock.note_file", lambda: tmp_path / "cache" / "running.json")
    monkeypatch.setattr("lab.runs.machine.git_state", lambda: Git(commit="c" * 40, dirty=False))
    return tmp_path
