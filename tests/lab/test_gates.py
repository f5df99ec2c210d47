"""`connlab gate`: its line, its exit codes, and the file for a CI."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab import paths
from tests.analysis.results import Results
from tests.lab.test_cli import Run, connlab  # noqa: F401  a fixture

MEAN = "client.latency_ms.mean"
GATE = ("gate", f"--figure={MEAN}", "--worse-than=5%")
STEADY = (10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 9.8)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return Results(tmp_path / "results")


def sides(results: Results, times: float) -> list[str]:
    a, b = ([results.run({MEAN: each * factor}) for each in STEADY] for factor in (1, times))
    return [*(f"--a={run}" for run in a), *(f"--b={run}" for run in b)]


@pytest.mark.parametrize(
    ("times", "code", "said"),
    [(1.0, 0, "passed: "), (1.5, 1, "worse: "), (1.05, 3, "unknown: ")],
)
def test_the_exit_code_is_the_finding(connlab: Run, results: Results, times: float, code: int, said: str) -> None:  # noqa: F811
    found, out, _ = connlab(*GATE, *sides(results, times))
    first, last = out.splitlines()
    assert (found, first.startswith(said)) == (code, True)
    assert f"{MEAN} 10" in first
    assert "5 % is allowed (7 runs and 7)" in first
    assert last.startswith(f"next, what else moved: make -C {paths.ROOT} compare A=")


def test_a_folder_of_runs_and_a_cell_are_a_side_each(connlab: Run, results: Results) -> None:  # noqa: F811
    arms = {arm: [{"figures": {MEAN: each * factor}} for each in STEADY] for arm, factor in (("on", 1), ("off", 2))}
    series = results.series(arms)
    baseline = Path("baseline")
    for file in (results.root / "queue").glob("*-on-*"):
        shutil.copytree(file, baseline / file.name)
    assert connlab(*GATE, "--a=baseline", f"--b={series.name}:off")[0] == 1
    code, _, err = connlab(*GATE, "--a=baseline", f"--b={series.name}")
    assert code == 2
    assert f"the series {series.name} has 2 cells" in err
    assert f"{series.name}:on, {series.name}:off" in err


def test_a_series_of_one_cell_is_a_side(connlab: Run, results: Results) -> None:  # noqa: F811
    a = [f"--a={results.run({MEAN: each})}" for each in STEADY]
    series = results.series({"only": [{"figures": {MEAN: 2 * each}} for each in STEADY]})
    assert connlab(*GATE, *a, f"--b={series.name}")[0] == 1


@pytest.mark.parametrize(("times", "mark"), [(1.0, None), (1.5, "failure"), (1.05, "skipped")])
def test_junit_has_one_test(connlab: Run, results: Results, times: float, mark: str | None) -> None:  # noqa: F811
    connlab(*GATE, *sides(results, times), "--junit=gate.xml")
    suite = ET.parse("gate.xml").getroot()  # noqa: S314  our own file
    (test,) = suite
    assert (suite.get("tests"), test.get("classname")) == ("1", "queue")
    assert [each.tag for each in test if each.tag != "system-out"] == ([mark] if mark else [])
    assert suite.get("failures") == str(int(mark == "failure"))
    assert f"{MEAN} 10" in test.findtext("system-out", "")


def test_what_a_foreign_run_says_is_text(connlab: Run, results: Results) -> None:  # noqa: F811
    hostile = "queue]]></x>\x1b[31m"
    side = [str(results.run({MEAN: 1.0}, scenario="queue", status="aborted", reason=hostile))]
    side += [str(results.run({MEAN: each})) for each in STEADY]
    more = [f"--b={results.run({MEAN: each})}" for each in STEADY]
    code, _, err = connlab(*GATE, *(f"--a={run}" for run in side), *more, "--junit=gate.xml")
    assert code == 0
    assert "\x1b" not in err
    assert "not counted: queue/" in err
    said = ET.parse("gate.xml").getroot()[0].findtext("system-out", "")  # noqa: S314  our own file
    assert "queue]]></x>\\x1b[31m" in said


def test_json_has_everything(connlab: Run, results: Results) -> None:  # noqa: F811
    code, out, _ = connlab(*GATE, *sides(results, 1.5), "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 1
    assert (found["outcome"], found["figure"], found["limit"]) == ("worse", MEAN, {"value": 0.05, "relative": True})
    assert found["worse_by"]["low"] > 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--b=x",), "A names no run"),
        (("--a=nowhere", "--b=nowhere"), "no run at 'nowhere'"),
        (("--a=x", "--b=y", "--better=up"), "--better is 'more' or 'less', and not 'up'"),
        (("--a=nothing:cell", "--b=y"), "no series of 'nothing'"),
    ],
)
def test_bad_input_says_the_way_on(connlab: Run, results: Results, arguments: tuple[str, ...], said: str) -> None:  # noqa: F811
    assert not results.root.exists()
    code, _, err = connlab(*GATE, *arguments)
    assert code == 2
    assert said in err


def test_a_file_that_cannot_be_written_is_refused(connlab: Run, results: Results) -> None:  # noqa: F811
    code, _, err = connlab(*GATE, *sides(results, 1.0), "--junit=missing/gate.xml")
    assert code == 2
    assert "missing/gate.xml: No such file or directory" in err
