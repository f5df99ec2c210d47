"""The last seconds of a live figure, and how they are drawn in a line."""

from __future__ import annotations

from collections.abc import Sequence

SECONDS_KEPT = 60
_US_PER_S = 1_000_000
_BARS = "▁▂▃▄▅▆▇█"


class History:
    """One value for each second, by the clock of whoever wrote it; a second in which nothing was written has none.

    Levels keep their greatest value in a second, what grows is summed up in it.
    """

    def __init__(self, *, grows: bool = False) -> None:
        self._grows = grows
        self._seconds: dict[int, float] = {}

    def add(self, time_us: int, value: float) -> None:
        """Take in a value.

        Args:
            time_us: when it was read, Unix epoch.
            value: a level, or by how much something grew.
        """
        second = time_us // _US_PER_S
        before = self._seconds.get(second, 0)
        self._seconds[second] = before + value if self._grows else max(before, value)
        for old in [one for one in self._seconds if one <= second - SECONDS_KEPT]:
            del self._seconds[old]

    def last(self, count: int) -> list[float | None]:
        """The last seconds, the newest last; None where there was no reading."""
        if not self._seconds:
            return []
        newest, oldest = max(self._seconds), min(self._seconds)
        return [self._seconds.get(second) for second in range(max(newest - count + 1, oldest), newest + 1)]

    @property
    def per_second(self) -> float:
        """What the last second that is over came to; the newest is still being written."""
        return (self.last(2) or [0])[0] or 0


def bars(values: Sequence[float | None], most: float) -> str:
    """Draw values as bars in a line; nothing for none, the lowest for 0 alone.

    Args:
        values: one for each character.
        most: what the highest bar stands for.
    """
    steps = len(_BARS) - 1
    return "".join(
        " " if value is None else _BARS[0 if value <= 0 else max(1, min(steps, round(steps * value / max(most, 1e-9))))]
        for value in values
    )
