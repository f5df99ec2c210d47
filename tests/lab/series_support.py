"""A series over the minimal scenario, run without Docker: runs are folders with manifests, as an executor has them."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from analysis.verdicts.verdict_file import Verdict
from formats.predictions import Result
from formats.series import Fingerprint
from lab import paths
from lab.errors import LabError
from lab.runs.run_context import RunPosition
from lab.runs.run_folders import make_folder
from lab.scenarios.resolved import ResolvedScenario
from lab.series import matrices, store
from lab.series.executor import Executor, Runner, open_places
from lab.series.plan import Plan
from lab.series.printing import Progress
from lab.signals import Interrupted
from tests.lab.support import MINIMAL, manifest_of

MATRIX = """\
schema: 1
title: A title
experiment: B2
question: A question?
scenarios: [one]
axes:
  backend.accept_count: [1, 2]
  load.users: [3, 4]
repetitions: 2
seed: 1
"""
MACHINE = {"host.cpus": 2, "host.docker": "26.1.5", "lab.version": "0.1.0"}
# The moments in the life of a run at which a lab can be killed, in their order.
MOMENTS = ("before", "opened", "measuring", "ended", "deriving")
_KILLED_IN = 3


def write(folder: Path, matrix: str = MATRIX, scenario: str = MINIMAL) -> Path:
    """Write a scenario and a matrix, and give the folder, which is the lab's own from then on."""
    scenarios = folder / "scenarios"
    (scenarios / "one").mkdir(parents=True, exist_ok=True)
    (scenarios / "matrices").mkdir(exist_ok=True)
    (scenarios / "one" / "scenario.yaml").write_text(scenario)
    (scenarios / "matrices" / "grid.yaml").write_text(matrix)
    paths.SCENARIOS = scenarios
    return scenarios


def fingerprint(plan: Plan, **changed: Any) -> Fingerprint:  # noqa: ANN401 # any of its parts
    """A fingerprint without an engine to ask for images."""
    parts: dict[str, Any] = {"code": "c", "analysis": "a", "kernel": "6.18", "machine": MACHINE, **changed}
    return Fingerprint(plan=plan.digest(), images={"backend": "sha256:1"}, **parts)


class FakeRunner(Runner):
    """Leaves what a run leaves. `fails` names cells that never complete, `at` is called at each moment of each run."""

    def __init__(
        self,
        *,
        fails: tuple[str, ...] = (),
        holds: Mapping[str, bool] | None = None,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.ran: list[tuple[str, int]] = []
        self._fails = fails
        self._holds = holds or {}
        self._at = at

    def run(
        self, effective: ResolvedScenario, position: RunPosition, title: str, opened: Callable[[Path], None]
    ) -> None:
        assert position.cell in title
        self.ran.append((position.cell, position.repetition))
        self._at("before")
        parent = paths.RESULTS / effective.slug
        parent.mkdir(parents=True, exist_ok=True)
        folder = make_folder(parent, f"{position.cell}-r{position.repetition:02}")
        of_series = {"series": position.series, "cell": position.cell, "repetition": position.repetition}
        manifest = manifest_of(effective, folder.name, **of_series)
        manifest.save(folder)
        opened(folder)
        self._at("opened")
        manifest.begin("measure")
        manifest.save(folder)
        self._at("measuring")
        if position.cell in self._fails:
            manifest.finish("aborted", "the backend died")
            manifest.save(folder)
            raise LabError("the run was aborted: the backend died\nwhat was recorded stays")
        manifest.finish("complete")
        manifest.save(folder)
        self._at("ended")

    def derive(self, folder: Path) -> Result | None:
        self._at("deriving")
        (folder / Verdict.file).parent.mkdir(exist_ok=True)
        (folder / Verdict.file).write_text("{}")
        return "reproduced"

    def holds(self, folder: Path, expression: str) -> Literal["true", "false", "unknown"]:
        assert expression
        found = next((held for name, held in self._holds.items() if name in folder.name), None)
        return "unknown" if found is None else "true" if found else "false"


def executor(plan: Plan, runner: FakeRunner, *, new: bool = False, **changed: Any) -> Executor:  # noqa: ANN401 # as above
    """The series of a plan, opened or gone on with, as `run_plan` does it."""
    taken = fingerprint(plan, **changed)
    series, folder, resumed = store.open_series(plan, taken, ["connlab"], new=new)
    cells = {name: planned.resolved for name, planned in plan.cells.items()}
    made = Executor(series, folder, cells, runner, Progress(series, cells, Console(file=sys.stderr)))
    if resumed:
        derive_again = series.fingerprint.analysis != taken.analysis
        series.fingerprint = taken
        made.take_over(derive_again=derive_again)
    return made


def interrupt() -> None:
    """What a signal does."""
    raise Interrupted("interrupted (Ctrl-C)")


def run_until(folder: Path, moment: str) -> None:
    """Run the matrix in `folder`; in its third run, at the moment, say so and wait to be killed."""

    def at(reached: str) -> None:
        if reached == moment and len(runner.ran) == _KILLED_IN:
            (folder / "reached").write_text(str(os.getpid()))
            time.sleep(600)

    runner = FakeRunner(at=at)
    made = executor(matrices.plan_matrix("grid"), runner)
    made.go(open_places(made))
