"""Real runs through the commands that a user types; each ends with a result folder to look into."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONNLAB = ROOT / ".venv/bin/connlab"


@dataclass(frozen=True)
class Run:
    """One finished `connlab run`: its exit code, what it printed and its folder."""

    exit_code: int
    output: str
    folder: Path

    @property
    def verdict(self) -> dict[str, Any]:
        """`derived/verdict.json`."""
        return self._json("derived/verdict.json")

    @property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`."""
        return self._json("manifest.json")

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of `derived/figures.json`."""
        figures: dict[str, Any] = self._json("derived/figures.json")["figures"]
        return figures

    def _json(self, name: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / name).read_text())
        return loaded

    def measured(self) -> dict[str, Any]:
        """Every figure that a prediction measured."""
        return {name: value for row in self.verdict["predictions"] for name, value in row["measured"].items()}

    def statuses(self) -> dict[str, str]:
        """Prediction id → true, false or unknown."""
        return {row["id"]: row["status"] for row in self.verdict["predictions"]}


def start(*arguments: str) -> subprocess.Popen[str]:
    """A `connlab` command in a process group of its own, so that a test can interrupt it as a terminal does.

    Tests that run in the background have Ctrl-C ignored, and would hand that on: a terminal's command has it not.
    """
    return subprocess.Popen(
        ["env", "--default-signal=INT", CONNLAB, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def latest(scenario: str) -> Path:
    """The newest result folder of a scenario."""
    return (ROOT / "results" / scenario / "latest").resolve()


def connlab(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A `connlab` command run to its end."""
    return subprocess.run([CONNLAB, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="session")
def run() -> Callable[..., Run]:
    """Runs a scenario to its end."""

    def _run(scenario: str, *settings: str) -> Run:
        process = start("run", scenario, *(f"--set={setting}" for setting in settings))
        try:
            output, _ = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=60)
            pytest.fail(f"{scenario} did not end:\n{output}")
        return Run(process.returncode, output, latest(scenario))

    return _run


def left_behind() -> list[str]:
    """The containers of the lab that exist now."""
    listed = subprocess.run(
        ["docker", "ps", "--all", "--filter", "label=connlab.run", "--format", "{{.Names}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Polls until `condition` holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {seconds} s")
        time.sleep(0.1)
