"""Fits one clock to another: by how much it is ahead and by how much it drifts, within bounds that events set.

What happened at one machine before something at another sets a bound: the difference of their clocks cannot make the
effect come before its cause. A SYN bounds it from one side, the SYN-ACK from the other. Both clocks are taken to run
evenly. All pairs of offset and drift that meet every bound form a convex polygon: the fit is its middle, and what is
left open is half of its width, at the end of the time where it is wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.database import Integers

_Floats = npt.NDArray[np.float64]

# adjtimex(2) lets nobody make a clock run faster or slower than by this; one that nobody keeps is off by 100 ppm.
DRIFT_MAX = 500e-6

# As many bounds of each side are kept: the tightest of each part of the time.
_PARTS = 512
_STEPS = 1000
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Rate:
    """How one clock stands to another.

    Attributes:
        ahead_us: what the other one shows more at that time.
        drift: what that grows by, in µs for each µs.
    """

    about_us: int
    ahead_us: float
    drift: float

    def more_us(self, time_us: int) -> int:
        """Return what the other clock shows more at a time on this one."""
        return math.floor(self.ahead_us + self.drift * (time_us - self.about_us))

    def sql(self, time_us: str) -> str:
        """Return the other clock's time as SQL, for an expression that is a time on this one."""
        since = f"({time_us} - {self.about_us})"
        return f"({time_us}) + floor('{self.ahead_us!r}'::DOUBLE + '{self.drift!r}'::DOUBLE * {since})::BIGINT"

    def then(self, other: Rate) -> Rate:
        """Return how this clock stands to a third, to which the other one stands like `other`."""
        about_us = self.about_us + self.ahead_us - other.about_us
        ahead_us = self.ahead_us + other.ahead_us + other.drift * about_us
        return Rate(self.about_us, ahead_us, (1 + self.drift) * (1 + other.drift) - 1)

    def inverse(self) -> Rate:
        """Return how the other clock stands to this one."""
        whole_us = round(self.ahead_us)
        drift = 1 / (1 + self.drift) - 1
        return Rate(self.about_us + whole_us, -self.ahead_us + drift * (whole_us - self.ahead_us), drift)


SAME = Rate(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the difference of two clocks: one is `us` ahead at the most, or at the least.

    `times_us` says when, by the clock that is to be fitted.
    """

    times_us: Integers
    us: Integers

    def __len__(self) -> int:
        return len(self.us)


@dataclass(frozen=True, slots=True)
class Fit:
    """How one clock stands to another, as far as is known.

    Attributes:
        rate: the middle of what meets all bounds.
        residual_us: how far that may be off, at any time that the fit is for.
        contradiction_us: by how much the bounds contradict each other: a clock did not run evenly. 0 if they agree.
    """

    rate: Rate
    residual_us: int
    contradiction_us: int


def fit(least: Bounds, most: Bounds, first_us: int, last_us: int) -> Fit | None:
    """Fit one clock to another, for the time from first to last by the clock that is to be fitted.

    The bounds say by how much the other one is ahead at the least and at the most. None if nothing bounds the
    difference, or only from one side.
    """
    if not len(least) or not len(most):
        return None
    base_us = int(np.median(least.us))
    (low_x, low), (high_x, high) = (
        _tightest(each, sign, first_us, base_us) for each, sign in ((least, 1.0), (most, -1.0))
    )
    # What the other clock is ahead of this one at x is `a + drift * x`; for a drift, the bounds of `a`:
    span: tuple[_Floats, _Floats, _Floats, _Floats] = (low_x, low, high_x, high)
    best, gap = _widest(span)
    contradiction = max(0.0, -gap / 2)
    if gap < 0:
        # Twice what makes them agree, so that something is left open.
        span = (low_x, low + gap, high_x, high - gap)
    drifts = np.linspace(_edge(span, best, -DRIFT_MAX), _edge(span, best, DRIFT_MAX), _STEPS)
    lows, highs = _of_drifts(span, drifts)
    length = float(last_us - first_us)
    step = float(drifts[1] - drifts[0]) * length
    ends = [(float(np.min(lows + drifts * x)), float(np.max(highs + drifts * x))) for x in (0.0, length)]
    (begin, end), residual = ((a + b) / 2 for a, b in ends), max((b - a) / 2 for a, b in ends)
    rate = Rate(first_us, base_us + begin, (end - begin) / length if length else 0.0)
    return Fit(rate, math.ceil(residual + step), math.ceil(contradiction))


def _tightest(bounds: Bounds, sign: float, first_us: int, base_us: int) -> tuple[_Floats, _Floats]:
    """Return those bounds that say most, with their times from the first one on."""
    x, us = (bounds.times_us - first_us).astype(np.float64), (bounds.us - base_us).astype(np.float64)
    low, high = float(x.min()), float(x.max())
    parts = np.minimum(((x - low) / max(high - low, 1.0) * _PARTS).astype(np.int64), _PARTS - 1)
    order = np.lexsort((-sign * us, parts))
    kept = order[np.unique(parts[order], return_index=True)[1]]
    return x[kept], us[kept]


def _of_drifts(span: tuple[_Floats, _Floats, _Floats, _Floats], drifts: _Floats) -> tuple[_Floats, _Floats]:
    """Return for each drift the least and the most that the other clock can be ahead at the first time."""
    low_x, low, high_x, high = span
    lows: Any = np.max(low - np.outer(drifts, low_x), axis=1)
    highs: Any = np.min(high - np.outer(drifts, high_x), axis=1)
    return lows, highs


def _widest(span: tuple[_Floats, _Floats, _Floats, _Floats]) -> tuple[float, float]:
    """Return the drift that leaves most open, and how much that is; negative if none meets all bounds."""
    left, right = -DRIFT_MAX, DRIFT_MAX
    best, widest = 0.0, -math.inf
    for _ in range(_ROUNDS):
        drifts = np.linspace(left, right, 21)
        lows, highs = _of_drifts(span, drifts)
        at = int(np.argmax(highs - lows))
        best, widest = float(drifts[at]), float((highs - lows)[at])
        # What is open at a drift is concave: the most lies beside the best of them.
        left, right = float(drifts[max(at - 1, 0)]), float(drifts[min(at + 1, 20)])
    return best, widest


def _edge(span: tuple[_Floats, _Floats, _Floats, _Floats], inside: float, outside: float) -> float:
    """Return the last drift on the way from one that meets all bounds to one that may not."""
    lows, highs = _of_drifts(span, np.array([outside]))
    if highs[0] >= lows[0]:
        return outside
    for _ in range(40):
        middle = (inside + outside) / 2
        lows, highs = _of_drifts(span, np.array([middle]))
        inside, outside = (middle, outside) if highs[0] >= lows[0] else (inside, middle)
    return inside
