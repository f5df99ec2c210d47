"""Runs that a bench makes for what they measure, and throws away."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from lab.engines.selection import selected_engine
from lab.runs.run import run
from lab.scenarios.resolve import resolve


@contextmanager
def passing_run(scenario: str, settings: Iterable[str], preset: str | None = None) -> Iterator[Path]:
    """Run a scenario and give the run's folder, which is removed afterwards; `latest` stays where it is."""
    resolved = resolve(scenario, settings, preset=preset)
    folder = run(resolved, selected_engine(), sys.argv, Console(stderr=True), tries_out=True)
    yield folder
    shutil.rmtree(folder)
