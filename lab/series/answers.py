"""What somebody expects of a run, or of a series, before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.run.manifest import Guess
from lab.series.record import ExpectedArm as Chosen


@dataclass
class Answers:
    """What somebody expects.

    Attributes:
        of_arm: the guesses about its runs, by the arm's name; None for a scenario without arms.
        chosen: in a series, those about arms beside each other.
    """

    of_arm: dict[str | None, list[Guess]] = field(default_factory=dict)
    chosen: list[Chosen] = field(default_factory=list)

    @property
    def of_run(self) -> list[Guess]:
        """The guesses about a run that is made alone."""
        return [guess for found in self.of_arm.values() for guess in found]

    @property
    def given(self) -> int:
        """How many questions were answered."""
        values = [*(guess.value for guess in self.of_run), *(one.value for one in self.chosen)]
        return sum(value is not None for value in values)
