"""Searches: for the smallest or largest value of a knob for which an expression holds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from analysis.expressions import ExpressionError, parse
from analysis.expressions.values import Value, unknown
from analysis.verdicts import predictions
from formats.knob_types import format_knob_value, parse_duration
from formats.predictions import Truth
from formats.series import Axis, Level, PlannedRun, Search
from lab.errors import BadInput, Gathered, Problem
from lab.scenarios import forecast
from lab.scenarios.model import Series as Rules
from lab.scenarios.overrides import may_be_knob, nearest_knob, parse_overrides
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.series.bisect import Done, Range, decide
from lab.series.executor import Executor
from lab.series.plan import Plan, PlannedCell, build_cell, remark_on_arms, short_names, slugify

_STEP_MS = 100
# By the model, the last value for which an expression holds, and its neighbour for which it does not.
Border = tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """What the user asks for; the numbers are text, because the knob says how they are read.

    Attributes:
        low, high: the range; None: around what the model says.
        step: how near the two sides of the border must come; None: 1, or 100 ms for a duration.
        confirm: runs at each of the two.
    """

    scenario: str
    knob: str
    until: str
    low: str | None = None
    high: str | None = None
    step: str | None = None
    confirm: int = 2


class _Knob:
    """The knob that is moved: its values as whole numbers, durations in ms."""

    def __init__(self, asked: Asked, user: tuple[str, ...]) -> None:
        self.name = asked.knob
        self._scenario, self._user = asked.scenario, user
        self.base = resolve(asked.scenario, user)
        known = self.base.registry.knobs
        self.unit = known[self.name].unit if self.name in known else None
        value = self.base.values.get(self.name)
        self.value = value if isinstance(value, int) and not isinstance(value, bool) else None

    def at(self, value: int) -> ResolvedScenario:
        """Return the scenario with a value of the knob; BadInput if it cannot have it."""
        return resolve(self._scenario, (*self._user, f"{self.name}={self.text(value)}"))

    def text(self, value: int) -> str:
        """Write a value as an override takes it."""
        return format_knob_value(value, self.unit)

    def read(self, option: str, text: str) -> int:
        """Read a value that the user gave."""
        try:
            return parse_duration(text) if self.unit == "ms" else int(text)
        except ValueError as error:
            what = str(error) if self.unit else f"'{text}' is not a whole number"
            raise BadInput(Problem(what, f"--{option} {text}")) from None


@dataclass(frozen=True)
class SearchPlan:
    """A search that is ready to run."""

    plan: Plan
    within: Range
    knob: _Knob
    until: str

    def places(self, executor: Executor) -> Iterator[PlannedRun]:
        """Yield what to run next until the search is at its end; what came out is then in series.json."""
        series = executor.series
        for place in [place for place in series.runs if place.status != "complete"]:
            (cell,) = [cell for cell in series.cells if cell.cell == place.cell]
            executor.cells[place.cell] = self.knob.at(int(cell.knobs[self.knob.name]))
            yield place
        decision = decide(self.within, self._seen(executor))
        while isinstance(decision, int):
            yield self._place(executor, decision)
            decision = decide(self.within, self._seen(executor))
        if series.search:
            series.search.outcome, series.search.goal = decision.outcome, decision.goal
            series.search.found, series.search.why = decision.found, decision.why

    def _seen(self, executor: Executor) -> dict[int, list[Truth]]:
        values = {cell.cell: int(cell.knobs[self.knob.name]) for cell in executor.series.cells}
        seen: dict[int, list[Truth]] = {}
        for place in executor.series.runs:
            if place.holds is None:
                place.holds = executor.holds(place, self.until)
            seen.setdefault(values[place.cell], []).append(place.holds)
        return seen

    def _place(self, executor: Executor, value: int) -> PlannedRun:
        """Append a run of a value, and its cell if it is the first."""
        series = executor.series
        planned = _planned(self.knob, value)
        name = planned.cell.cell
        executor.cells[name] = planned.resolved
        if name not in [cell.cell for cell in series.cells]:
            series.cells.append(planned.cell)
            series.axes[0].levels.append(_level(planned, self.knob))
        repetition = 1 + sum(place.cell == name for place in series.runs)
        series.runs.append(PlannedRun(cell=name, repetition=repetition))
        return series.runs[-1]


def plan_search(asked: Asked, overrides: Iterable[str] = ()) -> SearchPlan:
    """Plan a search.

    Raises:
        BadInput: the knob is none that can be searched, the expression cannot be judged, an end of the range cannot be
            run, or there is no range and the model knows none.
    """
    user = tuple(overrides)
    knob = _knob(asked, user)
    step = knob.read("step", asked.step) if asked.step else (_STEP_MS if knob.unit else 1)
    if step < 1 or asked.confirm < 1:
        raise BadInput(Problem("a search needs a step and a number of confirming runs of at least 1"))
    _check_expression(asked.until, knob)
    border = find_border(asked.until, knob.at, knob.value or 1, step)
    low, high = _ends(asked, knob, border)
    gathered = Gathered()
    cells: dict[str, PlannedCell] = {}
    for value in (low, high):
        with gathered:
            planned = _planned(knob, value)
            cells[planned.cell.cell] = planned
    gathered.refuse()
    base = knob.at(low).scenario
    search = Search(
        knob=knob.name,
        unit=knob.unit,
        until=asked.until,
        low=low,
        high=high,
        step=step,
        confirm=asked.confirm,
        predicted=border[0] if border else None,
    )
    whole = Plan(
        kind="search",
        name=knob.base.slug,
        title=base.title,
        question=f"At which {knob.name} does it begin, or cease, to hold that {asked.until}?",
        overrides=user,
        rules=Rules(),
        axes=(Axis(name=knob.name, levels=[_level(planned, knob) for planned in cells.values()]),),
        cells=cells,
        baseline=None,
        request=search.model_dump(include={"knob", "until", "low", "high", "step", "confirm"}),
        search=search,
        remark=remark_on_arms([knob.base]),
    )
    return SearchPlan(whole, Range(low, high, step, asked.confirm, border or ()), knob, asked.until)


def _knob(asked: Asked, user: tuple[str, ...]) -> _Knob:
    where = f"--knob {asked.knob}" if asked.knob else None
    if not asked.knob or not asked.until:
        raise BadInput(Problem("a search takes a knob and an expression", hint="such as KNOB=load.users CONDITION='…'"))
    if not may_be_knob(asked.knob) and not asked.knob.startswith("kernel."):
        raise BadInput(Problem(f"unknown knob '{asked.knob}'", where, nearest_knob(asked.knob)))
    for one in parse_overrides(user):
        if one.knob == asked.knob:
            raise BadInput(Problem(f"{asked.knob} is what the search moves", one.where, "leave it out"))
    knob = _Knob(asked, user)
    if asked.knob not in knob.base.values and not asked.knob.startswith("kernel."):
        raise BadInput(
            Problem(f"unknown knob '{asked.knob}'", where, nearest_knob(asked.knob, knob.base.registry.knobs))
        )
    if knob.value is None and not (asked.knob.startswith("kernel.") and asked.low and asked.high):
        needs = "a sysctl needs FROM and TO" if asked.knob.startswith("kernel.") else "it has no numbers to search"
        raise BadInput(Problem(f"{asked.knob} cannot be searched so: {needs}", where))
    return knob


def _check_expression(until: str, knob: _Knob) -> None:
    resolved = knob.base
    try:
        predictions.check(until, resolved.roles, resolved.on_path)
    except ExpressionError as error:
        raise BadInput(Problem(str(error), f"--condition '{until}'")) from None


def _ends(asked: Asked, knob: _Knob, border: Border | None) -> tuple[int, int]:
    low = knob.read("from", asked.low) if asked.low else None
    high = knob.read("to", asked.high) if asked.high else None
    if (low is None or high is None) and border is None:
        what = f"the model does not say where to look for the border of '{asked.until}'"
        raise BadInput(Problem(what, hint="give the range: FROM=<least> TO=<greatest> (--from, --to)"))
    if border is not None:
        low = max(1, border[0] // 2) if low is None else low
        high = border[0] * 2 if high is None else high
    if low is None or high is None or low >= high:
        raise BadInput(Problem(f"the range from {low} to {high} holds nothing to search"))
    return low, high


def _planned(knob: _Knob, value: int) -> PlannedCell:
    resolved = knob.at(value)
    shown = format_knob_value(resolved.values[knob.name], knob.unit)
    name = f"{short_names([knob.name])[knob.name]}-{slugify(shown)}"
    return PlannedCell(build_cell(name, resolved, {knob.name: shown}), resolved)


def _level(planned: PlannedCell, knob: _Knob) -> Level:
    return Level(name=planned.cell.levels[knob.name], knobs={knob.name: planned.resolved.values[knob.name]})


# What each measured figure is in the model. A user of one call is one request, and one dial.
_OF_USERS = {
    "client.users.served": "model.users_served",
    "client.users.failed": "model.users_failed",
    "client.dials.failed": "model.users_failed",
    "kernel.backend.TcpExt.ListenOverflows": "model.listen_drops",
    "kernel.backend.TcpExt.ListenDrops": "model.listen_drops",
}
_OF_REQUESTS = {"client.requests.ok": "model.users_served", "client.requests.failed": "model.users_failed"}
_VALUE_MAX = 1_000_000


def find_border(until: str, at: Callable[[int], ResolvedScenario], start: int, step: int) -> Border | None:
    """Find where, by the model, the expression begins or ceases to hold; None where the model does not say.

    `at` gives the configuration with a value of the knob, or BadInput beyond its range; it looks from `start` both
    ways.
    """

    def holds(value: int) -> Truth:
        try:
            return _holds(until, at(value))
        except BadInput:
            return "unknown"

    here = holds(start)
    if here == "unknown":
        return None
    for other in _further(start):
        there = holds(other)
        if there not in (here, "unknown"):
            return _between(holds, {start: here, other: there}, step)
    return None


def _further(start: int) -> list[int]:
    """Return values ever further from `start`, upwards and downwards in turn."""
    up, down, further = start, start, []
    while up < _VALUE_MAX or down > 1:
        up, down = up * 2, down // 2
        further += [value for value in (up, down) if 1 <= value <= _VALUE_MAX]
    return further


def _between(holds: Callable[[int], Truth], ends: dict[int, Truth], step: int) -> Border | None:
    seen = {value: [status] for value, status in ends.items()}
    within = Range(min(ends), max(ends), step, confirm=1)
    while True:
        decision = decide(within, seen)
        if isinstance(decision, Done):
            break
        status = holds(decision)
        if status == "unknown":
            return None
        seen[decision] = [status]
    found = decision.found
    if found is None:
        return None
    failing = [value for value, outcomes in seen.items() if outcomes == ["false"]]
    return found, min(failing, key=lambda value: abs(value - found))


def _holds(until: str, resolved: ResolvedScenario) -> Truth:
    load = resolved.scenario.knobs.load
    one_call = load.workload == "users" and load.calls == 1
    # A user that fails in long_polling comes again, so its requests are not the model's users; that some fail is.
    no_failure = load.workload == "long_polling"
    counterparts = _OF_USERS | (_OF_REQUESTS if one_call else {})
    expression = parse(until)
    names = {name: counterparts.get(name, name) for name in expression.names}
    if no_failure and "client.requests.failed" in names:
        names["client.requests.failed"] = "model.users_failed"
    known = forecast.values_before_run(resolved, set(names.values()))

    def value(name: str) -> Value:
        return known.get(names[name], unknown("the model does not say"))

    answer = expression.evaluate(value)
    return ("true" if answer else "false") if isinstance(answer, bool) else "unknown"
