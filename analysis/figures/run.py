"""A run as figures see it, and what they share: evidence that must be sound, sums over instances, statistics.

Statistics of times are exact, and the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from weakref import proxy

import numpy as np

from analysis.database import Integers
from analysis.diagnosis import attribution, health, joins, observed
from analysis.diagnosis.health import Evidence, Health, limits
from analysis.diagnosis.identities import IdentityEntry
from analysis.diagnosis.joins import Hop, Joined
from analysis.evidence import window, window_readings
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.evidence.window_readings import Span
from analysis.expressions.values import Number, Unknown, Value, is_number, merge, unknown


@dataclass
class Run:
    """A run: what was read, and how far it can be trusted; evidence that is set aside is not asked for.

    `balanced`: what must be equal on each hop; None until figures.catalogue has computed it.
    """

    raw: RawRun
    set_aside: frozenset[Evidence] = frozenset()
    balanced: dict[Hop, list[IdentityEntry]] | None = field(default=None, init=False, repr=False)

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
            instance: window_readings.find_enclosing_ticks(samples.ticks, window, limits.edge_gap_ms(samples.rate_hz))
            for instance, samples in self.raw.samples.items()
        }

    @property
    def joined_window(self) -> Window | Unknown:
        """The window of what is joined: unlike that of the figures, also of a run that broke off."""
        return window.find_window_of_phases(self.raw.manifest)

    @cached_property
    def joined(self) -> Joined | Unknown:
        """What its observers saw, joined, with the causes of its requests; also of a run that broke off."""
        found = self.joined_window
        if isinstance(found, Unknown):
            return found
        joined = joins.join(self.raw, self.health, found)
        # What the tables wait for must not hold the run: its scratch files end with it.
        attribute = partial(attribution.attribute, proxy(joined), self.raw, self.health, found.start_us)
        joined.make_later(attribute, *attribution.TABLES)
        joined.make_later(partial(observed.build_ledger_of_run, joined.database, self.raw, found), "spans", "ledger")
        return joined

    def without(self, evidence: frozenset[Evidence]) -> Run:
        """Return this run for figures that do not need some evidence."""
        run = copy(self)
        run.set_aside = evidence
        return run

    def observers_to(self, servers: list[str]) -> list[str] | Unknown:
        """Whose captures count the connections to instances of a server role; unknown if nobody's do."""
        role = next((role for role, of in self.raw.manifest.instances.items() if set(servers) & set(of)), None)
        hops = () if isinstance(self.joined, Unknown) else self.joined.hops
        found = [observer for hop in hops if hop.server == role for observer in hop.observers]
        # At the server's end each instance captures its own connections.
        own = [observer for observer in found if observer in servers]
        return own or found or unknown(f"no capture has the connections to {' and '.join(servers) or 'no instance'}")

    def observers_of(self, instance: str) -> list[str] | Unknown:
        """Whose captures count all connections of an instance, to it and from it; unknown if nobody's do."""
        role = next((role for role, of in self.raw.manifest.instances.items() if instance in of), None)
        hops = () if isinstance(self.joined, Unknown) else self.joined.hops
        own = [hop for hop in hops if role in (hop.client, hop.server)]
        missing = [hop for hop in own if not hop.observers]
        if missing or not own:
            return unknown(f"no capture has {' and '.join(map(str, missing)) or instance}")
        return list(dict.fromkeys(observer for hop in own for observer in hop.observers))

    @property
    def clients(self) -> list[str]:
        """The instances that make the load."""
        return self.raw.manifest.clients

    def instances(self, role: str) -> list[str]:
        """Return the instances that a role's name in a figure stands for: all of the role, or the one of that name."""
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
        names = {health.CLIENT: self.raw.manifest.client}
        spoilt = [
            self.health.spoilt(each, f"{names.get(instrument, instrument)}/{instance}" if instrument else None)
            for each, instrument in evidence.items()
            if each not in self.set_aside
            for instance in instances
        ]
        missing = [each for each in spoilt if each is not None]
        return merge(*missing) if missing else compute(self.raw.window)


def status_bounds(status: str) -> tuple[int, int]:
    """Return the lowest and the highest status that a name means: `404`, or a class such as `4xx`."""
    return int(status.replace("x", "0")), int(status.replace("x", "9"))


def total(values: Iterable[Value]) -> Value:
    """Return the sum over instances, unknown if it is of any of them."""
    return _combine(values, sum)


def greatest(values: Iterable[Value]) -> Value:
    """Return the greatest of any instance, unknown if it is unknown of any."""
    return _combine(values, max)


def _combine(values: Iterable[Value], choose: Callable[[list[Number]], Number]) -> Value:
    found = list(values)
    missing = [value for value in found if isinstance(value, Unknown)]
    return merge(*missing) if missing else choose([value for value in found if is_number(value)])


STATISTICS = ("min", "mean", "p50", "p90", "p95", "p99", "max")


def milliseconds(times_us: Integers) -> tuple[float, ...]:
    """Return the times in ms, ascending."""
    return tuple((np.sort(times_us) / 1000).tolist())


def list_or_statistic(times_us: Integers, found: Mapping[str, str]) -> Value:
    """Return the statistic that a figure's name has, else the whole list, ascending, in ms."""
    return statistic(times_us, found["statistic"]) if "statistic" in found else milliseconds(times_us)


def statistic(times_us: Integers, name: str) -> Value:
    """Return one of STATISTICS, in ms with three decimals; unknown if there is no time to take it from.

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
