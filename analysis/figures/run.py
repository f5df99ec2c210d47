"""A run as figures see it, and what they share: evidence that must be sound, sums and maxima over instances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analysis import health, limits, timeline
from analysis.health import Evidence, Health
from analysis.values import Number, Unknown, Value, is_number, merge, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analysis.rawrun import RawRun
    from analysis.timeline import Span
    from analysis.window import Window


@dataclass
class Run:
    """A run: what was read, and how far it can be trusted."""

    raw: RawRun

    @cached_property
    def health(self) -> Health:
        """Its instruments."""
        return health.examine(self.raw)

    @cached_property
    def spans(self) -> dict[str, Span | Unknown]:
        """The ticks of each instance that enclose the window."""
        if isinstance(self.raw.window, Unknown):
            return dict.fromkeys(self.raw.samples, self.raw.window)
        window = self.raw.window
        return {
            instance: timeline.enclose(samples.ticks, window, limits.edge_gap_ms(samples.rate_hz))
            for instance, samples in self.raw.samples.items()
        }

    @property
    def k6(self) -> list[str]:
        """The instances of k6."""
        return self.raw.manifest.of_role("k6")

    def instances(self, role: str) -> list[str]:
        """The instances that a role's name in a figure stands for: all of the role, or the one of that name."""
        instances = self.raw.manifest.of_role(role)
        return instances or [each for each in self.raw.instances if each.replace("-", "_") == role]

    def resting_on(
        self, instances: list[str], evidence: dict[Evidence, str], compute: Callable[[Window], Value]
    ) -> Value:
        """Compute a value if the evidence for it is sound, else say why it is not.

        Args:
            instances: whose evidence it is.
            evidence: what it rests on → which instrument of an instance gives it, as `sampler`; an empty text for
                what is one for the run.
            compute: gives the value, from the window.
        """
        if isinstance(self.raw.window, Unknown):
            return self.raw.window
        if not instances:
            return unknown("the manifest names no such instance")
        spoilt = [
            self.health.spoilt(each, f"{instrument}/{instance}" if instrument else None)
            for each, instrument in evidence.items()
            for instance in instances
        ]
        missing = [each for each in spoilt if each is not None]
        return merge(*missing) if missing else compute(self.raw.window)


def total(values: Iterable[Value]) -> Value:
    """The sum over instances, unknown if it is of any of them."""
    return _combine(values, sum)


def greatest(values: Iterable[Value]) -> Value:
    """The greatest of any instance, unknown if it is unknown of any."""
    return _combine(values, max)


def _combine(values: Iterable[Value], choose: Callable[[list[Number]], Number]) -> Value:
    found = list(values)
    missing = [value for value in found if isinstance(value, Unknown)]
    return merge(*missing) if missing else choose([value for value in found if is_number(value)])
