"""What was measured between neighbours on the path before the load, over the links that the scenario asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure
from analysis.figures.run import Run
from formats.manifest import RoundTrip

_figure = partial(Figure, source="the manifest: round_trips")


def _worst(read: Callable[[RoundTrip], float | None]) -> Compute:
    """Return the greatest value of the instances that asked an instance of a role."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        there = run.instances(found["role"])
        values = [read(one) for one in run.raw.manifest.round_trips if one.to in there]
        if not values:
            return unknown(f"no link leads to {found['role']}, or from it to the role before it")
        known = [value for value in values if value is not None]
        return max(known) if len(known) == len(values) else unknown("no echo was answered")

    return compute


FIGURES = (
    _figure(
        "link.<role>.round_trip_ms",
        "The median round trip between the role before this one on the path and this one, measured by 1,000 echoes"
        " before the load, where there is a link; of several instances the slowest.",
        _worst(lambda one: None if one.p50_us is None else one.p50_us / 1000),
        unit="ms",
    ),
    _figure(
        "link.<role>.lost_percent",
        "Share of these echoes that got lost, on the way there or back.",
        _worst(lambda one: 100 * (one.sent - one.received) / one.sent if one.sent else None),
        unit="%",
    ),
)
