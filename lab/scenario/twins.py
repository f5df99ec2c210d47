"""The healthy twins of scenarios: where a signal must not show, and whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.errors import Problem
from lab.reading.nearest import did_you_mean
from lab.scenario.effective import Effective


def problems(effective: Effective) -> Iterator[Problem]:
    """Give what is wrong with a scenario's own twin; what is said of another one is for `lacking`."""
    twin, arms = effective.scenario.twin, effective.scenario.arms
    if twin is None:
        return
    if bool(twin.scenario) == bool(twin.clean) or (twin.scenario and twin.arm):
        what = "a twin names either another scenario, or predictions that are true without the fault"
        way_on = "write 'scenario' alone, or 'clean', with 'arm' if the scenario has arms"
        yield Problem(what, effective.where("twin"), way_on)
        return
    if twin.scenario:
        return
    names = list(arms.variants) if arms else []
    if twin.arm not in names if names else twin.arm:
        what = (
            f"the scenario has arms, so its twin is one of {', '.join(names)}" if names else "the scenario has no arms"
        )
        yield Problem(what, effective.where("twin", *(["arm"] if twin.arm else [])))
        return
    predictions = {one.id: one for one in effective.scenario.predictions}
    for index, name in enumerate(twin.clean):
        where = effective.where("twin", "clean", index)
        if name not in predictions:
            yield Problem(f"no prediction is named '{name}'", where, did_you_mean(name, predictions))
        elif not predictions[name].judges(twin.arm):
            about = f"the runs of {twin.arm}" if twin.arm else "a run"
            yield Problem(f"prediction '{name}' is not about {about}", where)


def lacking(catalogue: Mapping[str, Effective]) -> Iterator[Problem]:
    """Give each scenario of a catalogue whose twin is in a scenario that has none."""
    for effective in catalogue.values():
        twin = effective.scenario.twin
        if twin is None or twin.scenario is None:
            continue
        where = effective.where("twin", "scenario")
        if twin.scenario not in catalogue:
            what = f"there is no scenario '{twin.scenario}'"
            yield Problem(what, where, did_you_mean(twin.scenario, catalogue))
        elif (own := catalogue[twin.scenario].scenario.twin) is None or own.scenario:
            yield Problem(f"{twin.scenario} does not say what is clean in it", where, "name a scenario that does")


def resolved(
    effective: Effective, catalogue: Mapping[str, Effective]
) -> tuple[Effective, str | None, list[str]] | None:
    """Give the scenario in which a scenario's twin is, its arm, and its predictions as verdicts name them.

    None where there is no twin.
    """
    twin = effective.scenario.twin
    if twin is None:
        return None
    where = catalogue[twin.scenario] if twin.scenario else effective
    own = where.scenario.twin or twin
    return where, own.arm, [f"{own.arm}/{name}" if own.arm else name for name in own.clean]
