"""What is refused, before and during a run, and what an interrupted run leaves."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.own_results import RESULTS

from .conftest import HANG_S, connlab, latest, left_behind, start, wait_until

pytestmark = pytest.mark.e2e


def folders(scenario: str) -> set[Path]:
    return set((RESULTS / scenario).glob("*-r*"))


def load_has_begun(known: set[Path]) -> bool:
    new = folders("accept-queue-overflow") - known
    return any(
        '"kind":"dial"' in file.read_text() for folder in new for file in folder.glob("raw/k6-1/role/dials.jsonl")
    )


def test_a_second_run_is_refused_and_an_interrupted_one_keeps_what_it_recorded() -> None:
    known, newest = folders("accept-queue-overflow"), latest("accept-queue-overflow")
    first = start("run", "accept-queue-overflow")
    try:
        wait_until(lambda: load_has_begun(known), "the first dial", first)
        second = connlab("run", "accept-queue-healthy")
        assert second.returncode == 4
        assert str(first.pid) in second.stdout + second.stderr, "it names the run that holds the machine"
        assert "Traceback" not in second.stderr
    finally:
        os.killpg(first.pid, signal.SIGINT)
        output, _ = first.communicate(timeout=HANG_S)
    assert "Traceback" not in output
    assert first.returncode == 4
    assert left_behind() == []
    (aborted,) = folders("accept-queue-overflow") - known
    assert latest("accept-queue-overflow") == newest
    manifest = json.loads((aborted / "manifest.json").read_text())
    assert manifest["status"] == "aborted"
    assert manifest["reason"]
    assert f"{aborted.name}/report.html" in output
    assert "The run was aborted" in (aborted / "report.html").read_text()
    analysed = connlab("analyse", str(aborted))
    assert analysed.returncode == 3, analysed.stdout + analysed.stderr
    verdict = json.loads((aborted / "derived/verdict.json").read_text())
    assert verdict["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["accept-queue-overflw"], "accept-queue-overflow"),
        (["./etc"], "there is no scenario.yaml in etc; 'connlab new ./etc'"),
        (["accept-queue-overflow", "--set=backend.acept_count=1"], "backend.accept_count"),
        (["accept-queue-overflow", "--set=backend.keep_alive_timeout=20"], "20s"),
        (["accept-queue-overflow", "--set=nginx.worker_processes=2"], "nginx is not on the path"),
        (["accept-queue-overflow", "--set=load.workload=user"], "users"),
    ],
)
def test_bad_input_is_refused_with_the_way_on(arguments: list[str], said: str) -> None:
    refused = connlab("run", *arguments)
    assert refused.returncode == 2
    assert said in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr
