"""The arms of a scenario as a plan: one axis named `arm`, whose levels are the scenario's variants."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from analysis import figures
from analysis.compare import arm_predictions
from analysis.expressions import ExpressionError
from analysis.expressions.values import Kind
from formats.series import Axis, Level
from lab.errors import BadInput, Gathered, Problem
from lab.reading.document import Document, Location
from lab.reading.validation_messages import did_you_mean
from lab.scenarios import overrides
from lab.scenarios.model import Arms
from lab.scenarios.overrides import Override, parse_overrides
from lab.scenarios.overrides import parse_settings as read_knobs
from lab.scenarios.predictions import compared_problems, published_problems
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario, Variant
from lab.series.plan import (
    Plan,
    PlannedCell,
    build_cell,
    find_same_cells,
    refuse_user_settings,
    require_duration,
)

PATH = "path"


@dataclass(frozen=True)
class Change:
    """What a level of an axis changes: knobs, the path, or the scenario."""

    overrides: tuple[Override, ...] = ()
    path: tuple[list[str], str] | None = None
    scenario: str | None = None

    @property
    def touched(self) -> dict[str, str]:
        """Return what it changes, and where that stands."""
        places = {one.knob: one.where for one in self.overrides}
        return places | ({PATH: self.path[1]} if self.path else {})

    def under(self, overrides: Iterable[Override]) -> Self:
        """Return the change with these over it: what both set, they set."""
        over = tuple(overrides)
        knobs = {one.knob for one in over}
        return replace(self, overrides=(*(one for one in self.overrides if one.knob not in knobs), *over))


def locate_settings(values: Mapping[str, Any], document: Document, location: Location) -> dict[str, str]:
    """Return the place to cite for each of the settings in the mapping at `location`."""
    return {name: document.where((*location, name)) for name in values}


def read_change(values: Mapping[str, Any], where: Mapping[str, str]) -> Change:
    """Read settings: knobs, and maybe `path`, with the place to cite for each.

    Raises:
        BadInput: an unknown knob, or a list where a value is wanted.
    """
    knobs = {name: value for name, value in values.items() if name != PATH}
    for name, value in knobs.items():
        if not isinstance(value, bool | int | float | str):
            raise BadInput(Problem(f"{name} takes one value here", where[name]))
    path = values.get(PATH)
    if path is not None and not isinstance(path, list):
        raise BadInput(Problem("path takes a list of roles, such as [k6, backend]", where[PATH]))
    return Change(tuple(read_knobs(knobs, where)), (path, where[PATH]) if path is not None else None)


AXIS = "arm"


def plan_arms(base: ResolvedScenario, overrides: Iterable[str]) -> Plan:
    """Plan the series of a scenario that has arms, with the user's overrides.

    Raises:
        BadInput: an arm is wrong, does nothing, or contradicts what the user set; or a prediction is.
    """
    arms = base.scenario.arms
    if arms is None:
        raise BadInput(Problem(f"{base.slug} has no arms", base.where("title")))
    user = tuple(overrides)
    gathered = Gathered()
    resolved: dict[str, ResolvedScenario] = {}
    for name in arms.variants:
        with gathered:
            change = _change(base, arms, name)
            refuse_user_settings(user, change.touched, f"the arm '{name}'")
            variant = Variant(change.overrides, change.path, arm=name)
            resolved[name] = resolve(base.place.named, user, variant, base.preset)
    gathered.extend(_names(base, arms))
    gathered.refuse()
    gathered.extend(find_same_cells(resolved, lambda name: base.where("arms", "variants", name)))
    gathered.extend(_comparisons(base, resolved))
    gathered.extend(
        compared_problems(arms.figures, resolved.values(), lambda index: base.where("arms", "figures", index))
    )
    gathered.refuse()
    levels = [
        Level(
            name=name,
            path=one.variant.path and list(one.scenario.path),
            knobs={override.knob: one.values[override.knob] for override in one.variant.overrides},
        )
        for name, one in resolved.items()
    ]
    planned = Plan(
        kind="arms",
        name=base.slug,
        title=base.scenario.title,
        question=base.scenario.question,
        overrides=user,
        rules=arms,
        axes=(Axis(name=AXIS, levels=levels),),
        cells={name: PlannedCell(build_cell(name, one, {AXIS: name}), one) for name, one in resolved.items()},
        baseline=arms.baseline or next(iter(resolved)),
        predictions=tuple(one.claim() for one in base.scenario.predictions if one.compares_arms),
        request={} if base.preset is None else {"preset": base.preset},
        published=base.scenario.published,
        leaves_open=(base.scenario.claim and base.scenario.claim.caveat) or "",
        figures=tuple(arms.figures),
    )
    require_duration(planned, base.where("arms"))
    return planned


def resolve_variants(base: ResolvedScenario, overrides: Iterable[str] = ()) -> list[ResolvedScenario]:
    """Return a scenario as it is run: each of its arms, which may have a path of its own, or itself where it has none.

    Raises:
        BadInput: as `plan`.
    """
    if base.scenario.arms is None:
        return [base]
    return [planned.resolved for planned in plan_arms(base, overrides).cells.values()]


def resolve_arm(base: ResolvedScenario, overrides: Iterable[str], name: str) -> ResolvedScenario:
    """Return one arm as a scenario of its own; what the user sets goes over what the arm sets.

    Raises:
        BadInput: there is no such arm, or something in it is wrong.
    """
    arms = base.scenario.arms
    if arms is None:
        raise BadInput(Problem(f"{base.slug} has no arms", f"--arm {name}", "leave it out"))
    if name not in arms.variants:
        raise BadInput(_unknown(name, arms.variants, f"--arm {name}"))
    user = tuple(overrides)
    over = {one.knob for one in parse_overrides(user)}
    change = _change(base, arms, name)
    below = tuple(one for one in change.overrides if one.knob not in over)
    return resolve(base.place.named, user, Variant(below, change.path, arm=name), base.preset)


def _change(base: ResolvedScenario, arms: Arms, name: str) -> Change:
    """Read what an arm sets, with what the preset in force makes of it."""
    values = arms.variants[name]
    change = read_change(values, locate_settings(values, base.document, ("arms", "variants", name)))
    if base.preset is None:
        return change
    of_preset = base.scenario.presets[base.preset].arms.get(name, {})
    return change.under(overrides.read_preset(of_preset, base.document, ("presets", base.preset, "arms", name)))


def _names(base: ResolvedScenario, arms: Arms) -> Iterator[Problem]:
    """Check that what names an arm names one of them."""
    if arms.baseline is not None and arms.baseline not in arms.variants:
        yield _unknown(arms.baseline, arms.variants, base.where("arms", "baseline"))
    for index, one in enumerate(base.scenario.predictions):
        where = base.where("predictions", index, "arms")
        if one.arms and one.compares_arms:
            yield Problem(f"prediction '{one.id}' compares arms, so it is not about the runs of some", where)
        for name in one.arms or []:
            if name not in arms.variants:
                yield _unknown(name, arms.variants, where)


def _unknown(name: str, known: Iterable[str], where: str) -> Problem:
    names = list(known)
    return Problem(f"there is no arm '{name}'", where, did_you_mean(name, names) or f"the arms are {', '.join(names)}")


def _comparisons(base: ResolvedScenario, resolved: Mapping[str, ResolvedScenario]) -> Iterator[Problem]:
    """Check that what is said over arms names arms, and figures that these have."""
    scopes = {name: figures.scope(one.roles, one.on_path) for name, one in resolved.items()}
    for index, one in enumerate(base.scenario.predictions):
        if not one.compares_arms:
            continue
        try:
            arm_predictions.check(one.expression, scopes)
        except ExpressionError as error:
            yield Problem(f"prediction '{one.id}': {error}", base.where("predictions", index, "expression"))
    yield from published_problems(
        base, base.scenario.published, partial(arm_predictions.check, arms=scopes, wanted=Kind.NUMBER)
    )
