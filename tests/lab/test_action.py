"""The action for a CI: its script as a CI calls it, with a `connlab` that only pretends; tests/e2e has a real one."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from lab import paths
from tests.lab.waiting import HANG_S, write_program

ACTION = YAML(typ="safe", pure=True).load((paths.ROOT / "action.yml").read_text())
SCRIPT = (paths.SETUP / "action" / "run.sh").read_text()
PREDICTIONS = [{"status": "true", "description": "All *others* <fail>."}]
GATE = {"INPUT_BASELINE": "baseline", "INPUT_FIGURE": "client.latency_ms.p99", "INPUT_WORSE_THAN": "5%"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Somebody's workspace, beside the action's checkout."""
    lab = tmp_path / "lab"
    shutil.copytree(paths.SETUP / "action", lab / "setup" / "action", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(paths.SETUP / "lib.sh", lab / "setup")
    (tmp_path / "workspace").mkdir()
    answers(tmp_path / "workspace")
    return tmp_path / "workspace"


def answers(workspace: Path, run: int = 0, verdict: str = "reproduced", gate: int = 0) -> None:
    """Let `connlab` end with these codes; a run leaves a report."""
    folder = workspace / "results" / "shop" / "r01"
    found = {"verdict": verdict, "predictions": PREDICTIONS, "folder": str(folder), "exit_code": run}
    outcome = {0: "passed", 1: "worse", 3: "unknown"}.get(gate)
    judged = {"outcome": outcome, "figure": "client.latency_ms.p99", "a": 41.3, "b": None, "runs_a": 7, "runs_b": 2}
    made = f"mkdir -p {folder}; touch {folder}/report.html; printf %s {shlex.quote(json.dumps(found))}"
    write_program(
        workspace.parent / "lab" / "connlab",
        f"""#!/bin/sh
printf '%s\\n' "$CONNLAB_IMAGES connlab $*" >>{workspace.parent}/calls
case "$*" in
  run*) {made if run in (0, 1, 3) else ":"}; exit {run} ;;
  gate*) printf %s {shlex.quote(json.dumps(judged))}; exit {gate} ;;
esac
""",
    )


def act(workspace: Path, **inputs: str) -> tuple[int, dict[str, str], str, str]:
    """Call the script as a CI does; return its exit code, its outputs, its summary and what it said."""
    files = {name: workspace.parent / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **{name: str(file) for name, file in files.items()}}
    ended = subprocess.run(
        [workspace.parent / "lab" / "setup" / "action" / "run.sh"],
        cwd=workspace,
        env=environment | inputs,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return ended.returncode, outputs, files["GITHUB_STEP_SUMMARY"].read_text(), ended.stdout + ended.stderr


def calls(workspace: Path) -> list[str]:
    return (workspace.parent / "calls").read_text().splitlines()


@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [(0, "reproduced", "reproduced"), (1, "not-reproduced", "not reproduced"), (3, "inconclusive", "inconclusive")],
)
def test_a_run_s_verdict_is_the_exit_code_an_output_and_the_summary(
    workspace: Path, code: int, verdict: str, said: str
) -> None:
    answers(workspace, run=code, verdict=verdict)
    ended, outputs, summary, _ = act(workspace, INPUT_SCENARIO="./shop")
    assert ended == code
    assert outputs == {"verdict": said, "exit-code": str(code), "report": "results/shop/r01/report.html"}
    assert summary.startswith(f"### connlab: {said}\n")
    assert "- true: All &#42;others&#42; &#60;fail&#62;.\n" in summary


def test_the_input_reaches_the_run_as_it_is(workspace: Path) -> None:
    sets = "backend.accept_count=1\n\nload.path=/a b$(id)\n"
    act(workspace, INPUT_SCENARIO="-shop", INPUT_SET=sets, INPUT_PRESET="p", INPUT_ARM="a", INPUT_IMAGES="reg/lab")
    options = "--set=backend.accept_count=1 --set=load.path=/a b$(id) --preset=p --arm=a"
    assert calls(workspace) == [f"reg/lab connlab run {options} --json -- -shop"]


@pytest.mark.parametrize("code", [2, 4])
def test_what_gives_no_verdict_is_an_error_without_a_report(workspace: Path, code: int) -> None:
    answers(workspace, run=code)
    ended, outputs, summary, _ = act(workspace, INPUT_SCENARIO="shop", INPUT_INCONCLUSIVE="pass")
    assert (ended, outputs) == (code, {"verdict": "error", "exit-code": str(code), "report": ""})
    assert "The log of the step says why" in summary


def test_an_inconclusive_run_may_pass_and_is_called_inconclusive(workspace: Path) -> None:
    answers(workspace, run=3, verdict="inconclusive")
    ended, outputs, _, _ = act(workspace, INPUT_SCENARIO="shop", INPUT_INCONCLUSIVE="pass")
    assert (ended, outputs["verdict"], outputs["exit-code"]) == (0, "inconclusive", "3")


@pytest.mark.parametrize(("run", "gate", "said"), [(0, 0, "passed"), (1, 1, "worse"), (3, 3, "unknown")])
def test_a_gate_makes_its_runs_and_says_what_it_found(workspace: Path, run: int, gate: int, said: str) -> None:
    answers(workspace, run=run, gate=gate)
    ended, outputs, summary, _ = act(workspace, INPUT_SCENARIO="shop", INPUT_RUNS="2", **GATE)
    folder = workspace / "results" / "shop" / "r01"
    gate_options = f"--a baseline --b={folder} --b={folder} --figure client.latency_ms.p99 --worse-than 5%"
    assert calls(workspace) == [
        *[" connlab run --json -- shop"] * 2,
        f" connlab gate {gate_options} --junit {workspace}/results/gate.xml --json",
    ]
    assert (ended, outputs["verdict"], outputs["report"]) == (gate, said, "results/shop/r01/report.html")
    line = "<code>client.latency&#95;ms.p99</code>: 41.3 → unknown (7 runs of the baseline, 2 of this change)\n"
    assert line in summary


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "the input 'scenario' is missing"),
        ({"INPUT_SCENARIO": "shop", "INPUT_INCONCLUSIVE": "maybe"}, "the input 'inconclusive' is 'maybe'"),
        ({"INPUT_SCENARIO": "shop", "INPUT_RUNS": "0"}, "the input 'runs' is '0'"),
        ({"INPUT_SCENARIO": "shop", "INPUT_FIGURE": "client.x"}, "a gate needs baseline, figure and worse-than"),
    ],
)
def test_bad_input_is_refused_before_anything_is_installed(workspace: Path, inputs: dict[str, str], said: str) -> None:
    ended, outputs, _, printed = act(workspace, **inputs)
    assert (ended, outputs["verdict"], outputs["exit-code"]) == (2, "error", "2")
    assert said in printed
    assert "hint: " in printed
    assert not (workspace.parent / "calls").exists()


def test_the_action_hands_each_input_over_and_takes_each_output(workspace: Path) -> None:
    step = ACTION["runs"]["steps"][0]
    inputs = {name: f"INPUT_{name.upper().replace('-', '_')}" for name in ACTION["inputs"] if name != "artifact"}
    assert step["env"] == {variable: f"${{{{ inputs.{name} }}}}" for name, variable in inputs.items()}
    assert set(inputs.values()) == set(re.findall(r"\bINPUT_[A-Z_]+", SCRIPT))
    _, outputs, _, _ = act(workspace, INPUT_SCENARIO="shop")
    assert {f"${{{{ steps.connlab.outputs.{name} }}}}" for name in outputs} == {
        output["value"] for output in ACTION["outputs"].values()
    }
