"""The lesson's mode: which numbers are asked for, how an answer is read, and what stands beside it in the end."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from analysis.figures import programs
from analysis.figures.catalogue import FIGURES
from analysis.verdicts.guesses import compare
from formats.manifest import Guess
from formats.series import ExpectedArm, PlannedRun
from lab.console import run_output
from lab.engines.compose.engine import Compose
from lab.lessons import guesses, questions
from lab.roles.declared_roles import ROLES
from lab.runs import run_results
from lab.runs.run_context import RunPosition, open_run
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from lab.series import arms
from lab.series.plan import Answers
from tests.analysis.whole import make_run
from tests.lab.support import MINIMAL, Make

ARMS = """\
arms:
  variants:
    few: {load.users: 2}
    many: {load.users: 5}
predictions:
  - id: dialled
    description: Each has a connection.
    arms: [many]
    expression: client.dials.total == load.users
  - id: faster
    description: Few are faster.
    expression: arms.few.client.latency_ms.mean < arms.many.client.latency_ms.mean
"""


class Terminal(io.StringIO):
    """Someone who types these lines and then ends the input."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Console]:
    def type_in(*lines: str) -> Console:
        monkeypatch.setattr("sys.stdin", Terminal("".join(line + "\n" for line in lines)))
        return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200)

    return type_in


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("slug", places.slugs())
def test_every_scenario_has_numbers_to_ask_for(slug: str) -> None:
    resolved = resolve(slug)
    if resolved.scenario.arms:
        asked = questions.questions_for_series(arms.plan_arms(resolved, []))
        numbers, choices = asked.about_runs, asked.chosen
        assert 1 <= len(numbers) + len(choices) <= max(6, len(resolved.scenario.arms.variants) + len(choices))
    else:
        numbers = questions.questions_for_run(resolved).about_runs
        assert 1 <= len(numbers) <= 4
    assert all(one.asks.endswith(("?", ".")) and "{" not in one.asks for one in numbers)


def test_the_wordings_are_of_figures_that_there_are() -> None:
    assert set(questions.QUESTIONS) - {figure.pattern for figure in (*FIGURES, *programs.page_figures(ROLES))} == set()


def test_what_the_settings_decide_is_asked_first_and_nothing_twice() -> None:
    found = questions.questions_for_run(resolve("accept-queue-overflow")).about_runs
    assert [one.figure for one in found] == [
        "client.users.served",
        "client.requests.failed",
        "kernel.backend.TcpExt.ListenOverflows",
        "listen.backend.depth.max",
    ]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("500", "", 500), ("1,000", "", 1000), ("1 000 000", "", 1_000_000), ("2.5", "ms", 2.5), ("1.5s", "ms", 1500),
     ("30 s", "ms", 30_000), ("2 min", "ms", 120_000), ("0", "", 0), ("12%", "% of one processor", 12)],
)  # fmt: skip
def test_a_number_is_read_as_people_write_it(text: str, unit: str, value: float) -> None:
    assert guesses.read_number(text, unit) == value


@pytest.mark.parametrize(("text", "unit"), [("many", ""), ("5s", ""), ("1,00", ""), ("5 %", "ms"), ("--", "ms")])
def test_what_is_no_number_gets_an_example(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match=r"write one, such as|a number is asked for"):
        guesses.read_number(text, unit)


def test_an_answer_can_be_asked_back_mended_and_passed_over(typed: Callable[..., Console]) -> None:
    console = typed("3", "?", "lots", "100", "", "2")
    answers = guesses.ask_before_run(console, resolve("accept-queue-overflow"), None)

    assert [guess.value for guess in answers.of_arm[None]] == [3, 100, None, 2]
    assert "client.requests.failed: All other requests: without an answer" in said(console)
    assert "'lots' is not a number" in said(console)
    assert "Written down: 3." in said(console)
    assert "How many users get all of their answers?" in said(console)


def test_the_end_of_the_input_passes_the_rest_over(typed: Callable[..., Console]) -> None:
    answers = guesses.ask_before_run(typed("3"), resolve("accept-queue-overflow"), None)
    assert [guess.value for guess in answers.of_arm[None]] == [3, None, None, None]


def test_without_an_answer_nothing_is_kept(typed: Callable[..., Console]) -> None:
    assert guesses.ask_before_run(typed("", ""), resolve("accept-queue-overflow"), None).of_arm == {}


def test_without_a_terminal_nobody_is_asked() -> None:
    console = Console(file=io.StringIO(), width=200)
    assert guesses.ask_before_run(console, resolve("accept-queue-overflow"), None).given == 0
    assert said(console) == "lesson: no terminal, so no predictions are asked for; it runs as usual\n"


def test_of_arms_each_is_asked_about_and_which_has_less(effective: Make, typed: Callable[..., Console]) -> None:
    text = MINIMAL.partition("predictions:")[0] + ARMS
    resolved = effective(text=text)
    plan = arms.plan_arms(resolved, [])
    console = typed("5", "2")
    answers = guesses.ask_before_run(console, resolved, plan)

    assert {arm: [guess.value for guess in found] for arm, found in answers.of_arm.items()} == {"many": [5]}
    assert [(one.arms, one.less, one.value) for one in answers.chosen] == [(["few", "many"], "few", "many")]
    assert "Where is it less: 1 few, 2 many?" in said(console)


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "mark", "remark"),
    [
        (500, 500, "count", "right", ""),
        (100, 500, "count", "off", "5 times your number"),
        (1000, 500, "", "off", "your number is 2 times that"),
        (3, 4, "users", "near", "1 too few"),
        (450, 500, "", "near", "50 too few"),
        (0, 4, "", "off", "there were some"),
        (1, 0, "", "off", "there were none"),
        (0, 0, "", "right", ""),
        (1000, 1050, "ms", "right", "as near as can be told"),
        (1000, 1250, "ms", "near", ""),
        (None, 5, "", "skipped", "passed over"),
        (5, None, "", "unknown", "not known: a hole"),
    ],
)
def test_a_guess_is_right_near_or_off(
    guess: float | None, measured: float | None, unit: str, mark: str, remark: str
) -> None:
    assert compare(guess, measured, unit, "a hole") == (mark, remark)


def test_the_run_keeps_what_was_expected_and_its_end_shows_it(
    elsewhere: Path, typed: Callable[..., Console], capsys: pytest.CaptureFixture[str]
) -> None:
    resolved = resolve("accept-queue-overflow")
    found = guesses.ask_before_run(typed("3", "100", "100", "2"), resolved, None)
    context = open_run(resolved, Compose(), ["connlab"], RunPosition(guesses=found.of_arm[None]))
    kept = json.loads((context.folder / "manifest.json").read_bytes())["guesses"]
    assert [one["value"] for one in kept] == [3, 100, 100, 2]

    run = make_run(elsewhere / "run")
    run.manifest["guesses"] = kept
    run.manifest["predictions"] = [stated.prediction.model_dump() for stated in resolved.predictions]
    folder = run.write()
    verdict = run_results.derive_run(folder)
    run_output.print_verdict(Console(width=200), verdict, folder)
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "✓ right How many users get all of their answers? you: 3, measured: 3" in told
    assert "○ off By how much does TcpExt.ListenOverflows grow in the kernel of the backend?" in told
    assert "you: 100, measured: 500 (5 times your number)" in told


def test_the_end_of_a_series_shows_each_arm_by_its_middle_run_and_which_had_less(
    elsewhere: Path, derived_run: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    places = []
    for number in (1, 2):
        derived_run(elsewhere / "results" / "one" / f"r{number}")
        places.append(PlannedRun(cell="few", repetition=number, status="complete", run=f"one/r{number}"))
    places.append(PlannedRun(cell="few", repetition=3))
    guess = Guess(prediction="p", figure="client.requests.failed", asks="How many fail?", unit="count", value=10)
    chosen = [
        ExpectedArm(prediction=id_, asks="The mean?", arms=["few", "many"], less="few", value=value)
        for id_, value in (("holds", "few"), ("not", "few"), ("open", "many"), ("open", None))
    ]
    judged = [{"id": "holds", "status": "true"}, {"id": "not", "status": "false"}, {"id": "open", "status": "unknown"}]
    verdict = {"predictions": [one | {"why": "too few runs"} for one in judged]}
    guesses.print_guesses_of_series(Console(width=200), places, verdict, Answers({"few": [guess]}, chosen))

    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "arm few ○ off How many fail? you: 10, measured: 100 (10 times your number)" in told
    assert "✓ right The mean? Where is it less? you: few, measured: few" in told
    assert "○ off The mean? Where is it less? you: few, measured: many" in told
    assert "? unknown The mean? Where is it less? you: many, measured: unknown (too few runs)" in told
    assert "- passed The mean? Where is it less? you: -, measured: " in told


def test_without_an_answer_the_end_of_a_series_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    guesses.print_guesses_of_series(Console(), [], {"predictions": []}, Answers())
    assert capsys.readouterr().out == ""


def test_what_the_lab_does_to_servers_is_reported_beforehand(effective: Make, typed: Callable[..., Console]) -> None:
    actions = "actions: [{at: 1s, do: pause, instance: backend-1, for: 2s}]\npredictions:"
    console = typed("3")
    guesses.ask_before_run(
        console, effective("load.handler_delay=5s", text=MINIMAL.replace("predictions:", actions)), None
    )
    assert "action pause backend-1 at 1s for 2s" in said(console)
