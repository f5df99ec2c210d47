"""Runs and series on an engine in memory: which verbs they use, in which order, and how they end."""

from pathlib import Path

import pytest
from rich.console import Console

from formats import series as series_file
from lab.doctor import examine
from lab.errors import LabError
from lab.series import arms, executor
from tests.lab.engine import InMemoryEngine
from tests.lab.support import MINIMAL, Go, Make, the_run, yaml_with
from tests.lab.test_series_arms import ARMS, COMPARED

WITH_GATEWAY = yaml_with(MINIMAL, {"[k6, backend]": "[k6, gateway, backend]"}) + "drain: 0s\nwarmup: {requests: 2}\n"
QUIET = Console(quiet=True)


def test_a_run_goes_from_what_is_left_over_to_nothing_left_over(go: Go, elsewhere: Path) -> None:
    engine = InMemoryEngine()
    told = go(engine, "backend.instances=2", text=WITH_GATEWAY)
    assert (told.status, told.reason) == ("complete", None)
    assert [phase.name for phase in told.phases] == ["prepare", "warmup", "measure", "drain"]
    assert told.exits == {"k6-1": 0, "gateway": 0, "backend-1": 0, "backend-2": 0}
    assert told.knobs["backend.accept_count"].read_back == 1
    assert told.images["gateway"] == "sha256:gateway"
    assert engine.did == ["remove", "start", "stop along the path", "remove"]
    assert engine.running == set()
    (log,) = elsewhere.glob("results/one/2*/raw/backend-2/container.log")
    assert log.read_text() == "backend-2 was here\n"


def test_the_lab_looks_at_the_clocks_of_other_machines_before_the_load_and_after_it(go: Go) -> None:
    told = go(InMemoryEngine(machines={"k6-1": "node-1", "k6-2": "node-2", "backend-1": "node-1"}), "load.instances=2")
    assert told.nodes == {"k6-1": "node-1", "k6-2": "node-2", "backend-1": "node-1"}
    (load,) = [each for each in told.phases if each.name == "measure"]
    for instance in ("k6-1", "k6-2"):
        looks = [each for each in told.clocks if each.instance == instance]
        assert all(each.asked_us <= each.shown_us <= each.told_us for each in looks)
        assert looks[0].told_us <= load.start_us <= (load.end_us or 0) <= looks[-1].asked_us
    assert len(told.clocks) == 12
    assert not go(InMemoryEngine()).clocks


@pytest.mark.parametrize("verb", ["start", "stop along the path"])
def test_an_engine_that_fails_ends_the_run_and_everything_is_removed(go: Go, elsewhere: Path, verb: str) -> None:
    engine = InMemoryEngine(fails=verb)
    with pytest.raises(LabError, match=f"the run was aborted: the engine could not {verb}"):
        go(engine)
    assert the_run(elsewhere).status == "aborted"
    assert (engine.did[-1], engine.running) == ("remove", set())


def test_a_restart_is_the_action_s_own_end_of_a_server(go: Go) -> None:
    engine = InMemoryEngine(load_ends_after="start backend-1")
    text = WITH_GATEWAY.replace("users: 3", "users: 3\n    calls: 100\n    think_time: 100ms")
    told = go(engine, text=text + "actions: [{at: 0s, do: restart, instance: backend-1, for: 10ms}]\n")
    assert told.status == "complete"
    assert engine.did[2:4] == ["stop backend-1", "start backend-1"]
    (action,) = told.actions
    assert (action.exit_code, action.end_us is not None) == (143, True)


def test_a_series_runs_each_of_its_places(effective: Make, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.runs.run_results.analyse_run", lambda _: {"predictions": [1], "verdict": "reproduced"})
    of_arms = yaml_with(
        ARMS, {"[k6, nginx, backend]": "[k6, gateway, backend]", "      nginx.keepalive_timeout: 5s\n": ""}
    )
    text = MINIMAL + COMPARED + of_arms + "drain: 0s\n"
    engine = InMemoryEngine()
    folder = executor.run_plan(arms.plan_arms(effective(text=text), ()), engine, ["connlab"], QUIET, new=False)
    series = series_file.load_series(folder)
    assert folder.is_relative_to(elsewhere)
    assert series.status == "complete"
    assert {place.verdict for place in series.runs} == {"reproduced"}
    assert engine.did.count("start") == len(series.runs) > 1


def test_the_doctor_says_what_the_engine_says() -> None:
    assert examine(InMemoryEngine())[0].name == "memory of this process"
