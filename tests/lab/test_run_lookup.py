"""Which run `advise` and `estimate` read, told before all else."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from formats.series import PlannedRun
from lab import paths
from lab.console import run_lookup
from lab.errors import BadInput, ExitCode
from tests.lab.support import connlab

SERIES = "20251121T072600Z-arms-queue"
RUN = "20251121T072640Z-few-r01"


@pytest.fixture
def folder(elsewhere: Path, derived_run: Callable[[Path], Path]) -> Path:
    """A run of an arm, without its series."""
    found = derived_run(elsewhere / "results" / "queue" / RUN)
    of_arm = {"scenario": "queue", "run": RUN, "series": SERIES, "cell": "few"}
    (found / "manifest.json").write_text(json.dumps(json.loads((found / "manifest.json").read_bytes()) | of_arm))
    return found


def test_an_arm_is_reported_with_the_newest_runs_of_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (("many", 1, "complete"), ("few", 1, "complete"), ("none", 1, "aborted"), ("many", 2, "complete"))
    runs = [
        PlannedRun.model_validate(
            {"cell": cell, "repetition": number, "status": status, "run": f"queue/{cell}-r{number}"}
        )
        for cell, number, status in places
    ]
    series = {folder.parent.parent / "series" / SERIES: SimpleNamespace(runs=runs)}
    monkeypatch.setattr(run_lookup, "load_series", lambda asked: series[asked])

    assert list(run_lookup.describe_run(folder)) == [
        f"queue/{RUN}",
        f"the arm 'few' of {SERIES}; its other arms, each as RUN=<run>: queue/many-r2",
    ]


def test_a_run_without_its_series_is_still_told_with_its_arm(folder: Path) -> None:
    assert list(run_lookup.describe_run(folder)) == [f"queue/{RUN}", f"the arm 'few' of {SERIES}"]


@pytest.mark.parametrize("series", [None, "20251121T072600Z-matrix-grid"])
def test_what_is_no_arm_is_reported_by_its_name_alone(folder: Path, series: str | None) -> None:
    content = json.loads((folder / "manifest.json").read_bytes()) | {"series": series}
    (folder / "manifest.json").write_text(json.dumps(content))
    assert list(run_lookup.describe_run(folder)) == [f"queue/{RUN}"]


@pytest.mark.parametrize("command", [["advise", "queue/" + RUN], ["estimate", "--run", "queue/" + RUN]])
@pytest.mark.usefixtures("folder")
def test_the_run_stands_first(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    def said(*arguments: str) -> str:
        assert connlab(*arguments) == ExitCode.REPRODUCED
        return capsys.readouterr().out

    assert said(*command).startswith(f"queue/{RUN}\nthe arm 'few' of {SERIES}\n")
    assert json.loads(said(*command, "--json"))["run"] == f"queue/{RUN}"


def test_of_a_scenario_without_a_run_the_hint_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    with pytest.raises(BadInput, match=r"has no run of accept-queue-overflow; make one: .*accept-queue-overflow"):
        run_lookup.find_run("accept-queue-overflow")
