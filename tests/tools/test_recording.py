"""The recorded runs: lines are added and never lost, and the documents are what they say."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from formats.predictions import Result
from lab import paths
from lab.cli import main
from lab.errors import BadInput, Interruption, LabError, Problem
from lab.outcomes import run_and_judge
from lab.outcomes.run_and_judge import Outcome
from lab.runs.lock import machine_lock
from lab.scenarios.catalogue import load_sources, source_of
from lab.scenarios.places import slugs
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario, load_unchecked
from tests.lab.outcome_support import run_outcome, series_outcome, verdict_of
from tests.lab.series_support import write
from tests.lab.support import MINIMAL, Make
from tests.lab.test_series_arms import ARMS, COMPARED
from tools.recording import documents, recorded_figures, recorded_runs, recorder
from tools.recording.recorded_runs import RecordedRun

COMMIT = "c" * 40
PUBLISHED = "published:\n  description: 3 | succeed\n  here: {served: client.requests.ok, all: load.users}\n"


# --- the repository's own record -----------------------------------------------------------------------------


def test_the_documents_are_as_made_from_the_record() -> None:
    scenarios, recorded = list(run_and_judge.resolve_all()), recorded_runs.read()
    assert documents.DOCUMENT.read_text() == documents.document(scenarios, recorded), "run: make experiments"
    assert documents.CATALOGUE.read_text() == documents.catalogue(scenarios, recorded), "run: make experiments"
    for one in scenarios:
        text = one.place.lesson.read_text()
        assert text == documents.lesson(text, one), "run: make experiments"


def test_every_published_experiment_has_a_source_that_its_lesson_and_the_documents_cite() -> None:
    published = [one for one in run_and_judge.resolve_all() if one.scenario.experiment != "workshop"]
    assert {one.scenario.experiment[0] for one in published} == set(load_sources())
    for one in published:
        source = source_of(one)
        assert source is not None
        assert source.cited in one.place.lesson.read_text()
        assert f"| {source.title or '(untitled)'} | {source.language} |" in documents.DOCUMENT.read_text()


def test_a_scenario_is_shown_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", "one-port"])
    source = load_sources()["A"].cited
    assert f"published in {source}: With ip_local_port_range" in capsys.readouterr().out


def test_a_scenario_of_the_workshop_or_of_the_user_s_own_has_no_source(effective: Make) -> None:
    own = replace(effective().place, own=False)
    assert source_of(replace(effective(), place=own)) is None
    assert source_of(effective(text=MINIMAL.replace("experiment: B1", "experiment: workshop"))) is None
    assert source_of(effective()) is not None


def test_a_lesson_has_its_source_once_below_what_it_takes(effective: Make) -> None:
    text = "# A title\n\n**Question.** Why?\n\n**Time**: a minute.\n\n## Predict\n\nWrite it down.\n"
    made = documents.lesson(text, effective())
    assert "**Time**: a minute.\n\n**Source**: experiment B1 of an untitled article on" in made
    assert documents.lesson(made, effective()) == made
    assert documents.lesson(made, effective(text=MINIMAL.replace("experiment: B1", "experiment: workshop"))) == text


def test_every_recorded_line_is_of_a_scenario_that_there_is() -> None:
    known = slugs()
    assert sorted({line.scenario for line in recorded_runs.read() if line.scenario not in known}) == []


def test_a_renamed_key_leaves_the_digest_as_it_was() -> None:
    # A service's keys were once `needs` and `without`, and are so in the digest. No recorded scenario has services.
    # That all other runs still count shows in the documents made from the record.
    assert recorded_runs.content(load_unchecked("examples/shop/lab")) == "e77e54fbbd427dbe"


def test_no_run_is_recorded_twice() -> None:
    runs = [line.run for line in recorded_runs.read()]
    assert sorted({run for run in runs if runs.count(run) > 1}) == []


def test_the_guide_says_of_each_run_that_counts_which_prediction_was_false_and_why() -> None:
    recorded = recorded_runs.read()
    counted = [
        line for one in run_and_judge.resolve_all() for line in recorded_runs.counting(one, recorded) if line.false
    ]
    table = (paths.ROOT / "docs" / "series.md").read_text().partition("| run | false prediction |")[2]
    told = re.findall(r"(?m)^\| `(\w+Z-[\w-]+)`[^|]*\| `([\w/-]+)`", table)
    assert {(line.run.rpartition("/")[2], line.false[0]) for line in counted} == set(told)


# --- lines ---------------------------------------------------------------------------------------------------


def line(effective: ResolvedScenario, number: int = 1, **changed: object) -> RecordedRun:
    content: dict[str, object] = {
        "scenario": effective.slug,
        "experiment": "B1",
        "content": recorded_runs.content(effective),
        "run": f"one/{number}",
        "when": f"2026-11-21T08:00:{number:02}Z",
        "commit": COMMIT,
        "kernel": "6.18",
        "cpus": 2,
        "verdict": "reproduced",
        "false": [],
        "unknown": [],
        "unexplained": 0,
        "identities": {"true": 12, "false": 0, "unknown": 0},
        "here": {"client.requests.ok": 3, "load.users": 3},
        "took_s": 60,
    }
    return RecordedRun.model_validate({"schema": "connlab.experiment/1"} | content | changed)


def test_a_line_comes_back_as_it_was_written(tmp_path: Path, effective: Make) -> None:
    file = tmp_path / "experiments.jsonl"
    later, earlier = line(effective(), 2), line(effective(), 1)
    for one in (later, earlier):
        recorded_runs.append(one, file)
    assert recorded_runs.read(file) == [earlier, later]


def test_a_broken_line_is_named(tmp_path: Path, effective: Make) -> None:
    file = tmp_path / "experiments.jsonl"
    recorded_runs.append(line(effective()), file)
    with file.open("a") as stream:
        stream.write('{"schema": "connlab.experiment/1"}\n')
    with pytest.raises(BadInput, match=r"experiments\.jsonl:2: scenario: Field required"):
        recorded_runs.read(file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("users: 3", "users: 4"),
        ("client.requests.ok ==", "client.requests.ok <="),
        ("[k6, backend]", "[k6, nginx, backend]"),
        ("knobs:", "slow: 5s\nknobs:"),
        ("knobs:", "warmup: {requests: 3}\nknobs:"),
    ],
)
def test_another_setting_or_prediction_makes_old_lines_void(effective: Make, old: str, new: str) -> None:
    recorded = [line(effective())]
    assert recorded_runs.counting(effective(text=MINIMAL.replace(old, new)), recorded) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A title", "Another title"),
        ("A question?", "Another?"),
        ("All are served.", "Nobody fails."),
        ("knobs:", "# a comment\nknobs:"),
        ("knobs:", "drain: 2000ms\nknobs:"),
        ("knobs:", f"{PUBLISHED}presets: {{small: {{load.users: 2}}}}\nknobs:"),
    ],
)
def test_other_words_do_not(effective: Make, old: str, new: str) -> None:
    recorded = [line(effective())]
    assert recorded_runs.counting(effective(text=MINIMAL.replace(old, new)), recorded) == recorded


# --- recording -----------------------------------------------------------------------------------------------


@pytest.fixture
def record(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record and documents of the test's own, in a work tree without changes."""
    monkeypatch.setattr(recorded_runs, "FILE", elsewhere / "experiments.jsonl")
    monkeypatch.setattr(documents, "DOCUMENT", elsewhere / "experiments.md")
    monkeypatch.setattr(documents, "CATALOGUE", elsewhere / "catalogue.md")
    monkeypatch.setattr(recorded_figures, "FOLDER", elsewhere / "recorded")
    monkeypatch.setattr(recorder, "refuse_changes", lambda commit=COMMIT: commit)
    return elsewhere


class Runs:
    """Comes to the given ends, one after the other; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *endings: BaseException | None) -> None:
        self.ran: list[str] = []
        self._endings = list(endings)
        monkeypatch.setattr(recorder, "run_scenario", self.of_scenario)

    def of_scenario(self, effective: ResolvedScenario, *_: object, **__: object) -> Outcome:
        self.ran.append(effective.slug)
        ending = self._endings.pop(0) if self._endings else None
        if ending is not None:
            raise ending
        return run_outcome(effective, verdict_of({"served": "true"}), len(self.ran))


def recorded(runs: int, *of: str) -> recorder.RecordedRuns:
    return recorder.record([resolve(slug) for slug in of], runs, ["connlab"], Console(quiet=True))


def two(record: Path) -> None:
    scenarios = write(record)
    (scenarios / "two").mkdir()
    (scenarios / "two" / "scenario.yaml").write_text(MINIMAL)


def test_it_runs_until_there_are_so_many_lines(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(record)
    runs = Runs(monkeypatch)
    assert recorded(2, "one").counts == {"one": 2}
    assert recorded(3, "one", "two").counts == {"one": 3, "two": 3}
    assert runs.ran == ["one", "one", "two", "two", "one", "two"]
    assert recorded(3, "one", "two").lines == []


def test_an_interruption_loses_nothing_and_the_command_goes_on(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(record)
    runs = Runs(monkeypatch, None, Interruption("the run was aborted"))
    with pytest.raises(Interruption, match="1 line was added; the same command continues with the others"):
        recorded(2, "one", "two")
    assert [one.scenario for one in recorded_runs.read()] == ["one"]
    assert "1 of 1" in documents.CATALOGUE.read_text()
    assert recorded(2, "one", "two").counts == {"one": 2, "two": 2}
    assert runs.ran == ["one", "two", "two", "one", "two"]


def test_a_run_without_a_verdict_is_reported_and_not_recorded(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(record)
    Runs(monkeypatch, LabError("no engine answers"))
    found = recorded(1, "one", "two")
    assert (found.counts, found.failed) == ({"one": 0, "two": 1}, {"one": "no engine answers"})
    assert "one: a run was not recorded: no engine answers" in "\n".join(recorder.summary(found))


def test_failures_in_a_row_end_it_and_refusals_do_not(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(record)
    refused, failed = BadInput(Problem("this kernel has no such sysctl")), LabError("no engine answers")
    runs = Runs(monkeypatch, refused, refused, refused, failed, None, failed, failed, failed)
    assert len(recorded(9, "one", "two").lines) == 1
    assert len(runs.ran) == 8


def test_no_other_run_comes_between_two_recorded_ones(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(record)
    runs = Runs(monkeypatch)
    with (
        machine_lock("the run of three", record / "connlab.lock"),
        pytest.raises(LabError, match="the run of three is in progress"),
    ):
        recorded(1, "one", "two")
    assert runs.ran == []

    def of_scenario(*given: Any, **more: Any) -> Outcome:  # noqa: ANN401 # what stands in its place takes
        with pytest.raises(LabError, match="the recording of runs is in progress"), machine_lock("another"):
            pass
        return runs.of_scenario(*given, **more)

    monkeypatch.setattr(recorder, "run_scenario", of_scenario)
    assert recorded(1, "one", "two").counts == {"one": 1, "two": 1}


def test_a_line_has_what_the_verdict_says(record: Path) -> None:
    write(record)
    one = resolve("one")
    beside = {
        "description": "3",
        "here": [{"name": "served", "expression": "client.requests.ok", "value": 3, "why": None}],
    }
    verdict = verdict_of({"served": "false", "queue": "unknown"}, unexplained=2, published=beside)
    found = recorder.line_of(one, run_outcome(one, verdict), COMMIT, took_s=61)
    assert (found.run, found.when, found.commit) == (
        "one/20261121T080001Z-default-r01",
        "2026-11-21T08:00:01Z",
        COMMIT,
    )
    assert (found.verdict, found.false, found.unknown) == ("inconclusive", ["served"], ["queue"])
    assert (found.unexplained, found.here, found.took_s) == (2, {"client.requests.ok": 3}, 61)


def test_a_series_is_one_line(record: Path) -> None:
    write(record, scenario=MINIMAL + COMPARED + ARMS)
    one = resolve("one")
    of_runs = dict.fromkeys(("keep-alive", "no-keep-alive", "proxied"), verdict_of({"served": "true"}))
    found = recorder.line_of(one, series_outcome(one, verdict_of({"faster": "true"}), of_runs), COMMIT, took_s=99)
    assert found.run.startswith("series/")
    assert (found.verdict, found.unexplained, found.identities["true"]) == ("reproduced", 0, 108)


def test_what_was_predicted_of_an_arm_that_never_ran_is_unknown(record: Path) -> None:
    write(record, scenario=MINIMAL + COMPARED + ARMS)
    one = resolve("one")
    of_runs = dict.fromkeys(("keep-alive", "no-keep-alive", "proxied"), verdict_of({"served": "true"}))
    stopped = series_outcome(one, verdict_of({"faster": "unknown"}), of_runs)
    assert stopped.series is not None
    for place in stopped.series.runs:
        if place.cell == "no-keep-alive":
            place.status, place.run = "planned", None
    found = recorder.line_of(one, stopped, COMMIT, took_s=9)
    assert found.unknown == ["faster", "no-keep-alive/served", "no-keep-alive/closed"]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def own_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", folder)
    monkeypatch.setattr(recorded_runs, "FILE", folder / "docs" / "experiments.jsonl")
    monkeypatch.setattr(documents, "FILES", (folder / "README.md",))
    monkeypatch.setattr(recorded_figures, "FOLDER", folder / "docs" / "recorded")


def test_a_work_tree_that_its_commit_does_not_describe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_files(tmp_path, monkeypatch)
    with pytest.raises(BadInput, match="not a git repository"):
        recorder.refuse_changes()
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    recorder.refuse_changes()
    (tmp_path / "docs").mkdir()
    for own in ("docs/experiments.jsonl", "README.md"):
        (tmp_path / own).write_text("recorded")
    recorder.refuse_changes()
    (tmp_path / "code.py").write_text("changed")
    with pytest.raises(BadInput, match=r"differs from its commit: code\.py; commit it first"):
        recorder.refuse_changes()


def test_a_commit_on_the_way_is_refused_unless_it_is_of_the_record_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_files(tmp_path, monkeypatch)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    began = recorder.refuse_changes()
    assert began == git(tmp_path, "rev-parse", "HEAD")
    for name in ("README.md", "code.py"):
        assert recorder.refuse_changes(began) == began
        (tmp_path / name).write_text("changed")
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-q", "-m", name)
    recorder.refuse_changes()
    with pytest.raises(BadInput, match=rf"the commit that the recording began with, {began[:12]}: code\.py; give"):
        recorder.refuse_changes(began)


def test_a_line_names_what_the_recording_began_with(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(record)
    Runs(monkeypatch)
    asked: list[str | None] = []

    def refuse_changes(commit: str | None = None) -> str:
        asked.append(commit)
        return commit or "d" * 40

    monkeypatch.setattr(recorder, "refuse_changes", refuse_changes)
    assert [one.commit for one in recorded(2, "one").lines] == ["d" * 40] * 2
    assert asked == [None, "d" * 40, "d" * 40]


def test_what_is_run_is_the_scenario_in_hand_whatever_becomes_of_its_file(
    elsewhere: Path, effective: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = effective()
    ran: list[ResolvedScenario] = []

    def of_run(resolved: ResolvedScenario, *_: object, **__: object) -> Outcome:
        ran.append(resolved)
        return run_outcome(resolved, verdict_of({}))

    monkeypatch.setattr(run_and_judge, "run_once", of_run)
    monkeypatch.setattr(paths, "SCENARIOS", write(elsewhere, scenario=MINIMAL.replace("users: 3", "users: 4")))
    with machine_lock("the recording of runs") as lock:
        run_and_judge.run_scenario(one, ["connlab"], Console(quiet=True), lock, new=True)
    assert ran == [one]


# --- the documents -------------------------------------------------------------------------------------------


def rows(effective: ResolvedScenario, *recorded_lines: RecordedRun) -> list[str]:
    text = documents.document([effective], recorded_lines)
    return [cell.strip() for cell in text.splitlines()[-1].replace("\\|", "¦").strip("|").split("|")]


def test_a_row_has_median_and_range(effective: Make) -> None:
    one = effective(text=MINIMAL + PUBLISHED)
    taken = [
        line(one, number, here={"client.requests.ok": served, "load.users": 1234.5})
        for number, served in enumerate((2, 10, 3), start=1)
    ]
    cells = rows(one, *taken)
    assert cells[:3] == ["B1", "[one](../scenarios/one/README.md)", "3 ¦ succeed"]
    assert cells[3] == "served: 3 (2 to 10)<br>all: 1,234"
    assert cells[4:] == ["", "", "reproduced in 3 of 3", "", "0", "12 hold", "60 s"]


def test_a_row_counts_what_did_not_hold(effective: Make) -> None:
    one = effective(text=MINIMAL + PUBLISHED)
    cells = rows(
        one,
        line(one, 1),
        line(one, 2, verdict="inconclusive", unknown=["served"], unexplained=None, here={"load.users": None}),
        line(one, 3, verdict="not-reproduced", false=["served"], identities={"true": 11, "false": 1, "unknown": 0}),
    )
    assert cells[3] == "served: 3, of 2 runs<br>all: 3, of 2 runs"
    assert cells[6] == "reproduced in 1 of 3; 1 inconclusive; 1 not (served unknown in 1, served false in 1)"
    assert cells[8:10] == ["unknown in 1", "12 (11 to 12) hold; up to 1 fail"]


def test_a_figure_that_came_later_is_not_recorded_yet(effective: Make) -> None:
    one = effective(text=MINIMAL + PUBLISHED)
    assert rows(one, line(one, here={"load.users": 3}))[3] == "served: not recorded yet<br>all: 3"
    assert rows(one, line(one, here={"client.requests.ok": None, "load.users": 3}))[3] == "served: unknown<br>all: 3"


def test_lines_of_an_earlier_version_do_not_count_and_are_reported(effective: Make) -> None:
    old = [
        line(effective(), number, content="0" * 16, verdict=verdict) for number, verdict in enumerate(get_args(Result))
    ]
    told = "1 reproduced; 1 inconclusive; 1 not"
    assert rows(effective(text=MINIMAL + PUBLISHED), *old)[3:] == ["not recorded yet", "", "", "", told, "", "", ""]
    assert rows(one := effective(text=MINIMAL + PUBLISHED), line(one, 5), *old)[7] == told


@pytest.mark.parametrize(("key", "word"), [("supported_by", "confirmed"), ("refuted_by", "refuted")])
def test_a_claim_is_counted_by_the_predictions_that_speak_of_it(effective: Make, key: str, word: str) -> None:
    claim = f"claim:\n  {key}: [served]\n  caveat: with fewer users\n"
    one = effective(text=MINIMAL + PUBLISHED + claim)
    taken = [line(one, 1), line(one, 2, unknown=["an-arm/served"]), line(one, 3, false=["served"])]
    assert rows(one, *taken)[4] == f"{word} in 1 of 3; but with fewer users"


def test_a_claim_that_the_scenario_cannot_tell_is_undecided(effective: Make) -> None:
    one = effective(text=MINIMAL + PUBLISHED + "claim:\n  undecided: the arms are alike\n")
    assert rows(one, line(one, 1), line(one, 2, false=["served"]))[4] == "undecided: the arms are alike"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("supported_by: [nobody]", "no prediction is named 'nobody'"),
        ("supported_by: [served]\n  refuted_by: [served]", "a claim takes exactly one of"),
        ("caveat: it is small", "a claim takes exactly one of"),
        ("refuted_by: [served]\n  undecided: it is small", "a claim takes exactly one of"),
    ],
)
def test_a_claim_that_nothing_can_tell_is_refused(effective: Make, claim: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        effective(text=f"{MINIMAL}{PUBLISHED}claim:\n  {claim}\n")


def test_the_experiments_stand_in_their_order(effective: Make) -> None:
    ids = ("B10", "workshop", "A7", "B2")
    scenarios = [effective(text=MINIMAL.replace("experiment: B1", f"experiment: {one}")) for one in ids]
    body = documents.document(scenarios, []).splitlines()[-4:]
    assert [row.split("|")[1].strip() for row in body] == ["A7", "B2", "B10", "workshop"]
