"""`make mutate`: the lab's own predictions notice what changes; one that notices nothing is listed with its line."""

import json
from pathlib import Path

import pytest

from analysis.expressions import parse
from analysis.expressions.values import Value, unknown
from lab.errors import BadInput
from lab.outcomes import run_and_judge
from lab.scenarios.resolved import ResolvedScenario
from tests.analysis.results import Results
from tests.lab.outcome_support import run_outcome, verdict_of
from tests.lab.support import MINIMAL, Make
from tools.recording import mutation, recorded_figures, recorded_runs
from tools.recording.recorded_figures import Specimen


@pytest.fixture
def kept(effective: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A scenario, and what its run measured."""
    monkeypatch.setattr(recorded_figures, "FOLDER", tmp_path)

    def make(expression: str, when: str = "load.users == 3") -> ResolvedScenario:
        text = MINIMAL.replace("client.requests.ok == load.users", f"{expression}\n    when: {when}")
        made = effective(text=text)
        values: dict[str, recorded_figures.Recorded] = {
            "client.requests.ok": 3,
            "load.users": 3,
            "client.latency_ms.list": [1, 2, 3],
            "tcp.unknown": None,
        }
        one = Specimen(
            scenario="one", content=recorded_runs.content(made), run="one/r", arms={"all": values}, between={}
        )
        recorded_figures.file_of("one").write_text(one.model_dump_json(by_alias=True))
        return made

    return make


def test_no_prediction_of_the_lab_s_own_notices_nothing() -> None:
    found = list(mutation.mutate(run_and_judge.resolve_all()))
    assert [str(one) for each in found for one in each.idle] == []
    # One whose predictions are others than those that were recorded is not tried: record it again.
    assert [f"{each.slug}: {each.why}" for each in found if each.why] == []


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("client.requests.ok == load.users", []),
        ("client.requests.ok < 100", ["no change of what was measured makes this part false: column 1"]),
        ("client.requests.ok == 4", ["prediction 'served' is not true of the recorded run"]),
    ],
)
def test_a_prediction_that_notices_nothing_is_listed_with_its_line(
    kept: Make, expression: str, says: list[str]
) -> None:
    (found,) = mutation.mutate([kept(expression)])
    assert found.tried == 1
    assert len(found.idle) == len(says)
    for problem, said in zip(found.idle, says, strict=True):
        assert "scenario.yaml:15: " in str(problem)
        assert said in str(problem)


def test_a_prediction_about_other_settings_is_not_tried(kept: Make) -> None:
    (found,) = mutation.mutate([kept("client.requests.ok < 100", when="load.users == 4")])
    assert (found.tried, found.idle) == (0, [])


def test_a_scenario_that_changed_or_was_never_recorded_says_so(kept: Make, effective: Make) -> None:
    made = kept("client.requests.ok == load.users")
    changed = effective("load.users=4", text=MINIMAL)
    specimens_of = [*mutation.mutate([made]), *mutation.mutate([changed])]
    assert [one.why for one in specimens_of] == [None, "it has changed since its run was recorded"]
    recorded_figures.file_of("one").unlink()
    said = list(mutation.summary(mutation.mutate([made])))
    assert said[0] == "one: not tried: no reproduced run of it is recorded; record one: make record SCENARIO=one"


def test_a_damaged_record_is_refused_with_a_hint(kept: Make) -> None:
    made = kept("client.requests.ok == load.users")
    recorded_figures.file_of("one").write_text('{"schema": "connlab.recorded/1"}')
    with pytest.raises(BadInput, match="make record SCENARIO=one"):
        list(mutation.mutate([made]))


@pytest.mark.usefixtures("elsewhere")
def test_a_run_of_another_scenario_is_not_taken(effective: Make) -> None:
    made = effective()
    found = run_outcome(made, verdict_of({"p": "true"}, scenario="another"))
    with pytest.raises(BadInput, match="is of another, not of one"):
        recorded_figures.write(made, found)


@pytest.mark.usefixtures("elsewhere")
def test_the_first_run_of_a_content_is_kept_and_what_is_damaged_is_written_again(
    effective: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_figures, "FOLDER", tmp_path / "recorded")
    (tmp_path / "recorded").mkdir()
    made = effective()
    file, found = recorded_figures.file_of("one"), run_outcome(made, verdict_of({"p": "true"}))
    file.write_text("{}")
    recorded_figures.write(made, found)
    written = file.read_text()
    of_another = written.replace(found.folder.name, "of-another")
    file.write_text(of_another)
    recorded_figures.write(made, found)
    assert file.read_text() == of_another
    file.write_text(of_another.replace(recorded_runs.content(made), "0" * 16))
    recorded_figures.write(made, found)
    assert file.read_text() == written


@pytest.mark.usefixtures("elsewhere")
def test_a_run_that_cannot_be_read_is_named(effective: Make) -> None:
    made = effective()
    found = run_outcome(made, verdict_of({"p": "true"}))
    (found.folder / "manifest.json").unlink()
    with pytest.raises(BadInput, match=r"manifest\.json.*complete run or series in a folder of results"):
        recorded_figures.write(made, found)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("key", "value"), [("runs", None), ("cells", "x")])
def test_a_series_whose_file_is_damaged_is_named(tmp_path: Path, key: str, value: object) -> None:
    folder = Results(tmp_path / "results").series({"few": [{}], "many": [{}]})
    content = json.loads((folder / "series.json").read_bytes())
    (folder / "series.json").write_text(json.dumps(content | {key: value}))
    with pytest.raises(BadInput, match=rf"series\.json: {key}: Input should be .*complete run or series"):
        run_and_judge.judge_folder(folder)


# --- which changes a prediction has to notice -------------------------------------------------------------------------

VALUES: dict[str, Value] = {
    "client.requests.ok": 3,
    "client.requests.failed": 100,
    "client.requests.total": 103,
    "kernel.backend.TcpExt.ListenOverflows": 500,
    "flows.backend.syn_failed": 500,
    "sockets.k6.time_wait.end": 12,
    "sockets.nginx.time_wait.end": 0,
    "sockets.nginx.fin_wait2.max": 0.33,
    "client.latency_ms.max": 2_004.5,
    "client.latency_ms.list": (1_001.0, 1_002.0, 2_004.5),
    "gateway.connections.opened": 606,
    "load.users": 103,
}


def idle(text: str) -> list[int]:
    expression = parse(text)
    measured = [name for name in expression.names if not name.startswith("load.")]
    assert expression.evaluate(VALUES.__getitem__) is True
    return [part.column for part in mutation.unmoved(expression, VALUES, measured)]


@pytest.mark.parametrize(
    "text",
    [
        "client.requests.failed == 100",
        "client.requests.failed > 0 and kernel.backend.TcpExt.ListenOverflows == 5 * client.requests.failed",
        "flows.backend.syn_failed == kernel.backend.TcpExt.ListenOverflows",
        "sockets.k6.time_wait.end == 12 and sockets.nginx.time_wait.end == 0",
        "sockets.nginx.time_wait.end < 3",
        "client.latency_ms.max < 2500",
        "nth(client.latency_ms.list, 3) < 2500",
        "gateway.connections.opened > 400",
        "not client.requests.failed == 99",
        "client.requests.ok + client.requests.failed == load.users",
    ],
)
def test_a_prediction_that_says_something_notices(text: str) -> None:
    assert idle(text) == []


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("gateway.connections.opened > 100", [1]),
        ("sockets.nginx.fin_wait2.max <= 20", [1]),
        ("client.requests.failed == 100 and sockets.nginx.fin_wait2.max <= 20", [35]),
        ("client.requests.failed > 0", [1]),
        ("client.latency_ms.max < 9000", [1]),
        ("client.requests.failed == 100 or client.requests.failed < 1000", [1]),
    ],
)
def test_the_part_of_a_prediction_that_notices_nothing_is_told(text: str, columns: list[int]) -> None:
    assert idle(text) == columns


def test_what_is_not_known_is_not_changed() -> None:
    assert all(not change for change in mutation.changes({"a.b.c": unknown("lost")}))


def test_one_request_with_another_outcome_changes_both_counts() -> None:
    assert {"client.requests.ok": 2, "client.requests.failed": 101} in list(
        mutation.changes({"client.requests.ok": 3, "client.requests.failed": 100})
    )
