"""Series on real servers: a 2 x 2 matrix that is killed in the middle, gone on with, and judged."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.own_results import RESULTS

from .conftest import (
    HANG_S,
    ROOT,
    Run,
    assert_spoiled_only_by_the_machine,
    connlab,
    left_behind,
    start,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("whole_turn")]

NAME = "e2e-places"
# Who meets no free place fails with its one SYN, before the first place is free again; the gap leaves Tomcat the time
# to take one from its queue before the next comes.
MATRIX = """\
schema: 1
title: "Places by two knobs"
experiment: B1
question: Do accept-count and max-connections add up?
scenarios: [accept-queue-healthy]
knobs:
  backend.max_keep_alive_requests: 1
  load.handler_delay: 1s
  load.arrival_gap: 50ms
  load.connect_timeout: 900ms
  load.users: 8
axes:
  backend.accept_count: [1, 4]
  backend.max_connections: [2, 4]
seed: 1
predictions:
  - id: failed
    description: The users beyond the places fail.
    expression: client.users.failed == max(load.users - model.accept_capacity, 0)
"""
PLACES = {(1, 2): 4, (1, 4): 6, (4, 2): 7, (4, 4): 9}


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    """The matrix as a user would write it, in a file of its own."""
    file = tmp_path / f"{NAME}.yaml"
    file.write_text(MATRIX)
    return str(file)


def latest() -> Path:
    return (RESULTS / "series" / "latest").resolve()


def series() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((latest() / "series.json").read_text())
    return loaded


def complete() -> int:
    try:
        return sum(place["status"] == "complete" for place in series()["runs"])
    except FileNotFoundError:
        return 0


def is_at_work(name: str, least: int) -> bool:
    """Whether the series of that name has so many complete runs, and another under way."""
    if not latest().name.endswith(name):
        return False
    return complete() >= least and any(place["status"] == "running" for place in series()["runs"])


def test_a_matrix_survives_a_kill_and_draws_the_border_where_the_model_does(matrix: str) -> None:
    listed = connlab("matrix", matrix, "--dry-run")
    assert listed.returncode == 0
    assert "4 cells x 1 = 4 runs" in listed.stdout

    killed = start("matrix", matrix, "--new")
    try:
        wait_until(lambda: is_at_work(NAME, 1), "a complete run", killed)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate(timeout=HANG_S)
    folder, survived = latest(), complete()
    assert survived >= 1
    assert series()["status"] == "running"

    resumed = start("matrix", matrix)
    output, _ = resumed.communicate(timeout=HANG_S)
    assert resumed.returncode in {0, 3}, output
    assert f"{survived} of 4 runs are complete" in output
    assert latest() == folder, "the same command goes on with the same series"
    assert left_behind() == []

    found = series()
    assert found["status"] == "complete"
    assert sum(len(place["lost"]) for place in found["runs"]) <= 1
    Draft202012Validator(json.loads((ROOT / "schemas/series.schema.json").read_text())).validate(found)
    busy = None
    for place in found["runs"]:
        run = Run(3, output, RESULTS / place["run"])
        manifest = run.manifest
        assert (manifest["series"], manifest["cell"]) == (found["series"], place["cell"])
        if run.verdict["verdict"] == "inconclusive":
            assert_spoiled_only_by_the_machine(run)
            busy = run.busy
            continue
        knobs = {name: knob["value"] for name, knob in manifest["knobs"].items()}
        places = PLACES[knobs["backend.accept_count"], knobs["backend.max_connections"]]
        measured = run.measured()
        assert measured["client.users.failed"] == max(knobs["load.users"] - places, 0), place["cell"]
    assert resumed.returncode == (3 if busy else 0), output
    if busy:
        pytest.skip(f"a run is inconclusive on this busy machine: {busy}")
    assert json.loads((folder / "derived/verdict.json").read_text())["verdict"] == "reproduced"
