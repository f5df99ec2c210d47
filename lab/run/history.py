"""The last seconds of a live figure, and how they are drawn in a line."""

from __future__ import annotations

from collections.abc import Sequence

SECONDS_KEPT = 60
_US_PER_S = 1_000_000
_BARS = "▁▂▃▄▅▆▇█"


class History:
    """One value for each second, by the writer's clock; a second in which nothing was written has none.

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

    @property
    def newest(self) -> int:
        """The last second of which there is a reading, Unix epoch; 0 if there is none."""
        return max(self._seconds, default=0)

    def last(self, count: int, until: int) -> list[float | None]:
        """Give so many seconds, up to one of them; None where there was no reading."""
        return [self._seconds.get(second) for second in range(until - count + 1, until + 1)]

    @property
    def per_second(self) -> float:
        """What the last second that is over came to; the newest is still being written."""
        return self._seconds.get(self.newest - 1, 0)


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
