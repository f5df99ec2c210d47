"""The plan of a series: its axes, its cells and the order of its runs, all checked before anything starts."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from formats.knob_types import format_duration
from formats.manifest import Guess
from formats.predictions import Claim, Published
from formats.series import Axis, Cell, Kind, Search
from formats.series import ExpectedArm as Chosen
from lab.errors import BadInput, Problem
from lab.scenarios import forecast
from lab.scenarios.model import Series as Rules
from lab.scenarios.overrides import parse_overrides
from lab.scenarios.resolved import ResolvedScenario

# What a run takes besides its load and drain, until the series has measured it: start, stop and analysis.
BESIDES_S = 12.0

_MODEL_FIGURES = (
    *("accept_capacity", "listen_backlog", "syns_per_failed_dial"),
    *("users_served", "users_failed", "listen_drops"),
)


@dataclass(frozen=True)
class PlannedCell:
    """A cell, and what it makes of its scenario."""

    cell: Cell
    resolved: ResolvedScenario


@dataclass(frozen=True)
class Plan:
    """What a series will do.

    Attributes:
        overrides: the user's own, for every cell, as `knob=value`.
        predictions: those about the series as a whole.
        published: figures of the series that stand beside a published experiment.
        leaves_open: what the claims say nothing about of what was published; empty if the scenario does not say.
        figures: those that a comparison of the cells shows first.
        remark: what the user should know before the series begins.
        request: what makes this command the same as another one, besides kind, name and overrides.
        search: what a search looks for; its cells are the two ends, and grow.
        asked_repetitions: whether the user asked for this number of repetitions: a series that is through, and has
            fewer, then gets the others.
    """

    kind: Kind
    name: str
    title: str
    question: str
    overrides: tuple[str, ...]
    rules: Rules
    axes: tuple[Axis, ...]
    cells: Mapping[str, PlannedCell]
    baseline: str | None
    predictions: tuple[Claim, ...] = ()
    published: Published | None = None
    leaves_open: str = ""
    figures: tuple[str, ...] = ()
    remark: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    search: Search | None = None
    asked_repetitions: bool = False

    @property
    def scenarios(self) -> list[str]:
        """Return the scenarios, each once."""
        return list(dict.fromkeys(planned.cell.scenario for planned in self.cells.values()))

    @property
    def roles(self) -> set[str]:
        """Return the lab's roles that take part in some cell."""
        return {
            role for one in self.cells.values() for role in one.cell.path if role not in one.resolved.registry.services
        }

    @property
    def with_services(self) -> list[ResolvedScenario]:
        """Return a cell of each scenario that brings services."""
        return list(
            {
                one.resolved.slug: one.resolved
                for one in self.cells.values()
                if one.resolved.registry.services or one.resolved.scenario.images
            }.values()
        )

    def order(self) -> list[tuple[str, int]]:
        """Return each cell and repetition in the order in which they are run; a search's is not known beforehand."""
        return [] if self.kind == "search" else order_runs(self.cells, self.rules.repetitions, self.rules.seed)

    def expected_s(self) -> float:
        """Estimate how long the whole takes; seconds."""
        planned = [self.cells[cell] for cell, _ in self.order()]
        return sum(
            one.cell.load_s + (one.resolved.scenario.drain + self.rules.cooldown) / 1000 + BESIDES_S for one in planned
        )

    def digest(self) -> str:
        """Return the fingerprint of all that the runs depend on: scenarios, cells and the order's seed.

        How often each cell runs is not among it: to add repetitions changes nothing of the runs that there are.
        """
        cells = {
            name: {
                "scenario": planned.cell.scenario,
                "document": planned.resolved.document.content,
                "path": planned.cell.path,
                "values": dict(planned.resolved.values),
                "predictions": [stated.prediction.model_dump() for stated in planned.resolved.predictions],
            }
            for name, planned in self.cells.items()
        }
        whole = {"cells": cells, "seed": self.rules.seed, "predictions": [one.model_dump() for one in self.predictions]}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def remark_on_arms(scenarios: Iterable[ResolvedScenario]) -> str | None:
    """Return a remark on the scenarios of which a series leaves out the arms; None if there is none."""
    slugs = dict.fromkeys(one.slug for one in scenarios if one.scenario.arms)
    if not slugs:
        return None
    has = "has" if len(slugs) == 1 else "have"
    return f"{' and '.join(slugs)} {has} arms: they are left out here, with what is predicted about them"


def set_repetitions(plan: Plan, times: int | None) -> Plan:
    """Return a plan with as many runs of each cell as the user asked for; as it is where they did not say.

    Raises:
        BadInput: it would take longer than its budget.
    """
    if times is None:
        return plan
    asked = replace(plan, rules=plan.rules.model_copy(update={"repetitions": times}), asked_repetitions=True)
    require_duration(asked, f"--repetitions {times}")
    return asked


def require_duration(plan: Plan, where: str) -> None:
    """Refuse a plan that is expected to take longer than its budget.

    Raises:
        BadInput: with both times.
    """
    budget_ms, expected_s = plan.rules.budget.duration, plan.expected_s()
    if expected_s * 1000 > budget_ms:
        runs = len(plan.order())
        what = f"{runs:,} runs are expected to take {expected_s / 60:,.0f} min, and the budget is"
        hint = "take cells or repetitions away, or raise budget.duration"
        raise BadInput(Problem(f"{what} {format_duration(budget_ms)}", where, hint))


def build_cell(name: str, resolved: ResolvedScenario, levels: Mapping[str, str]) -> Cell:
    """Describe a cell as series.json has it."""
    known = forecast.known_before_run(resolved, [f"model.{figure}" for figure in _MODEL_FIGURES])
    return Cell(
        cell=name,
        scenario=resolved.slug,
        levels=dict(levels),
        path=list(resolved.scenario.path),
        knobs={one.knob: resolved.values[one.knob] for one in resolved.overrides},
        load_s=forecast.minimum_load_s(resolved),
        model={figure.removeprefix("model."): value for figure, value in known.items()},
    )


def slugify(text: str) -> str:
    """Write a level's or an axis's name as part of a cell's: small letters, digits and hyphens."""
    spelled = {'""': "empty", "-1": "unlimited"}.get(text, text)
    return re.sub(r"[^a-z0-9]+", "-", spelled.lower()).strip("-")


def short_names(axes: Sequence[str]) -> dict[str, str]:
    """Return each axis the shortest name that tells it from the others: a knob's last part, or the whole."""
    last = {axis: slugify(axis.rpartition(".")[2]) for axis in axes}
    return {axis: last[axis] if list(last.values()).count(last[axis]) == 1 else slugify(axis) for axis in axes}


def order_runs(cells: Iterable[str], repetitions: int, seed: int) -> list[tuple[str, int]]:
    """Return each cell and repetition (from 1) in the order in which they are run.

    Each repetition is a block with every cell once, so that a drift of the machine meets all cells alike. Within it
    the cells stand in the order of SHA-256 of `seed:repetition:cell`: the same on every machine, for every version of
    every library.
    """
    named = list(cells)
    places: list[tuple[str, int]] = []
    for repetition in range(1, repetitions + 1):
        ranks = {cell: hashlib.sha256(f"{seed}:{repetition}:{cell}".encode()).digest() for cell in named}
        places += [(cell, repetition) for cell in sorted(named, key=ranks.__getitem__)]
    return places


def refuse_user_settings(overrides: Iterable[str], touched: Mapping[str, str], by: str) -> None:
    """Refuse a knob that the user sets for all cells although it is what tells them apart.

    Raises:
        BadInput: there is such a knob.
    """
    problems = [
        Problem(f"{one.knob} is set by {by} ({touched[one.knob]})", one.where, "leave one of the two out")
        for one in parse_overrides(overrides)
        if one.knob in touched
    ]
    if problems:
        raise BadInput(problems)


def find_same_cells(cells: Mapping[str, ResolvedScenario], where: Callable[[str], str]) -> Iterator[Problem]:
    """Yield a problem for each cell that is the same as an earlier one: both would measure one thing."""
    seen: dict[object, str] = {}
    for name, one in cells.items():
        key = (one.slug, tuple(one.scenario.path), tuple(sorted(one.values.items())))
        if key in seen:
            yield Problem(f"'{name}' and '{seen[key]}' are the same: every knob has the same value", where(name))
        seen.setdefault(key, name)


@dataclass
class Answers:
    """Questions, and what somebody answered.

    Attributes:
        of_arm: the guesses about its runs, by the arm's name; None for a scenario without arms.
        chosen: in a series, those about arms beside each other.
    """

    of_arm: dict[str | None, list[Guess]] = field(default_factory=dict)
    chosen: list[Chosen] = field(default_factory=list)

    @property
    def about_runs(self) -> list[Guess]:
        """Return the guesses about runs, of every arm."""
        return [guess for found in self.of_arm.values() for guess in found]

    @property
    def given(self) -> int:
        """Return how many questions were answered."""
        values = [*(guess.value for guess in self.about_runs), *(one.value for one in self.chosen)]
        return sum(value is not None for value in values)
