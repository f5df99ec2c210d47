"""What became different between two groups of runs: every figure, its interval, and whether it is but noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from analysis.compare import intervals, replicates
from analysis.compare.groups import Group
from analysis.compare.intervals import FEWEST_OF_TWO, Interval, Spread
from analysis.compare.replicates import Sample, Values
from analysis.compare.runs import RunRecord
from analysis.figures.catalogue import find


class Stage(StrEnum):
    """Where a figure stands on the way from the cause to the user; the lab's own figures stand beside it."""

    LAB = "lab"
    MODEL = "model"
    COUNTERS = "counters"
    PACKETS = "packets"
    USERS = "users"


class Status(StrEnum):
    """What can be said of a difference."""

    CHANGED = "changed"
    UNCLEAR = "unclear"
    NOISE = "noise"
    EQUAL = "equal"
    UNKNOWN = "unknown"


_STAGES = {"model": Stage.MODEL, "flows": Stage.PACKETS, "ledger": Stage.USERS, "client": Stage.USERS}
# How well the account adds up, which nobody on the way feels.
_OF_THE_LAB = ("ledger.identities.", "ledger.unexplained")


def stage_of(figure: str) -> Stage:
    """Where a figure stands on that way."""
    if figure.startswith(_OF_THE_LAB):
        return Stage.LAB
    return _STAGES.get(figure.partition(".")[0], Stage.COUNTERS)


@dataclass(frozen=True, slots=True)
class Effect:
    """One figure in both groups.

    Attributes:
        figure: its name.
        a, b: its values in each.
        status: what can be said of the difference.
        difference: mean of b less mean of a; None if either is unknown.
        interval: the difference's; None with fewer than two runs in either group.
        standardised: Hedges' g; None where there is no spread.
        noise: by how much two groups of one cell, as large as these, differ at the most; None if not known.
        needed: how many runs of each group would tell a difference as large as this one from none; None where it is
            told, or where there is none.
        why: why the status is unclear or unknown.
    """

    figure: str
    a: Sample
    b: Sample
    status: Status
    difference: float | None = None
    interval: Interval | None = None
    standardised: float | None = None
    noise: float | None = None
    needed: int | None = None
    why: str | None = None

    @property
    def stage(self) -> Stage:
        """Where it stands on the way from the cause to the user."""
        return stage_of(self.figure)

    @property
    def unit(self) -> str:
        """The figure's unit, empty for a count."""
        found = find(self.figure)
        return found[0].unit if found else ""

    @property
    def relative(self) -> float:
        """The difference in parts of the greater mean: 0 none, 1 all of it."""
        greater = max(abs(self.a.mean or 0), abs(self.b.mean or 0))
        return abs(self.difference or 0) / greater if greater else 0.0


def effects(
    a: Group, b: Group, repetitions: Sequence[Sequence[RunRecord]], means: Mapping[Values, Interval]
) -> list[Effect]:
    """Compare every figure of two groups, ordered by stage, then by status, then by the size of the difference.

    Args:
        a: the group to compare with.
        b: the other.
        repetitions: groups of runs of one cell each, which tell how far such runs lie apart.
        means: the intervals of the means of both groups' values.
    """
    pairs = {
        name: (replicates.values(a.used, name), replicates.values(b.used, name)) for name in replicates.names((a, b))
    }
    differences = replicates.difference_intervals(pairs.values())
    found = []
    for name, pair in pairs.items():
        of_a, of_b = (Sample(values, means.get(values)) for values in pair)
        if not all(pair):
            found.append(Effect(name, of_a, of_b, Status.UNKNOWN, why=_why_unknown(name, a, b)))
            continue
        spread = intervals.spread([replicates.values(runs, name) for runs in repetitions])
        found.append(_judge(Effect(name, of_a, of_b, Status.EQUAL), differences.get(pair), spread))
    stages, statuses = list(Stage), list(Status)
    return sorted(
        found,
        key=lambda each: (
            stages.index(each.stage), statuses.index(each.status), -each.relative, -abs(each.difference or 0),
            each.figure,
        ),
    )  # fmt: skip


def _why_unknown(name: str, a: Group, b: Group) -> str:
    for group in (a, b):
        if not group.used:
            return f"{group.name} has no run that is evidence"
        if not replicates.values(group.used, name):
            return group.used[0].why.get(name, f"{group.name} has no such figure")
    raise AssertionError(name)  # pragma: no cover  called only where a group lacks the figure


def _judge(effect: Effect, interval: Interval | None, spread: Spread | None) -> Effect:
    a, b = effect.a.values, effect.b.values
    difference = (effect.b.mean or 0.0) - (effect.a.mean or 0.0)
    if len({*a, *b}) == 1:
        return Effect(effect.figure, effect.a, effect.b, Status.EQUAL, 0.0, interval)
    if effect.stage is Stage.MODEL and len(set(a)) == len(set(b)) == 1:
        # Computed from the settings, so it has no noise.
        return Effect(effect.figure, effect.a, effect.b, Status.CHANGED, difference, interval)
    noise = spread.noise(len(a), len(b)) if spread else None
    status, why = _status(a, b, difference, interval, noise)
    return Effect(
        effect.figure,
        effect.a,
        effect.b,
        status,
        difference,
        interval,
        intervals.standardised(difference, a, b),
        noise,
        None if status is Status.CHANGED else _needed(difference, spread.deviation if spread else None),
        why,
    )


def _status(
    a: Values, b: Values, difference: float, interval: Interval | None, noise: float | None
) -> tuple[Status, str | None]:
    if noise is None:
        return Status.UNCLEAR, "no repetition tells how far runs of one cell lie apart"
    if abs(difference) <= noise:
        return Status.NOISE, None
    # Where every repetition came out the same, there is nothing that further ones would average out.
    exact = min(len(a), len(b)) > 1 and len(set(a)) == len(set(b)) == 1
    if interval is None or not (exact or intervals.suffice(len(a), len(b))):
        return Status.UNCLEAR, f"{len(a)} and {len(b)} runs are too few for an interval"
    if interval.has(0):
        return Status.UNCLEAR, "the interval of the difference includes zero"
    return Status.CHANGED, None


def _needed(difference: float, deviation: float | None) -> int | None:
    if deviation is None:
        return FEWEST_OF_TWO if difference else None
    return intervals.repetitions_needed(difference, deviation)
