"""Exercises of a lesson, which check themselves: `exercises.yaml`, what one turns, and its run judged."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails
from rich.console import Console
from rich.text import Text

from analysis import command_hints, figures
from analysis.evidence.rawrun import RawRun
from analysis.expressions import ExpressionError
from analysis.verdicts import predictions
from analysis.verdicts.predictions import Judgement
from formats import manifest
from formats.predictions import Part
from formats.predictions import Text as NonEmpty
from lab import paths
from lab.console import next_steps
from lab.errors import BadInput, ExitCode, Problem
from lab.reading import document as documents
from lab.reading import validation_messages
from lab.reading.document import Location
from lab.runs.run_results import format_figures, print_judgement
from lab.scenarios import places
from lab.scenarios.overrides import parse_overrides
from lab.scenarios.places import Place
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms

FILE = "exercises.yaml"


class Exercise(Part):
    """One exercise, in the order of the lesson's list.

    One that is closed says what it sets and what must then be measured. An open one leaves the knob to the learner: it
    says what must hold, and the knob and value of the lesson's own answer.
    """

    arm: Annotated[NonEmpty | None, Field(description="The scenario's arm that it is about, which is run alone")] = None
    set: Annotated[list[NonEmpty], Field(description="What it turns, each as knob=value")] = Field(default_factory=list)
    answer: Annotated[list[NonEmpty], Field(description="What must be measured: expressions over figures")] = Field(
        default_factory=list
    )
    by_hand: Annotated[NonEmpty | None, Field(description="Why no run can judge it; it then has no answer here")] = None
    found: Annotated[
        NonEmpty | None,
        Field(description="An open exercise: the lesson's own answer, as knob=value; the learner turns it"),
    ] = None
    turns: Annotated[
        list[NonEmpty],
        Field(description="An open exercise: whose knobs may be turned; by default every server's and proxy's"),
    ] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_judged_one_way(self) -> Self:
        if bool(self.answer) == bool(self.by_hand):
            raise ValueError("an exercise has either an answer, which a run can be judged by, or by_hand")
        return self

    @property
    def is_open(self) -> bool:
        """Return whether the learner is to find the knob."""
        return self.found is not None


class Exercises(Part):
    """The exercises of a lesson."""

    model_config = ConfigDict(title="connlab exercises")

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    exercises: Annotated[list[Exercise], Field(min_length=1)]


def load_exercises(place: Place) -> tuple[Exercise, ...]:
    """Read a lesson's exercises.

    Raises:
        BadInput: it has none, or its file is wrong.
    """
    file = place.home / FILE
    if not file.is_file():
        raise BadInput(Problem(f"{place.named} has no {FILE}", hint="its README has exercises to be run by hand"))
    document = documents.read(file)
    if not isinstance(document.content, Mapping):
        raise BadInput(Problem("exercises are a mapping of keys to values", document.where(())))
    try:
        return tuple(Exercises.model_validate(document.content).exercises)
    except ValidationError as error:
        raise validation_messages.refuse_findings(error, document, _say) from None


def _say(error: ErrorDetails, location: Location) -> tuple[str, str | None]:
    name = validation_messages.name_place(location) or "the file"
    return validation_messages.describe_error(error, validation_messages.siblings(Exercises, location), name)


# Who turns these fixes nothing: the clients are other people's.
_CLIENTS = ("load", "k6")
_ITEM = re.compile(r"(?ms)^(\d+)\. (.+?)(?=\n\n|\n\d+\. |\Z)")


@dataclass(frozen=True)
class Ready:
    """An exercise that can be run.

    Attributes:
        resolved: the scenario as the exercise, or the learner, turns it.
        sets: what was turned, each as knob=value.
    """

    place: Place
    number: int
    exercise: Exercise
    resolved: ResolvedScenario
    sets: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return it as the command names it."""
        return f"{self.place.named}/{self.number}"


def prepare(name: str, overrides: Sequence[str] = ()) -> Ready:
    """Find an exercise, `<scenario>/<number>`, and resolve it with what the learner turns: of an open one, one knob.

    Raises:
        BadInput: there is no such exercise, or the learner may not turn this.
    """
    scenario, slash, number = name.rpartition("/")
    if not slash or not re.fullmatch("[0-9]{1,3}", number):
        raise BadInput(Problem(f"'{name}' names no exercise", hint="such as EXERCISE=accept-queue-overflow/1"))
    place = places.find(scenario)
    known = load_exercises(place)
    if not 1 <= int(number) <= len(known):
        raise BadInput(Problem(f"{scenario} has no exercise {number}", hint=f"it has 1 to {len(known)}"))
    exercise = known[int(number) - 1]
    if exercise.by_hand:
        hint = f"its answer is in {paths.shown(place.home / 'ANSWERS.md')}"
        raise BadInput(Problem(f"no run judges exercise {name}: {exercise.by_hand}", hint=hint))
    if exercise.is_open:
        _refuse(name, place, int(number), exercise, overrides)
    elif overrides:
        run = command_hints.make_command_here("run", {"SCENARIO": place.named})
        raise BadInput(Problem(f"exercise {name} sets its own knobs", hint=f"leave SET out, or use {run}"))
    sets = (*exercise.set, *overrides)
    resolved = resolve(scenario, sets if exercise.arm is None else ())
    if exercise.arm is not None:
        resolved = arms.resolve_arm(resolved, sets, exercise.arm)
    elif resolved.scenario.arms:
        raise BadInput(Problem(f"exercise {name} names no arm", paths.shown(place.home / FILE)))
    _check(resolved, exercise, place)
    return Ready(place, int(number), exercise, resolved, sets)


def _refuse(name: str, place: Place, number: int, exercise: Exercise, overrides: Sequence[str]) -> None:
    """Refuse anything but one knob that the exercise lets the learner turn."""
    given = parse_overrides(overrides)
    allowed = " or ".join(exercise.turns) or "a server or a proxy"
    if len(given) != 1:
        asked = f" It asks: {' '.join(task_text(place, number).split())}" if not given else ""
        what = f"exercise {name} is open: it takes one knob of {allowed}.{asked}"
        raise BadInput(Problem(what, hint='say which: SET="<knob>=<value>"'))
    parts = given[0].knob.split(".")
    group = parts[1] if parts[0] == "kernel" else parts[0]
    if group not in exercise.turns if exercise.turns else group in _CLIENTS:
        raise BadInput(
            Problem(f"exercise {name} is not solved at {group}", given[0].where, f"turn a knob of {allowed}")
        )


def _check(resolved: ResolvedScenario, exercise: Exercise, place: Place) -> None:
    for text in exercise.answer:
        try:
            predictions.check(text, resolved.roles, resolved.on_path)
        except ExpressionError as error:
            raise BadInput(Problem(f"answer '{text}': {error}", paths.shown(place.home / FILE))) from None


def task_text(place: Place, number: int) -> str:
    """Return an exercise's text out of the lesson's list."""
    return _item(place.lesson.read_text().partition("## Exercises")[2], number)


def answer_text(place: Place, number: int) -> str:
    """Return the lesson's own answer in words, with what was measured and what was only worked out."""
    return _item((place.home / "ANSWERS.md").read_text(), number)


def _item(text: str, number: int) -> str:
    return next((found.group(2).strip() for found in _ITEM.finditer(text) if int(found.group(1)) == number), "")


def judge(ready: Ready, folder: Path) -> list[tuple[str, Judgement]]:
    """Judge an exercise's run: each expression of its answer with what became of it.

    Raises:
        BadInput: the folder is not that of a run.
    """
    try:
        run = figures.Run(RawRun(folder, manifest.load_manifest(folder)))
    except manifest.ManifestError as error:
        raise BadInput(Problem(str(error))) from None
    return [(text, predictions.judge(run, text)) for text in ready.exercise.answer]


def exit_code(judged: Sequence[tuple[str, Judgement]]) -> ExitCode:
    """Return the exit code: right, not right, or not to be told."""
    statuses = [one.status for _, one in judged]
    if "false" in statuses:
        return ExitCode.NOT_REPRODUCED
    return ExitCode.INCONCLUSIVE if "unknown" in statuses else ExitCode.REPRODUCED


def as_json(ready: Ready, folder: Path, judged: Sequence[tuple[str, Judgement]]) -> dict[str, Any]:
    """Return the result as JSON has it."""
    return {
        "exercise": ready.name,
        "set": list(ready.sets),
        "answer": [
            {"expression": text, "status": one.status, "measured": format_figures(one.measured)} for text, one in judged
        ],
        "found": ready.exercise.found,
        "folder": str(folder),
        "exit_code": int(exit_code(judged)),
    }


def print_task(console: Console, ready: Ready) -> None:
    """Print what the exercise asks, and what is turned."""
    console.print(Text(f"exercise {ready.name}", "bold"))
    console.print(Text(task_text(ready.place, ready.number)), soft_wrap=True)
    if ready.exercise.is_open:
        console.print(f"you turn: {', '.join(ready.sets)}", soft_wrap=True)


def print_judged(console: Console, ready: Ready, folder: Path, judged: Sequence[tuple[str, Judgement]]) -> None:
    """Print whether it came out as the answer says, then the answer, and where it all lies."""
    for text, one in judged:
        print_judgement(console, one.status, text, format_figures(one.measured), one.why)
    for line in _verdict(ready, exit_code(judged)):
        console.print(Text(line, "bold"), soft_wrap=True)
    if exit_code(judged) is ExitCode.REPRODUCED or not ready.exercise.is_open:
        console.print(Text(answer_text(ready.place, ready.number)), soft_wrap=True)
    console.print(f"result: {paths.shown(folder)}", soft_wrap=True)


def _verdict(ready: Ready, code: ExitCode) -> Iterator[str]:
    if code is ExitCode.INCONCLUSIVE:
        yield "not decided: this run does not count, for the reason above; run it again"
    elif not ready.exercise.is_open:
        yield "as the answer says" if code is ExitCode.REPRODUCED else "not as the answer says: a finding, or a fault"
    elif code is ExitCode.REPRODUCED:
        same = ready.sets[-1] == ready.exercise.found
        yield "solved" if same else f"solved; the lesson's own answer is {ready.exercise.found}"
    else:
        yield "not solved: another knob, or another value"


def next_exercise(ready: Ready, folder: Path, code: ExitCode) -> str:
    """Return the next step: the next exercise, the same one again, or why an open one was not solved."""
    if code is ExitCode.INCONCLUSIVE:
        called = f"{ready.place.named}/{ready.number}"
        turned = {"SET": " ".join(ready.sets)} if ready.exercise.is_open else {}
        return f"next, once more: {command_hints.make_command_here('exercise', {'EXERCISE': called, **turned})}"
    if code is not ExitCode.REPRODUCED:
        return next_steps.after_run(folder)
    count = len(load_exercises(ready.place))
    if ready.number < count:
        following = command_hints.make_command_here("exercise", {"EXERCISE": f"{ready.place.named}/{ready.number + 1}"})
        return f"next exercise: {following}"
    return f"next, another lesson: {command_hints.make_command_here('list', {})}"
