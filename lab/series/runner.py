"""Runs a series' places on an engine, under the machine's lock that the series holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from analysis.evidence import manifest
from analysis.steps import Steps
from lab.engine.protocol import Engine
from lab.errors import LabError
from lab.run import reports
from lab.run.lock import Lock
from lab.run.manifest import Guess
from lab.run.run import record
from lab.run.session import Occasion, open_session
from lab.scenario.effective import Effective
from lab.series.fingerprint import is_own
from lab.series.record import Verdict


class RealRunner:
    """The lab's own way to run and judge one place; see lab.series.executor.Runner."""

    def __init__(
        self,
        engine: Engine,
        command: Sequence[str],
        console: Console,
        *,
        lock: Lock,
        images: Mapping[str, str],
        guesses: Mapping[str | None, Sequence[Guess]],
        profile: bool,
    ) -> None:
        self._engine = engine
        self._command = command
        self._console = console
        self._lock = lock
        self._images = {name: image for name, image in images.items() if not is_own(name)}
        self._guesses = guesses
        self._profile = profile

    def run(self, effective: Effective, occasion: Occasion, title: str, opened: Callable[[Path], None]) -> None:
        """Run it once, with the images that the series began with."""
        now = self._engine.images(self._images)
        rebuilt = [name for name, image in now.items() if image != self._images[name]]
        if rebuilt:
            way_on = "NEW=1 (--new) starts another series"
            raise LabError(f"connlab/{rebuilt[0]} was rebuilt since the series began", way_on=way_on)
        steps = Steps()
        guesses = self._guesses.get(occasion.cell, ())
        expected = replace(occasion, guesses=guesses, profile=steps if self._profile else None)
        with steps.step("open"):
            session = open_session(effective, self._engine, self._command, expected, self._lock)
        opened(session.folder)
        record(session, self._console, self._lock, title)

    def derive(self, folder: Path) -> Verdict | None:
        """Derive everything and give the verdict; None if nothing was predicted of this run alone."""
        verdict = reports.derive(folder)
        if not verdict["predictions"]:
            return None
        found: Verdict = verdict["verdict"]
        return found

    def holds(self, folder: Path, expression: str) -> Literal["true", "false", "unknown"]:
        """Judge an expression in a run."""
        # As in verdicts: what only the end of a run needs.
        from analysis.evidence.rawrun import RawRun  # noqa: PLC0415
        from analysis.figures import Run  # noqa: PLC0415
        from analysis.verdicts import predictions  # noqa: PLC0415

        return predictions.judge(Run(RawRun(folder, manifest.read(folder))), expression).status
