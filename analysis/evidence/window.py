"""The window: the time whose events a run is about.

It begins with the phase `measure` and ends with the phase `drain`, or with `measure` where there is no drain. The
drain belongs to it because the last timeouts, retransmissions and closes of the load happen there.

A counter's difference over the window is its value at the first tick at or after the window's end, less its value at
the last tick at or before its start. Both ticks lie outside the window, so nothing in it is missed; what they add is
at most health.limits.edge_gap_ms on either side, in phases in which the lab puts on no load. Where a hole in the
samples is longer than that at an edge, the difference is unknown.
"""

from dataclasses import dataclass, replace

from analysis.expressions.values import Unknown, unknown
from formats.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Window:
    """Its edges, Unix epoch in µs; `load_end_us` is the end of the phase `measure`."""

    start_us: int
    load_end_us: int
    end_us: int

    @property
    def edges(self) -> dict[str, int]:
        """Return its start and end, as parameters of a query."""
        return {"start_us": self.start_us, "end_us": self.end_us}


def find_window(manifest: Manifest, apart_us: int = 0) -> Window | Unknown:
    """Return the window of a run; unknown if the run did not complete or its phases are missing.

    It begins as much earlier as the lab's clock may be off, before the load surely did.
    """
    if manifest.status != "complete":
        reason = f": {manifest.reason}" if manifest.reason else ""
        return unknown(f"the run is {manifest.status}, not complete{reason}")
    found = find_window_of_phases(manifest)
    return found if isinstance(found, Unknown) else replace(found, start_us=found.start_us - apart_us)


def find_window_of_phases(manifest: Manifest) -> Window | Unknown:
    """Return the window of a run even if it did not complete; unknown if its phases are missing."""
    measure = manifest.phase("measure")
    if measure is None or measure.end_us is None:
        return unknown("the manifest does not say when the measurement began and ended")
    drain = manifest.phase("drain")
    end_us = measure.end_us if drain is None else drain.end_us
    if end_us is None:
        return unknown("the manifest does not say when the drain ended")
    if not measure.start_us < measure.end_us <= end_us:
        return unknown("the manifest's phases run backwards: the clock was set while the run lasted")
    return Window(measure.start_us, measure.end_us, end_us)
