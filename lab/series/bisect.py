"""Where a search looks next: computed from the outcomes so far alone, so that a search resumes like any series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from formats.predictions import Truth
from formats.series import Outcome

Goal = Literal["smallest", "largest"]

# A value that so many runs leave undecided is given up.
_UNDECIDED_MAX = 3


@dataclass(frozen=True)
class Range:
    """Where to look, and how closely.

    Attributes:
        step: how near the value that holds and the one that fails must come.
        confirm: decided runs at each of these two.
        hints: values to look at first, such as the model's.
    """

    low: int
    high: int
    step: int
    confirm: int
    hints: tuple[int, ...] = ()


@dataclass(frozen=True)
class Done:
    """There is nothing more to run."""

    outcome: Outcome
    goal: Goal | None = None
    found: int | None = None
    why: str | None = None


def decide(within: Range, seen: Mapping[int, Sequence[Truth]]) -> int | Done:
    """Return the value to run next, or that there is nothing more to run.

    A value fails if it failed in any of its runs, and holds if it held in all that decided. Every value below the
    border must be of one kind and every value above it of the other.
    """
    for value, outcomes in seen.items():
        if set(outcomes) <= {"unknown"}:
            if len(outcomes) >= _UNDECIDED_MAX:
                return Done("inconclusive", why=f"{len(outcomes)} runs at {value} decided nothing")
            return value
    fails = sorted(value for value, outcomes in seen.items() if "false" in outcomes)
    holds = sorted(value for value in seen if value not in fails)
    for value in (*within.hints, within.high, within.low):
        between = _is_open(value, holds, fails) and within.low <= value <= within.high
        if value not in seen and between and (value in within.hints or not (holds and fails)):
            return value
    if not fails:
        return Done("holds-everywhere", why=f"it holds from {within.low} to {within.high}")
    if not holds:
        return Done("holds-nowhere", why=f"it fails from {within.low} to {within.high}")
    if max(fails) < min(holds):
        return _close_in(within, seen, "smallest", held=min(holds), failed=max(fails))
    if max(holds) < min(fails):
        return _close_in(within, seen, "largest", held=max(holds), failed=min(fails))
    why = f"there is no one border: it holds at {_listed(holds)}, and fails at {_listed(fails)}"
    return Done("inconclusive", why=why)


def _is_open(value: int, holds: Sequence[int], fails: Sequence[int]) -> bool:
    """Return whether a value's outcome is not yet implied by those of its neighbours."""
    if not (holds and fails):
        return True
    low, high = (max(fails), min(holds)) if max(fails) < min(holds) else (max(holds), min(fails))
    return low < value < high


def _close_in(within: Range, seen: Mapping[int, Sequence[Truth]], goal: Goal, *, held: int, failed: int) -> int | Done:
    low, high = sorted((held, failed))
    if high - low > within.step:
        return low + (high - low) // 2
    for value in (held, failed):
        decided = [outcome for outcome in seen[value] if outcome != "unknown"]
        if len(decided) < within.confirm:
            if len(seen[value]) - len(decided) >= _UNDECIDED_MAX:
                return Done("inconclusive", goal, why=f"runs at {value} decide nothing")
            return value
    mixed = seen[failed].count("true")
    why = f"at {failed} it held in {mixed} of {len(seen[failed])} runs: the border is not sharp" if mixed else None
    return Done("found", goal, held, why)


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
