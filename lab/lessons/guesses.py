"""Guesses: asked of the learner before anything of a run starts, and printed beside what was measured."""

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from analysis.formatting import format_count
from analysis.output import DerivedFile
from analysis.verdicts import guesses
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.guesses import GuessOutcome
from analysis.verdicts.verdict_file import Verdict
from formats.manifest import Guess
from formats.series import ExpectedArm, PlannedRun
from lab import paths
from lab.console import listing
from lab.console.run_output import print_answer, print_guess
from lab.lessons import questions
from lab.runs import run_results
from lab.scenarios.knobs import format_knob
from lab.scenarios.resolved import ResolvedScenario
from lab.series.plan import Answers, Plan

_Answer = TypeVar("_Answer")

_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e\d+)?) ?(ms|s|m|min|%)?")
_MS_PER = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000}
_HOW = "A guess is fine. Enter skips a question, ? explains what is counted, Ctrl-D ends the questions."
_NOBODY = "lesson: no terminal, so no predictions are asked for; it runs as usual"


class _NoMore(Exception):
    """The terminal has ended its input: the questions that are left are passed over."""


def ask_before_run(console: Console, resolved: ResolvedScenario, plan: Plan | None) -> Answers:
    """Ask what somebody expects of a run, or of a series of arms, of which the scenario is any.

    Returns:
        One guess for each question; no guesses at all where there is no terminal, or nothing was answered.
    """
    if not (sys.stdin.isatty() and console.is_terminal):
        console.print(_NOBODY, soft_wrap=True)
        return Answers()
    answers = questions.questions_for_run(resolved) if plan is None else questions.questions_for_series(plan)
    count = len(answers.about_runs) + len(answers.chosen)
    if not count:
        console.print("lesson: the predictions of this scenario have no number to ask for", soft_wrap=True)
        return Answers()
    _introduce(console, resolved, plan, count)
    try:
        _ask_all(console, answers)
    except _NoMore:
        console.print()
    if not answers.given:
        console.print("No prediction, then: the run shows what happens.\n")
        return Answers()
    console.print(f"Written down: {answers.given}. The end of the run, and its report, show what was measured.\n")
    return answers


def ask_about_exercise(console: Console, answers: Answers) -> Sequence[Guess]:
    """Ask what somebody expects of an exercise's run; nobody, where there is no terminal."""
    if not answers.about_runs or not (sys.stdin.isatty() and console.is_terminal):
        return ()
    console.print(f"\n{_HOW}\n", soft_wrap=True)
    try:
        _ask_all(console, answers)
    except _NoMore:
        console.print()
    return answers.about_runs


def _ask_all(console: Console, answers: Answers) -> None:
    """Fill the answers in; a question that was never reached keeps none, and is shown too."""
    numbers = itertools.count(1)
    for arm, guesses_of_arm in answers.of_arm.items():
        if arm is not None:
            console.print(Text.assemble("arm ", (arm, "bold")))
        for one in guesses_of_arm:
            asks = f"{next(numbers)}. {one.asks}" + (f" (in {one.unit}; 1.5s is read too)" if one.unit == "ms" else "")
            one.value = _ask(console, asks, one.figure, partial(read_number, unit=one.unit))
    if answers.chosen and answers.of_arm:
        console.print(Text("the arms compared", "bold"))
    for choice in answers.chosen:
        options = ", ".join(f"{place} {name}" for place, name in enumerate(choice.arms, start=1))
        asks = f"{next(numbers)}. {choice.asks} Where is it less: {options}?"
        choice.value = _ask(console, asks, choice.asks, partial(read_choice, options=choice.arms))


def _introduce(console: Console, resolved: ResolvedScenario, plan: Plan | None, count: int) -> None:
    scenario = resolved.scenario
    console.print(Text(scenario.title, "bold"))
    console.print(" ".join(scenario.question.split()))
    if plan is None:
        console.print(f"path: {' → '.join(scenario.path)}", style="dim")
    for name in resolved.asked():
        if plan is None or resolved.source(name) != "cell":
            console.print(
                f"  {name} = {format_knob(name, resolved.values[name], resolved.registry.knobs)}",
                style="dim",
                soft_wrap=True,
            )
    listing.print_actions(console, [action.model_dump(by_alias=True) for action in scenario.actions])
    if plan is not None and scenario.arms:
        listing.print_arms(console, scenario.arms.variants)
    lesson = resolved.place.lesson
    if lesson.is_file():
        console.print(f"the lesson: {paths.shown(lesson)}", style="dim", soft_wrap=True)
    console.print(f"\nBefore it runs, {format_count(count, 'question')}: what do you expect?\n{_HOW}\n", soft_wrap=True)


def _ask(console: Console, text: str, figure: str, read: Callable[[str], _Answer]) -> _Answer | None:
    """Ask until the answer can be read, or there is none."""
    while True:
        try:
            said = console.input(f"{text}\n   > ", markup=False).strip()
        except EOFError:
            raise _NoMore from None
        if not said:
            return None
        if said == "?":
            console.print(f"   {questions.figure_meaning(figure)}", style="dim", soft_wrap=True)
            continue
        try:
            return read(said)
        except ValueError as error:
            console.print(f"   {error}", style="yellow", soft_wrap=True)


def read_number(text: str, unit: str) -> int | float:
    """Read a number as people write it: `1,000`, `1 000`, and of a duration in ms also `1.5s`.

    Raises:
        ValueError: it is none; the message says what would be.
    """
    plain = re.sub(r"(?<=\d)[,_ ](?=\d{3}(?!\d))", "", text.lower())
    found = _NUMBER.fullmatch(plain)
    if found is None:
        example = "such as 250 or 1.5s" if unit == "ms" else "such as 100"
        raise ValueError(f"'{text}' is not a number; write one, {example}, or Enter to pass")
    value, given = float(found[1]), found[2]
    if given == "%" and not unit.startswith("%"):
        raise ValueError("a number is asked for, not a share")
    if given in _MS_PER:
        if unit != "ms":
            raise ValueError("a number is asked for, not a duration")
        value *= _MS_PER[given]
    return int(value) if value.is_integer() else value


def read_choice(text: str, options: Iterable[str]) -> str:
    """Read one of some names, or its place from 1.

    Raises:
        ValueError: it is neither.
    """
    names = list(options)
    if text in names:
        return text
    if text.isdecimal() and 1 <= int(text) <= len(names):
        return names[int(text) - 1]
    raise ValueError(f"'{text}' is not one of {', '.join(names)}; write its number or name, or Enter to pass")


def print_guesses_of_series(
    console: Console, places: Iterable[PlannedRun], verdict: Mapping[str, Any], answers: Answers
) -> None:
    """Print what was expected of the runs of each arm, by the middle one of its runs, and of the arms together."""
    if not answers.given:
        return
    done = list(places)
    console.print(Text("your predictions", "bold"))
    for arm, asked in answers.of_arm.items():
        console.print(Text.assemble("arm ", (str(arm), "bold")))
        runs = [one.run for one in done if one.cell == arm and one.status == "complete" and one.run]
        found = [guesses.score_guesses(asked, *_derived(paths.RESULTS / run)) for run in runs]
        for index, guess in enumerate(asked):
            values = [one[index].measured for one in found]
            known = [value for value in values if value is not None]
            middle = median(known) if known else None
            mark, remark = guesses.compare(guess.value, middle, guess.unit, "no run of the arm gives it")
            says = found[0][index].says if found else ""
            print_guess(console, GuessOutcome(guess.asks, guess.unit, guess.value, middle, mark, remark, says))
    judged = {one["id"]: one for one in verdict["predictions"]}
    for choice in answers.chosen:
        _print_choice(console, choice, judged.get(choice.prediction, {}))


def _derived(folder: Path) -> Iterable[dict[str, Any]]:
    models: tuple[type[DerivedFile], ...] = (Verdict, FiguresFile)
    for model in models:
        yield run_results.read_derived(folder, model).model_dump(mode="json", by_alias=True)


def _print_choice(console: Console, choice: ExpectedArm, prediction: Mapping[str, Any]) -> None:
    other = next(arm for arm in choice.arms if arm != choice.less)
    less = {"true": choice.less, "false": other}.get(prediction.get("status", "unknown"))
    if choice.value is None:
        mark = "skipped"
    elif less is None:
        mark = "unknown"
    else:
        mark = "right" if choice.value == less else "off"
    measured = less or f"unknown ({prediction.get('why') or 'the series did not get that far'})"
    print_answer(console, mark, f"{choice.asks} Where is it less?", choice.value, measured)
