"""A drill from its scenario to its score: what was asked for, what was answered, and whether the remedy recovered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis import command_hints
from analysis.formatting import format_ms
from analysis.reports import run_report
from analysis.verdicts.ledger_file import Ledger
from formats.safe_files import read_regular
from lab import paths
from lab.console import next_steps
from lab.errors import BadInput, ExitCode, Problem
from lab.lessons.drill import evidence, faults
from lab.lessons.drill.evidence import MORE, SeenRun
from lab.lessons.drill.faults import CAUSES, PLACES, Drill
from lab.reading.validation_messages import did_you_mean
from lab.runs import run_results
from lab.scenarios.knobs import CATALOGUE, format_knob
from lab.scenarios.network import KEY as NETWORK
from lab.scenarios.overrides import parse_overrides
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario

FILE = "drill.json"

# Dots that divide the name of such a knob; the rest is the name of a sysctl.
_PARTS = {"kernel": 2, NETWORK: 3}

_CAUSE, _PLACE, _RECOVERED, _SPEED = 40, 15, 30, 15
# What reading the given evidence takes.
_BEGIN_MINUTES = 5


class Answer(BaseModel):
    """An answer, and the run that tested its remedy, below results/."""

    model_config = ConfigDict(extra="forbid")

    cause: str
    place: str
    run: str


class DrillState(BaseModel):
    """drill.json: how far a drill is."""

    model_config = ConfigDict(extra="forbid")

    format: Annotated[Literal["connlab.drill/1"], Field(alias="schema")] = "connlab.drill/1"
    seed: int
    level: int
    run: str
    asked: list[str] = Field(default_factory=list)
    remedies: list[str] = Field(default_factory=list)
    answers: list[Answer] = Field(default_factory=list)

    @property
    def minutes(self) -> int:
        """Return what the evidence cost so far."""
        return _BEGIN_MINUTES + sum(MORE[one].minutes for one in self.asked if one in MORE)


class Score(BaseModel):
    """The outcome of an answer; counts are requests."""

    cause_right: bool
    place_right: bool
    failed_before: int
    slow_before: int
    failed_after: int
    slow_after: int
    slowest_after_ms: int
    minutes: int

    @property
    def recovered(self) -> bool:
        """Return whether nobody fails and nobody waits too long any more."""
        return not self.failed_after and not self.slow_after

    @property
    def code(self) -> ExitCode:
        """Return the exit code: solved, or not."""
        return ExitCode.REPRODUCED if self.recovered and self.cause_right else ExitCode.NOT_REPRODUCED

    @property
    def points(self) -> int:
        """Return the score, at most 100."""
        speed = max(0, _SPEED - (self.minutes - _BEGIN_MINUTES))
        return _CAUSE * self.cause_right + _PLACE * self.place_right + self.recovered * (_RECOVERED + speed)


def folder(drill: Drill) -> Path:
    """Return where a drill's scenario and state lie."""
    return paths.RESULTS / "drills" / drill.name


def draw_drill(seed: int, level: int) -> Drill:
    """Draw a drill.

    Raises:
        BadInput: there is no such level.
    """
    if level not in faults.LEVELS:
        raise BadInput(Problem(f"there is no level {level}", hint="LEVEL=1, 2 or 3 (--level)"))
    return faults.draw(seed, level)


def resolve_drill(drill: Drill, sets: Sequence[str] = ()) -> ResolvedScenario:
    """Write the drill's scenario, which names no fault, and resolve it with a remedy.

    Raises:
        BadInput: the remedy is none that can be set.
    """
    home = folder(drill)
    home.mkdir(parents=True, exist_ok=True)
    (home / "scenario.yaml").write_text(scenario_text(drill))
    return resolve(str(home), sets)


def scenario_text(drill: Drill) -> str:
    """Return the drill's scenario.yaml; JSON is YAML, too."""
    by_key = _nested(drill.knobs)
    network = by_key.pop(NETWORK, {})
    return json.dumps(
        {
            "schema": 1,
            "title": f"Incident drill {drill.seed}, level {drill.level}",
            "question": f"Users complain: requests fail, or take longer than {format_ms(drill.fault.promise_ms)}. Why?",
            "path": list(drill.path),
            "knobs": by_key,
            "network": network,
            "drain": "1s",
            "slow": f"{drill.fault.promise_ms}ms",
            "predictions": [
                {
                    "id": "explained",
                    "description": "The ledger explains every request that failed or was slow.",
                    "expression": "ledger.unexplained == 0",
                }
            ],
        },
        indent=1,
    )


def _nested(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Return knobs as a scenario writes them: by group, the kernel's by role, the network's by link."""
    found: dict[str, Any] = {}
    for name, value in knobs.items():
        *groups, last = name.split(".", _PARTS.get(name.partition(".")[0], 1))
        inner = found
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    return found


def load_state(drill: Drill) -> DrillState | None:
    """Return how far a drill is; None if it has not begun.

    Raises:
        BadInput: its state cannot be read, or its run is gone.
    """
    file = folder(drill) / FILE
    if not file.is_file():
        return None
    again = f"remove {paths.shown(file)} to begin it again"
    try:
        state = DrillState.model_validate_json(read_regular(file))
    except (OSError, ValidationError):
        raise BadInput(Problem(f"{paths.shown(file)} does not belong to a drill", hint=again)) from None
    if not all(map(_is_there, (state.run, *(each.run for each in state.answers)))):
        raise BadInput(Problem(f"the run of {drill.name} is gone", hint=again))
    return state


def _is_there(run: str) -> bool:
    path = Path(run)
    return not path.is_absolute() and ".." not in path.parts and (paths.RESULTS / path).is_dir()


def save_state(drill: Drill, state: DrillState) -> None:
    """Write how far a drill is."""
    (folder(drill) / FILE).write_text(state.model_dump_json(by_alias=True, indent=1) + "\n")


def begin(drill: Drill, run: Path) -> DrillState:
    """Begin a drill with its run."""
    state = DrillState(seed=drill.seed, level=drill.level, run=str(run.relative_to(paths.RESULTS)))
    save_state(drill, state)
    return state


def format_evidence(drill: Drill, state: DrillState) -> Iterator[str]:
    """Write what somebody on call has at once, and how to go on."""
    yield f"drill {drill.seed}, level {drill.level}; {' → '.join(drill.path)}; minute {state.minutes}"
    yield f"Users complain: requests fail, or take longer than {format_ms(drill.fault.promise_ms)}."
    yield from evidence.format_pieces(SeenRun(paths.RESULTS / state.run, drill.path), evidence.GIVEN)
    yield from _how(drill)


def _how(drill: Drill) -> Iterator[str]:
    yield "--- what next"
    which = {"SEED": str(drill.seed), "LEVEL": str(drill.level)}
    for name, piece in MORE.items():
        more = command_hints.make_command_here("drill", {**which, "MORE": name})
        yield f"{piece.says}, {piece.minutes} minutes: {more}"
    blank = {"CAUSE": "…", "PLACE": "…", "SET": "<knob>=<value>"}
    yield f"your answer: {command_hints.example_command_here('drill', {**which, **blank})}"
    yield "the causes:"
    yield from (f"  {name}: {fault.says} (in the map: {fault.cause})" for name, fault in CAUSES.items())
    yield f"the places: {', '.join(PLACES)}; docs/map.md leads from a symptom to causes and knobs"


def ask_for_more(drill: Drill, state: DrillState, name: str) -> Iterator[str]:
    """Write a further piece of evidence, for its minutes.

    Raises:
        BadInput: there is no such piece.
    """
    if name not in MORE:
        raise BadInput(Problem(f"there is no evidence '{name}'", hint=did_you_mean(name, MORE) or ", ".join(MORE)))
    if name not in state.asked:
        state.asked.append(name)
        save_state(drill, state)
    run = SeenRun(paths.RESULTS / state.run, drill.path)
    return iter([*evidence.format_pieces(run, {name: MORE[name]}), f"minute {state.minutes}"])


def check_answer(drill: Drill, cause: str, place: str, sets: Sequence[str]) -> None:
    """Refuse an answer that is none.

    Raises:
        BadInput: the cause or the place is not one of those that there are, or there is not one knob for the remedy.
    """
    problems = []
    if cause not in CAUSES:
        problems.append(Problem(f"there is no cause '{cause}'", hint=did_you_mean(cause, CAUSES) or ", ".join(CAUSES)))
    if place not in PLACES:
        problems.append(Problem(f"there is no place '{place}'", hint=did_you_mean(place, PLACES) or ", ".join(PLACES)))
    turned = [one.knob for one in parse_overrides(sets)]
    if len(turned) != 1:
        problems.append(Problem("a remedy is one knob", hint='SET="<knob>=<value>"'))
    problems += [
        Problem(
            f"{knob} belongs to the clients, and is not yours to change",
            hint="turn a knob of a server, a proxy or the network",
        )
        for knob in turned
        if knob.startswith(("load.", "kernel.k6."))
    ]
    if problems:
        raise BadInput(problems)
    resolve_drill(drill, sets)


def resolve_remedy(drill: Drill, state: DrillState, sets: Sequence[str]) -> ResolvedScenario:
    """Record that a remedy was tried, and return the drill's scenario with it."""
    resolved = resolve_drill(drill, sets)
    state.remedies += sets
    save_state(drill, state)
    return resolved


def is_answer(cause: str | None, place: str | None, sets: Sequence[str], more: str | None, seed: int | None) -> bool:
    """Tell an answer from a beginning and from a question.

    Raises:
        BadInput: it is two of them at once, or of no drill.
    """
    answer = cause is not None or place is not None or bool(sets)
    if seed is None and (answer or more):
        raise BadInput(Problem("an answer, or a question, needs its drill", hint="give SEED=<n> (--seed)"))
    if answer and more:
        raise BadInput(Problem("a drill takes either an answer or a question for more evidence"))
    return answer


def record_answer(drill: Drill, state: DrillState, cause: str, place: str, after: Path) -> Answer:
    """Write down an answer, with the run that tested its remedy."""
    state.answers.append(Answer(cause=cause, place=place, run=str(after.relative_to(paths.RESULTS))))
    save_state(drill, state)
    return state.answers[-1]


def judge(drill: Drill, state: DrillState, answer: Answer) -> Score:
    """Judge an answer by the run that tested its remedy.

    Raises:
        BadInput: one of the two runs has no ledger of requests.
    """
    was, now = (_counts(paths.RESULTS / each) for each in (state.run, answer.run))
    return Score(
        cause_right=answer.cause == drill.fault.name,
        place_right=answer.place == drill.fault.place,
        failed_before=was[0],
        slow_before=was[1],
        failed_after=now[0],
        slow_after=now[1],
        slowest_after_ms=SeenRun(paths.RESULTS / answer.run, drill.path).slowest_ms,
        minutes=state.minutes,
    )


def is_solved(drill: Drill, state: DrillState) -> bool:
    """Return whether one of the answers named the cause and recovered.

    Raises:
        BadInput: as `judge`.
    """
    return any(judge(drill, state, each).code is ExitCode.REPRODUCED for each in state.answers)


def _counts(run: Path) -> tuple[int, int]:
    requests = run_results.read_derived(run, Ledger).requests
    if requests is None:
        raise BadInput(Problem(f"{paths.shown(run)} has no ledger", hint="run the remedy again"))
    return requests.failed, requests.slow


def format_score(outcome: Score, cause: str = "", place: str = "") -> Iterator[str]:
    """Write what of an answer was right, with what follows a cause or a place that was not."""
    yield f"cause: {'right' if outcome.cause_right else f'no{cause}'}"
    yield f"place: {'right' if outcome.place_right else f'no{place}'}"
    what = f"{outcome.failed_before} failed → {outcome.failed_after}, {outcome.slow_before} slow → {outcome.slow_after}"
    yield f"remedy: {'recovered' if outcome.recovered else 'not recovered'}: {what}"


def format_result(drill: Drill, state: DrillState, outcome: Score, after: Path) -> Iterator[str]:
    """Write what came of an answer; what the drill was opens with it."""
    fault = drill.fault
    yield from format_score(outcome, f"; it was {fault.name}: {fault.says}", f"; it was {fault.place}")
    if outcome.slow_after and outcome.slowest_after_ms:
        took, promised = format_ms(outcome.slowest_after_ms), format_ms(fault.promise_ms)
        yield f"  the slowest answer took {took}; {promised} were promised"
    yield f"what shows it: {fault.proof}"
    if drill.alarm:
        yield f"harmless: {drill.alarm.says}"
    fixes = (f"{knob}={format_knob(knob, value, CATALOGUE)}" for knob, value in fault.fixes.items())
    yield f"what fixes it: {' or '.join(fixes)}"
    used = ", ".join(state.asked) or "none"
    yield f"minutes: {outcome.minutes}; evidence asked for: {used}; remedies tried: {len(state.remedies)}"
    yield f"score: {outcome.points} of {_CAUSE + _PLACE + _RECOVERED + _SPEED}"
    run = paths.RESULTS / state.run
    yield f"report of the incident: {paths.shown(run / run_report.FILE)}"
    yield f"report of the remedy: {paths.shown(after / run_report.FILE)}"
    if outcome.recovered and outcome.cause_right:
        level = min(drill.level + 1, max(faults.LEVELS))
        yield f"next drill: {command_hints.make_command_here('drill', {'LEVEL': str(level)})}"
    else:
        yield next_steps.after_run(run if outcome.recovered else after)
