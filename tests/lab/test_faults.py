"""The table of fault and phase, on the engine in memory: every way to end before the time, at every point of a run.

One rule for all: evidence first, then a clean-up that nothing interrupts twice, then the word and the exit code.
Signals are real ones, sent to this process. tests/faults/table.py has the table.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats import manifest, safe_files
from lab import paths
from lab.errors import EngineFailed
from lab.runs import machine, phases, run_results
from lab.scenarios.topology import collector_of
from tests.faults.table import CANNOT, CELLS, FAULTS, INCONCLUSIVE, PHASES
from tests.lab.engine import InMemoryEngine
from tests.lab.support import MINIMAL, Write, connlab

# Where a phase of the table is: as the engine is asked for this. No engine is asked in the analysis.
VERBS = {
    "before": "versions",
    "start": "start",
    "load": "load",
    "ending": "stop along the path",
    "logs": "keep logs",
    "removal": "remove",
    "analysis": "analysis",
}
EVIDENCE = b"what was seen before the fault\n"
_HOUR_NS = 3_600 * 10**9


class World:
    """A lab in which one fault strikes at one point, once.

    Attributes:
        broken: what each later verb meets.
    """

    def __init__(self, results: Path, patch: pytest.MonkeyPatch, fault: Callable[[World], None], phase: str) -> None:
        self.results = results
        self.patch = patch
        self.phase = phase
        self.struck = False
        self.fault = fault
        self.broken: Callable[[str], None] = lambda _: None
        # The load goes on for as long as its fault wants.
        self.engine = InMemoryEngine(at=self.at, load_ends_after="never" if phase == "load" else "")

    def at(self, verb: str) -> None:
        if verb == "load":
            for folder in self.results.glob("one/2*/raw/backend-1/role"):
                (folder / "evidence").write_bytes(EVIDENCE)
        # A run begins with a removal of its own.
        begun = verb != "remove" or self.engine.running or "stop along the path" in self.engine.did
        if verb == VERBS[self.phase] and begun and not self.struck:
            self.struck = True
            self.fault(self)
        else:
            self.broken(verb)

    def ends_the_load(self) -> None:
        self.engine.end("k6-1", 0)


Fault = Callable[[World], None]


def signalled(*numbers: signal.Signals) -> Fault:
    """Send the first signal now, and each other one to the clean-up after it."""

    def strike(world: World) -> None:
        rest = list(numbers[1:])

        def again(_: str) -> None:
            if rest:
                os.kill(os.getpid(), rest.pop())

        world.broken = again
        os.kill(os.getpid(), numbers[0])

    return strike


def refused(_: str) -> None:
    raise EngineFailed("Cannot connect to the engine")


def engine_ends(world: World) -> None:
    world.broken = refused
    if world.phase != "analysis":
        refused("")


def engine_restarts(world: World) -> None:
    """All containers end with it, and the verb that is at work fails."""
    for service in sorted(world.engine.running):
        world.engine.end(service, 137)
    if world.phase != "analysis":
        refused("")


def ends(service: str) -> Fault:
    return lambda world: world.engine.end(service, 137)


def hangs(world: World) -> None:
    world.patch.setattr(phases, "_END_MARGIN_S", -600)


def unwritable(number: int) -> Fault:
    def strike(world: World) -> None:
        def refuse(file: Path, *_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number), str(file))

        write = safe_files.atomic_write

        def write_into_the_reserve(file: Path, text: str) -> None:
            # A full disk has room for the last manifest, which was put by.
            if number != errno.ENOSPC or (file.parent / ".manifest.reserve").exists():
                refuse(file)
            write(file, text)

        if world.phase == "load" and number == errno.ENOSPC:
            world.patch.setattr(machine, "disk_free_bytes", lambda _: 0)
            return
        world.patch.setattr("formats.manifest.atomic_write", write_into_the_reserve)
        world.patch.setattr("pathlib.Path.mkdir", refuse)
        if world.phase == "analysis":
            refuse(world.results)
        if world.phase == "load":
            world.ends_the_load()

    return strike


def moved(world: World) -> None:
    world.results.rename(world.results.with_name("moved"))
    world.ends_the_load()


def stepped(by_ns: int) -> Fault:
    def strike(world: World) -> None:
        real = time.time_ns
        world.patch.setattr(time, "time_ns", lambda: real() + by_ns)
        world.ends_the_load()

    return strike


def taken(_: World) -> None:
    raise EngineFailed('the name "connlab-run-backend-1" is already in use')


STRIKES: dict[str, Fault] = {
    "INT": signalled(signal.SIGINT),
    "INT twice": signalled(signal.SIGINT, signal.SIGINT),
    "TERM": signalled(signal.SIGTERM),
    "TERM twice": signalled(signal.SIGTERM, signal.SIGTERM),
    "HUP": signalled(signal.SIGHUP),
    "HUP twice": signalled(signal.SIGHUP, signal.SIGHUP),
    "engine ends": engine_ends,
    "engine restarts": engine_restarts,
    "server ends": ends("backend-1"),
    "collector ends": ends(collector_of("backend-1")),
    "k6 ends": ends("k6-1"),
    "k6 hangs": hangs,
    "disk full": unwritable(errno.ENOSPC),
    "results read-only": unwritable(errno.EROFS),
    "results moved": moved,
    "clock steps forward": stepped(_HOUR_NS),
    "clock steps back": stepped(-_HOUR_NS),
    "name taken": taken,
}


def test_the_table_has_every_fault_at_every_point() -> None:
    assert STRIKES.keys() == FAULTS.keys()
    assert VERBS.keys() == PHASES.keys()
    every = {(fault, phase) for fault in FAULTS for phase in PHASES}
    assert not CELLS.keys() & CANNOT.keys()
    assert CELLS.keys() | CANNOT.keys() == every


@pytest.fixture
def make(elsewhere: Path, write_scenario: Write, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], World]:
    monkeypatch.setattr(paths, "SCENARIOS", write_scenario(MINIMAL + "drain: 0s\n"))
    scratch = elsewhere / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    # As a shell starts it, whatever those ignore who started the tests.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)

    def of(fault: str, phase: str) -> World:
        return World(paths.RESULTS, pytest.MonkeyPatch(), STRIKES[fault], phase)

    return of


class Analysis:
    """What a good run comes to: derived once, and copied for the others, which are the same but for their names."""

    def __init__(self, folder: Path) -> None:
        self._kept = folder / "kept"
        self._verdict: dict[str, Any] = {}
        self._derive = run_results.derive_run

    def derive(self, folder: Path) -> dict[str, Any]:
        if not self._verdict:
            self._verdict = self._derive(folder)
            shutil.copytree(folder / "derived", self._kept)
        else:
            shutil.copytree(self._kept, folder / "derived")
        return self._verdict


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return Analysis(tmp_path_factory.mktemp("analysis"))


def run(world: World, engine: InMemoryEngine, patch: pytest.MonkeyPatch, analysis: Analysis | None = None) -> int:
    """Run the scenario by the command line, and give its exit code; a good run needs no analysis of its own."""
    derive = analysis.derive if analysis else run_results.derive_run

    def derived(folder: Path, *_: object) -> dict[str, Any]:
        world.at("analysis")
        return derive(folder)

    with patch.context() as context:
        # Making its page is most of what a run's end takes.
        if world.phase != "analysis":
            context.setattr("lab.runs.run_results.write_report", lambda _: None)
        context.setattr("lab.outcomes.run_and_judge.selected_engine", lambda: engine)
        context.setattr(run_results, "derive_run", derived)
        return connlab("run", "one")


@pytest.mark.parametrize(("fault", "phase"), CELLS)
def test_a_fault_leaves_evidence_a_word_and_nothing_else(  # noqa: PLR0917 # fixtures
    fault: str,
    phase: str,
    make: Callable[[str, str], World],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    analysis: Analysis,
) -> None:
    due = CELLS[fault, phase]
    world = make(fault, phase)
    try:
        code = run(world, world.engine, monkeypatch)
    finally:
        world.patch.undo()
        world.broken = lambda _: None
    said = capsys.readouterr().err
    assert world.struck
    assert (code, bool(world.engine.running)) == (due.code, due.stays)
    assert due.word in " ".join(said.split())
    assert "Traceback" not in said
    assert "internal error" not in said
    results = world.results if fault != "results moved" else world.results.with_name("moved")
    # As it is written: a run whose process has ended is read as aborted.
    left = [json.loads(file.read_bytes())["status"] for file in results.glob("one/2*/manifest.json")]
    assert left == ([due.status] if due.status else [])
    seen = [file.read_bytes() for file in results.glob("one/2*/raw/backend-1/role/evidence")]
    assert seen == ([EVIDENCE] if phase not in ("before", "start") else [])
    assert list(Path(tempfile.gettempdir()).iterdir()) == []

    # The next run is good, and removes what was left.
    struck_again = InMemoryEngine()
    struck_again.running = world.engine.running
    assert run(world, struck_again, monkeypatch, analysis if phase != "analysis" else None) == INCONCLUSIVE
    assert not struck_again.running
    after = [manifest.load_manifest(file.parent).status for file in sorted(world.results.glob("one/2*/manifest.json"))]
    assert after[-1] == "complete"
    assert "running" not in after
