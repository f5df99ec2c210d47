"""Searches: the model's border, what is asked for, and a search that is run and resumed."""

import shutil
from pathlib import Path
from typing import Literal

import pytest

from formats import series as series_file
from lab import paths
from lab.console import next_steps
from lab.errors import BadInput, Interruption
from lab.runs.run_context import RunPosition
from lab.scenarios.resolved import ResolvedScenario
from lab.series import searches
from lab.series.searches import Asked, SearchPlan
from tests.lab import series_support
from tests.lab.series_support import FakeRunner, executor

FAILURES = "client.requests.failed == 0"
CONNECTIONS = "backend.max_connections"


class Server(FakeRunner):
    """Fails below 160 connections."""

    needs = 160

    def holds(self, folder: Path, expression: str) -> Literal["true", "false", "unknown"]:
        assert expression == FAILURES
        value = int(folder.name.split("max-connections-")[1].split("-")[0])
        return "true" if value >= self.needs else "false"


def asked(**changed: str) -> Asked:
    return Asked(**{"scenario": "long-polling-direct", "knob": CONNECTIONS, "until": FAILURES, **changed})  # type: ignore[arg-type] # texts alone


def go(search: SearchPlan, runner: FakeRunner, analysis: str = "a") -> series_file.Series:
    made = executor(search.plan, runner, analysis=analysis)
    made.go(search.places(made))
    return series_file.load_series(made.folder)


def test_the_model_says_where_to_look() -> None:
    found = searches.plan_search(asked()).plan.search
    assert found is not None
    assert (found.predicted, found.low, found.high) == (160, 80, 320)


@pytest.mark.usefixtures("elsewhere")
def test_a_right_model_needs_two_values_each_confirmed() -> None:
    series = go(searches.plan_search(asked()), Server())
    assert series.search is not None
    assert (series.search.outcome, series.search.goal, series.search.found) == ("found", "smallest", 160)
    assert [place.cell for place in series.runs] == ["max-connections-160", "max-connections-159"] * 2
    assert [place.holds for place in series.runs] == ["true", "false"] * 2


@pytest.mark.parametrize("named", [".", "./mine", "{}/mine/scenario.yaml"])
def test_a_scenario_may_be_named_by_the_path_of_its_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    shutil.copytree(paths.SCENARIOS / "long-polling-direct", elsewhere / "mine")
    monkeypatch.chdir(elsewhere / "mine" if named == "." else elsewhere)
    search = searches.plan_search(asked(scenario=named.format(elsewhere)))
    series = go(search, Server())
    assert series.search is not None
    assert (series.name, series.search.found) == ("mine", 160)
    assert next_steps.after_search(search.plan, series.search) == (
        f'next, a run with it: make -C {paths.ROOT} run SCENARIO={elsewhere}/mine SET="{CONNECTIONS}=160"'
    )


@pytest.mark.usefixtures("elsewhere")
def test_a_search_goes_on_where_it_was_interrupted() -> None:
    def at(moment: str) -> None:
        if moment == "measuring" and len(first.ran) == 3:
            series_support.interrupt()

    first = Server(at=at)
    with pytest.raises(Interruption):
        go(searches.plan_search(asked()), first)
    second = Server()
    series = go(searches.plan_search(asked()), second)
    assert len(second.ran) == 2
    assert series.search is not None
    assert series.search.found == 160
    assert [len(place.lost) for place in series.runs] == [0, 0, 1, 0]


@pytest.mark.usefixtures("elsewhere")
def test_a_search_that_goes_on_under_another_analysis_judges_its_runs_again() -> None:
    class Stricter(Server):
        needs = 200

    first = Server(at=lambda _: series_support.interrupt() if len(first.ran) == 3 else None)
    with pytest.raises(Interruption):
        go(searches.plan_search(asked()), first)
    series = go(searches.plan_search(asked()), Stricter(), analysis="newer")
    assert [(place.cell, place.holds) for place in series.runs[:2]] == [
        ("max-connections-160", "false"),
        ("max-connections-159", "false"),
    ]
    assert series.search is not None
    assert series.search.found == 200


@pytest.mark.usefixtures("elsewhere")
def test_a_range_of_the_user_s_own_is_searched_even_where_the_model_is_wrong() -> None:
    series = go(searches.plan_search(asked(low="1", high="155")), Server())
    assert series.search is not None
    assert (series.search.outcome, series.search.why) == ("holds-nowhere", "it fails from 1 to 155")
    assert series.status == "complete"


@pytest.mark.usefixtures("elsewhere")
def test_a_value_that_the_lab_cannot_run_ends_the_search() -> None:
    class Broken(Server):
        def run(self, effective: ResolvedScenario, position: RunPosition, title: str, opened: object) -> None:
            self._fails = (position.cell,)
            super().run(effective, position, title, opened)  # type: ignore[arg-type] # as the engine gives it

    series = go(searches.plan_search(asked()), Broken())
    assert series.status == "partial"
    assert series.search is not None
    assert series.search.found is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"knob": "backend.max_conections"}, "did you mean 'backend.max_connections'?"),
        ({"knob": ""}, "a search takes a knob and an expression"),
        ({"until": "client.request.failed == 0"}, "client.request"),
        ({"until": "client.requests.failed"}, "--condition"),
        ({"knob": "load.keep_alive"}, "it has no numbers to search"),
        ({"knob": "kernel.k6.net.ipv4.tcp_syn_retries"}, "a sysctl needs FROM and TO"),
        ({"low": "9", "high": "3"}, "the range from 9 to 3 holds nothing to search"),
        ({"low": "x", "high": "3"}, "'x' is not a whole number"),
        ({"low": "0", "high": "3"}, "backend.max_connections must be at least 1, not 0"),
        ({"until": "client.latency_ms.p95 < 100"}, "the model does not say where to look"),
        ({"scenario": "long-poling-direct"}, "did you mean 'long-polling-direct'?"),
    ],
)
def test_what_cannot_be_searched_is_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        searches.plan_search(asked(**changed))
    assert message in str(refused.value)


def test_a_knob_that_the_user_sets_cannot_be_searched() -> None:
    with pytest.raises(BadInput, match="is what the search moves"):
        searches.plan_search(asked(), [f"{CONNECTIONS}=3"])


def test_durations_are_searched_in_milliseconds() -> None:
    plan = searches.plan_search(asked(knob="load.connect_timeout", low="1s", high="3s"))
    assert (plan.within.low, plan.within.high, plan.within.step) == (1000, 3000, 100)


def test_a_scenario_with_arms_is_searched_without_them_and_that_is_said() -> None:
    of_arms = Asked("keep-alive-paths", "load.requests", "client.requests.failed == 0", low="10", high="20")
    assert searches.plan_search(of_arms).plan.remark == (
        "keep-alive-paths has arms: they are left out here, with what is predicted about them"
    )
    assert searches.plan_search(asked()).plan.remark is None
