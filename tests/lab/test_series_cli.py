"""The commands of series, as far as they go without containers."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from formats.series import PlannedRun
from lab.series.executor import Executor
from lab.series.plan import Plan
from tests.lab.series_support import FakeRunner, executor
from tests.lab.support import Run
from tests.lab.test_series_searches import Server


def test_a_dry_run_lists_cells_order_and_time(connlab: Run) -> None:
    code, out, _ = connlab("matrix", "burst-places", "--dry-run", "--json")
    plan = json.loads(out)
    assert (code, len(plan["cells"]), len(plan["order"])) == (0, 8, 8)
    assert plan["expected_s"] > 0
    assert {one["cell"] for one in plan["order"]} == {one["cell"] for one in plan["cells"]}
    text = connlab("matrix", "burst-places", "--dry-run")[1]
    assert "order, by the seed 5:" in text
    assert "8 cells x 1 = 8 runs, expected to take" in text


def test_the_border_matrix_has_failing_cells_where_users_exceed_the_places(connlab: Run) -> None:
    plan = json.loads(connlab("matrix", "long-polling-border", "--dry-run", "--json")[1])
    for cell in plan["cells"]:
        places = cell["knobs"]["backend.max_connections"] + 20
        assert cell["model"]["users_failed"] == max(cell["knobs"]["load.users"] - places, 0)


def test_matrices_are_listed(connlab: Run) -> None:
    listed = json.loads(connlab("matrix", "--json")[1])
    assert {"burst-places", "long-polling-border"} <= {one["matrix"] for one in listed}
    assert "long-polling-border" in connlab("matrix")[1]


def test_arms_are_planned_and_shown(connlab: Run) -> None:
    plan = json.loads(connlab("run", "keep-alive-paths", "--dry-run", "--json")[1])
    assert (plan["kind"], plan["baseline"], len(plan["order"])) == ("arms", "no-keep-alive", 12)
    assert "arm direct: path = [k6, backend]" in connlab("show", "keep-alive-paths")[1]


def test_repetitions_are_asked_for_of_a_series_and_of_nothing_else(connlab: Run) -> None:
    for command in (("run", "keep-alive-paths"), ("matrix", "burst-places")):
        plan = json.loads(connlab(*command, "--repetitions=5", "--dry-run", "--json")[1])
        assert plan["repetitions"] == 5
        assert len(plan["order"]) == 5 * len(plan["cells"])
    for single in (("run", "accept-queue-overflow"), ("run", "keep-alive-paths", "--arm=direct")):
        code, _, err = connlab(*single, "--repetitions=5")
        assert (code, "is one run, and has no repetitions" in err) == (2, True)
    code, _, err = connlab("matrix", "long-polling-border", "--repetitions=99", "--dry-run")
    assert (code, "raise budget.duration" in err) == (2, True)


def test_a_search_says_where_it_would_look(connlab: Run) -> None:
    arguments = ("--knob=backend.max_connections", "--condition=client.requests.failed == 0", "--dry-run")
    code, out, _ = connlab("search", "long-polling-direct", *arguments)
    assert code == 0
    assert "backend.max_connections from 80 to 320, to within 1" in out
    assert "the model says 160" in out


SEARCH = ("search", "long-polling-direct", "--knob=backend.max_connections", "--condition=client.requests.failed == 0")
ASKED = "client.requests.failed == 0 over backend.max_connections"


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("runner", "expected", "told"),
    [
        (Server(), 0, ["smallest backend.max_connections for which client.requests.failed == 0: 160"]),
        (FakeRunner(), 3, [f"inconclusive: {ASKED}", "3 runs at 160 decided nothing"]),
        (
            FakeRunner(fails=("max-connections-160",)),
            4,
            [f"not decided: {ASKED}", "the series is partial: 3 runs in a row did not complete; the last: the ba"],
        ),
    ],
)
def test_a_search_that_the_lab_could_not_run_says_so(
    connlab: Run,
    monkeypatch: pytest.MonkeyPatch,
    runner: FakeRunner,
    expected: int,
    told: list[str],
) -> None:
    def run_plan(plan: Plan, *_: object, places: Callable[[Executor], Iterable[PlannedRun]], **__: object) -> Path:
        made = executor(plan, runner)
        made.go(places(made))
        return made.folder

    monkeypatch.setattr("lab.series.executor.run_plan", run_plan)
    code, out, _ = connlab(*SEARCH)
    assert code == expected
    assert all(line in out for line in told)
    assert "to within" not in out
    code, out, _ = connlab(*SEARCH, "--json")
    assert (code, json.loads(out)["status"]) == (expected, "partial" if expected == 4 else "complete")


def test_a_dry_run_needs_no_docker(connlab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("lab.runs.machine.memory_kb", lambda _: 64_000_000)
    code, out, _ = connlab("matrix", "spike-workers", "--dry-run")
    assert code == 0
    assert "16 cells x 1 = 16 runs" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["matrix", "burst-place"], "did you mean 'burst-places'?"),
        (["run", "accept-queue-healthy", "--new"], "no series to plan or to begin anew; leave out --new"),
        (
            ["run", "accept-queue-healthy", "--dry-run"],
            "begin anew; 'connlab plan accept-queue-healthy' says what one run takes",
        ),
        (
            ["run", "abort-on-overflow", "--arm", "full-0", "--dry-run"],
            "one run: there is no series to plan or to begin anew; 'connlab plan abort-on-overflow --arm full-0' says",
        ),
        (["search", "long-polling-direct"], "a search takes a knob and an expression"),
        (["search", "long-polling-direct", "--knob=load.users", "--condition=1 +"], "--condition '1 +'"),
        (["advise", "nowhere"], "no run at 'nowhere'"),
    ],
)
def test_bad_input_has_code_2(connlab: Run, arguments: list[str], message: str) -> None:
    code, out, err = connlab(*arguments)
    assert (code, out) == (2, "")
    assert message in err
