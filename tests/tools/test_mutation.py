"""`make mutate`: the lab's own predictions notice what changes; one that notices nothing is listed with its line."""

import json
from pathlib import Path

import pytest

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
