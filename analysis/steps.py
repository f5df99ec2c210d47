"""How long each step of a command took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_MS_PER_S = 1000


class Steps:
    """The steps that were taken so far.

    Attributes:
        ms: milliseconds of each step by its name, in the order in which they began. `prepare/start` is a part of
            `prepare`; what was done more than once counts together.
    """

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._within: list[str] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what is done in this context, by the monotonic clock; also what does not come to its end."""
        self._within.append(name)
        of = "/".join(self._within)
        before_ms = self.ms.setdefault(of, 0.0)
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.ms[of] = round(before_ms + (time.monotonic() - began_s) * _MS_PER_S, 1)
            self._within.pop()
