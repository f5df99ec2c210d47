"""What is known of a prediction's names before the run: the knobs."""

from __future__ import annotations

from lab.effective import Effective
from lab.knobs import KnobValue
from lab.scenario import Prediction


def names_in(prediction: Prediction) -> list[str]:
    """Give the names in a prediction's expression, each once."""
    from analysis import expressions  # noqa: PLC0415 # loaded by the commands that read predictions

    return list(expressions.parse(prediction.expression).names)


def values_before_run(effective: Effective) -> dict[str, KnobValue]:
    """Give the values that do not depend on measurements."""
    return dict(effective.values)
