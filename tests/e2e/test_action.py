"""The action for a CI, called as a CI calls it, in somebody's workspace, with real runs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import HANG_S, ROOT, RUNS_MAX, SHORTER_OVERFLOW

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("whole_turn")]

SET = "\n".join(setting.removeprefix("--set=") for setting in SHORTER_OVERFLOW)


def act(workspace: Path, **inputs: str) -> tuple[int, dict[str, str], str, str]:
    """Return the exit code, the outputs, the summary and what the script said."""
    files = {name: workspace / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    ended = subprocess.run(
        [ROOT / "setup" / "action" / "run.sh"],
        cwd=workspace,
        env=os.environ | {name: str(file) for name, file in files.items()} | inputs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return ended.returncode, outputs, files["GITHUB_STEP_SUMMARY"].read_text(), ended.stdout


def test_a_scenario_is_run_and_its_report_is_in_the_workspace(tmp_path: Path) -> None:
    scenario = {"INPUT_SCENARIO": "accept-queue-overflow", "INPUT_SET": SET}
    code, outputs, summary, said = act(tmp_path, **scenario)
    for _ in range(1, RUNS_MAX):
        if code != 3:
            break
        code, outputs, summary, said = act(tmp_path, **scenario)
    assert (code, outputs["verdict"], outputs["exit-code"]) == (0, "reproduced", "0"), said
    assert outputs["report"].startswith("results/accept-queue-overflow/")
    assert (tmp_path / outputs["report"]).stat().st_size > 0
    verdict = json.loads(((tmp_path / outputs["report"]).parent / "derived" / "verdict.json").read_text())
    assert summary.startswith("### connlab: reproduced\n")
    assert summary.count("\n- true: ") == len(verdict["predictions"])


def test_a_gate_with_too_few_runs_is_unknown_and_keeps_what_it_found(tmp_path: Path) -> None:
    run = {"INPUT_SCENARIO": "accept-queue-healthy", "INPUT_RESULTS": "baseline"}
    code, outputs, _, said = act(tmp_path, **run)
    assert code in (0, 3), said
    baseline = str(Path(outputs["report"]).parent)
    gate = {"INPUT_BASELINE": baseline, "INPUT_FIGURE": "client.latency_ms.p99", "INPUT_WORSE_THAN": "5%"}
    code, outputs, summary, said = act(
        tmp_path, INPUT_SCENARIO="accept-queue-healthy", INPUT_RUNS="1", INPUT_INCONCLUSIVE="pass", **gate
    )
    assert (code, outputs["verdict"], outputs["exit-code"]) == (0, "unknown", "3"), said
    assert summary.startswith("### connlab: unknown\n\n<code>client.latency&#95;ms.p99</code>: ")
    assert 'skipped="1"' in (tmp_path / "results" / "gate.xml").read_text()
    assert outputs["report"].startswith("results/accept-queue-healthy/")
