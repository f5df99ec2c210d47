"""The action for a CI, called as a CI calls it, in somebody's workspace, with real runs."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import HANG_S, ROOT, RUNS_MAX, turn

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("action")]

# Six of nine users find a place. Each is free again after 4 s, when those without one have given up.
SCENARIO = "accept-queue-overflow"
SET = """\
backend.max_connections=2
backend.accept_count=3
load.users=9
backend.keep_alive_timeout=3s
load.connect_timeout=2s
"""


@dataclass(frozen=True)
class Acted:
    """What came of the action: exit code, outputs, summary, and what the script said."""

    workspace: Path
    code: int
    outputs: dict[str, str]
    summary: str
    said: str

    @property
    def folder(self) -> Path:
        """The run's."""
        return self.workspace / Path(self.outputs["report"]).parent


def act(workspace: Path, **inputs: str) -> Acted:
    """Call the script of the action with these inputs."""
    files = {name: workspace / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    with turn():
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
    return Acted(workspace, ended.returncode, outputs, files["GITHUB_STEP_SUMMARY"].read_text(), ended.stdout)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Acted:
    """A run whose results lie in a folder of their own."""
    inputs = {"INPUT_SCENARIO": SCENARIO, "INPUT_SET": SET, "INPUT_RESULTS": "baseline"}
    workspace = tmp_path_factory.mktemp("workspace")
    acted = act(workspace, **inputs)
    for _ in range(1, RUNS_MAX):
        if acted.code != 3:
            break
        acted = act(workspace, **inputs)
    return acted


def test_a_scenario_is_run_as_it_was_set_and_its_report_is_in_the_workspace(baseline: Acted) -> None:
    outputs = baseline.outputs
    assert (baseline.code, outputs["verdict"], outputs["exit-code"]) == (0, "reproduced", "0"), baseline.said
    assert outputs["report"].startswith(f"baseline/{SCENARIO}/")
    assert (baseline.workspace / outputs["report"]).stat().st_size > 0
    rows = json.loads((baseline.folder / "derived" / "verdict.json").read_text())["predictions"]
    assert baseline.summary.startswith("### connlab: reproduced\n")
    assert baseline.summary.count("\n- true: ") == len(rows)
    # The predictions follow the settings.
    measured = {name: value for row in rows for name, value in row["measured"].items()}
    assert measured["client.requests.ok"] == 6
    assert measured["client.dials.failed"] == 3


def test_a_gate_with_too_few_runs_is_unknown_and_keeps_what_it_found(baseline: Acted) -> None:
    before = {"INPUT_BASELINE": str(baseline.folder.relative_to(baseline.workspace))}
    gate = {**before, "INPUT_FIGURE": "client.latency_ms.p99", "INPUT_WORSE_THAN": "5%"}
    one = {"INPUT_SCENARIO": SCENARIO, "INPUT_SET": SET, "INPUT_RUNS": "1", "INPUT_INCONCLUSIVE": "pass"}
    acted = act(baseline.workspace, **one, **gate)
    assert (acted.code, acted.outputs["verdict"], acted.outputs["exit-code"]) == (0, "unknown", "3"), acted.said
    assert acted.summary.startswith("### connlab: unknown\n\n<code>client.latency&#95;ms.p99</code>: ")
    assert 'skipped="1"' in (acted.workspace / "results" / "gate.xml").read_text()
    assert acted.outputs["report"].startswith(f"results/{SCENARIO}/")
