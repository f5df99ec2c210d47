"""What somebody expected of a run before it, beside what was measured: right, near, or off."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from analysis.expressions.values import Number, is_number
from analysis.formatting import format_ms, format_number
from formats.manifest import Guess

Mark = Literal["right", "near", "off", "skipped", "unknown"]

# A guess within a tenth of a duration or a share shows understanding.
_RIGHT = 0.10
_NEAR = 0.25
# What is measured; all else is counted, and counted exactly.
_CONTINUOUS = ("ms", "%", "MiB", "requests/s")
_DIGITS = 4
# A count has all of its digits, and so has the middle of two counts.
_EXACT_DIGITS = 15


@dataclass(frozen=True)
class GuessOutcome:
    """One question, its answer, None if it was passed over, and what came out, None if the evidence does not give it.

    Attributes:
        mark: how near the one is to the other.
        remark: how they relate, or why there is nothing to compare.
        says: the prediction that the question was taken from.
    """

    asks: str
    unit: str
    guess: Number | None
    measured: Number | None
    mark: Mark
    remark: str
    says: str


def score_guesses(asked: Sequence[Guess], verdict: Mapping[str, Any], figures: Mapping[str, Any]) -> list[GuessOutcome]:
    """Set each guess of a run beside the figure that it is about.

    Returns:
        One outcome for each question, in their order; none if nobody was asked.
    """
    judged = {one["id"]: one for one in verdict["predictions"]}
    return list(_outcomes(asked, judged, figures))


def _outcomes(asked: Sequence[Guess], judged: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[GuessOutcome]:
    for each in asked:
        prediction, name = judged.get(each.prediction, {}), each.figure
        # A figure with a number in its name, as of one status, stands in the verdict alone.
        value = prediction.get("measured", {}).get(name, figures["figures"].get(name))
        measured = value if is_number(value) else None
        why = figures["why"].get(name) or prediction.get("why") or "the evidence does not give it"
        mark, remark = compare(each.value, measured, each.unit, why)
        says = str(prediction.get("description", ""))
        yield GuessOutcome(each.asks, each.unit, each.value, measured, mark, remark, says)


def compare(guess: Number | None, measured: Number | None, unit: str, why: str) -> tuple[Mark, str]:
    """Return how near a guess came; `why`: the measured value is unknown.

    A count has to be met exactly, what is measured to a tenth; a quarter, or one more or less, is near.
    """
    if guess is None:
        return "skipped", "passed over"
    if measured is None:
        return "unknown", f"not known: {why}"
    distance = abs(guess - measured)
    exact = not unit.startswith(_CONTINUOUS)
    if distance == 0 or (not exact and distance <= _RIGHT * abs(measured)):
        return "right", "" if distance == 0 else "as near as can be told"
    if 0 in (guess, measured):
        return "off", "there were some" if measured else "there were none"
    if distance <= _NEAR * abs(measured) or (exact and distance <= 1):
        return "near", f"{format_number(distance)} {'too many' if guess > measured else 'too few'}" if exact else ""
    if guess * measured < 0:
        return "off", ""
    more, less = sorted((abs(guess), abs(measured)), reverse=True)
    times = f"{format_number(more / less)} times"
    return "off", f"{times} your number" if abs(measured) > abs(guess) else f"your number is {times} that"


def written(value: Number, unit: str) -> str:
    """Return a number with its unit, as a reader takes it in; longer durations in seconds."""
    if unit == "ms" and abs(value) >= 1000:  # noqa: PLR2004  ms in a second
        return format_ms(value)
    return (
        f"{format_number(value, _DIGITS)} {unit}"
        if unit.startswith(_CONTINUOUS)
        else format_number(value, _EXACT_DIGITS)
    )
