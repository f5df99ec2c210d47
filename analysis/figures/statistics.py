"""Statistics of times: exact, and the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.expressions.values import Value, unknown

if TYPE_CHECKING:
    from analysis.evidence.bulk import Integers

STATISTICS = ("min", "mean", "p50", "p90", "p95", "p99", "max")


def milliseconds(times_us: Integers) -> tuple[float, ...]:
    """The times in ms, ascending."""
    return tuple((np.sort(times_us) / 1000).tolist())


def statistic(times_us: Integers, name: str) -> Value:
    """One of STATISTICS, in ms with three decimals; unknown if there is no time to take it from.

    Percentiles lie between the two nearest ranks in proportion, as k6 computes its own.
    """
    if not len(times_us):
        return unknown("there is none to take it from")
    if name == "mean":
        # Integers sum without the rounding that would depend on the order.
        return round(int(times_us.sum()) / len(times_us) / 1000, 3)
    quantile = {"min": 0.0, "max": 100.0}.get(name)
    percent = float(name[1:]) if quantile is None else quantile
    return round(float(np.percentile(times_us, percent)) / 1000, 3)
