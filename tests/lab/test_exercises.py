"""Exercises that check themselves: every one can be run, has its text and its answer apart, and is judged by a run."""

import io
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from analysis.verdicts.predictions import Judgement
from lab import paths
from lab.errors import BadInput, ExitCode
from lab.lessons import exercises, questions
from lab.lessons.exercises import Ready
from lab.outcomes import run_and_judge
from lab.runs import capacity
from lab.scenarios import places
from tests.lab.support import connlab

EXAMPLE = paths.ROOT / "docs" / "example"
LESSONS = places.slugs()


def prepared(slug: str) -> list[Ready]:
    known = exercises.load_exercises(places.find(slug))
    return [
        exercises.prepare(f"{slug}/{n}", [one.found] if one.found else [])
        for n, one in enumerate(known, start=1)
        if not one.by_hand
    ]


@pytest.mark.parametrize("slug", LESSONS)
def test_a_lesson_has_three_exercises_and_one_is_open(slug: str) -> None:
    found = prepared(slug)
    assert len(found) >= 3
    assert any(one.exercise.is_open for one in found)
    for one in found:
        text, answer = (of(one.place, one.number) for of in (exercises.task_text, exercises.answer_text))
        assert answer.startswith("**")
        assert "make exercise" not in text
        assert ("Open:" in text) == one.exercise.is_open
        assert one.exercise.found is None or one.exercise.found in answer
        turned = {setting for sets in re.findall(r'SET="([^"]+)"', text) for setting in sets.split()}
        assert one.exercise.is_open or not turned or turned == set(one.exercise.set)


@pytest.mark.parametrize("slug", LESSONS)
def test_no_exercise_is_to_end_false(slug: str) -> None:
    """A prediction that an exercise takes the ground from says when it applies."""
    answers = (paths.SCENARIOS / slug / "ANSWERS.md").read_text()
    assert re.findall(r"`false`|not-reproduced|(?:is|are)(?: then)? false", answers) == []


def test_what_no_run_judges_is_refused_with_the_way_to_its_answer() -> None:
    with pytest.raises(BadInput, match=r"no run judges exercise connection-per-request/3.*ANSWERS\.md"):
        exercises.prepare("connection-per-request/3")


@pytest.mark.parametrize("slug", LESSONS)
def test_a_closed_exercise_asks_for_what_its_answer_says(slug: str) -> None:
    closed = [one for one in prepared(slug) if not one.exercise.is_open]
    assert any(
        questions.questions_for_answer(one.resolved, one.exercise.answer, "exercise").about_runs for one in closed
    )


@pytest.mark.parametrize(
    ("name", "overrides", "says"),
    [
        ("accept-queue-overflow", [], "names no exercise; such as EXERCISE=accept-queue-overflow/1"),
        ("accept-queue-overflow/x", [], "names no exercise"),
        ("accept-queue-overflow/99", [], "has no exercise 99; it has 1 to 7"),
        ("no-such-one/1", [], "no-such-one"),
        ("accept-queue-overflow/1", ["load.users=1"], "sets its own knobs; leave SET out"),
        ("accept-queue-overflow/7", [], "Which one knob of the server does it"),
        ("accept-queue-overflow/7", ["load.users=3"], "is not solved at load; turn a knob of a server or a proxy"),
        ("accept-queue-overflow/7", ["kernel.k6.net.ipv4.tcp_syn_retries=6"], "is not solved at k6"),
        ("accept-queue-overflow/7", ["backend.accept_count=3", "backend.max_connections=3"], "it takes one knob"),
        ("overflows-counted-back/3", ["backend.accept_count=3"], "turn a knob of load or k6"),
    ],
)
def test_what_is_no_exercise_is_refused_in_one_line(name: str, overrides: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(says)) as refused:
        exercises.prepare(name, overrides)
    assert len(str(refused.value).splitlines()) == 1


def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    (home / "scenario.yaml").write_text("")
    (home / exercises.FILE).write_text("schema: 1\nexercises:\n  - sett: [load.users=1]\n    answer: [a == 1]\n")
    with pytest.raises(BadInput, match=r"exercises\.yaml:3.*unknown key"):
        exercises.load_exercises(places.Place("mine", home, own=False))


def judged(name: str, *answer: str) -> tuple[Ready, list[tuple[str, Judgement]]]:
    ready = exercises.prepare(name)
    other = ready.exercise.model_copy(update={"answer": list(answer)})
    ready = Ready(ready.place, ready.number, other, ready.resolved, ready.sets)
    return ready, exercises.judge(ready, EXAMPLE)


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ("client.requests.failed == 100", ExitCode.REPRODUCED, "as the answer says"),
        ("client.requests.failed == 7", ExitCode.NOT_REPRODUCED, "not as the answer says: a finding, or a fault"),
        ("gateway.dials.failed == 0", ExitCode.INCONCLUSIVE, "not decided: this run does not count"),
    ],
)
def test_a_run_is_judged_by_the_answer(answer: str, code: ExitCode, says: str) -> None:
    ready, found = judged("accept-queue-overflow/1", answer)
    assert exercises.exit_code(found) is code
    console = Console(file=io.StringIO(), width=200, record=True)
    exercises.print_judged(console, ready, EXAMPLE, found)
    text = console.export_text()
    assert says in text
    assert "load.connect_timeout=10s" in text
    following = exercises.next_exercise(ready, EXAMPLE, code)
    assert ("EXERCISE=accept-queue-overflow/2" in following) == (code is ExitCode.REPRODUCED)


def test_the_command_judges_what_it_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command, with a run in which 100 of 103 users failed: the open exercise keeps its answer."""
    folder = tmp_path / "results" / "accept-queue-overflow" / "20261123T000000Z-default-r01"
    shutil.copytree(EXAMPLE, folder)
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(capacity, "check_capacity", lambda *_: None)
    monkeypatch.setattr(
        run_and_judge, "run_once", lambda *_, tries_out: run_and_judge.Outcome(folder, {"tries_out": tries_out})
    )
    said = connlab("exercise", "--set", "backend.max_connections=50", "accept-queue-overflow/7")
    assert said == ExitCode.NOT_REPRODUCED
    told = capsys.readouterr()
    assert "Open: nobody may fail" in told.err
    assert "not solved: another knob, or another value" in told.out
    assert "backend.max_connections=101" not in told.out
    assert told.out.rstrip().splitlines()[-1].startswith("next, the story of its worst request: make explain RUN=")
