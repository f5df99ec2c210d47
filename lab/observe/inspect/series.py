"""The dumps of a host as a series: each has a time, and counters that grow."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from analysis.evidence.flows import Reduction
from lab.observe.inspect.dumps import Snapshot

# A dump that says no time stands so far before the first packet, or behind the last one.
_APART_US = 200_000
_SECOND_US = 1_000_000
# The one of TCP's counters that goes up and down.
_GAUGE = "Tcp.CurrEstab"


def _time(snapshot: Snapshot) -> int:
    return snapshot.time_us or 0


def order_snapshots(snapshots: Sequence[Snapshot], capture: Reduction | None) -> list[Snapshot]:
    """Return a host's snapshots in the order of their times; those that tell none, in the order given."""
    # Those that tell their time may have been given in any order.
    told = iter(sorted((each for each in snapshots if each.time_us is not None), key=_time))
    series = [each if each.time_us is None else next(told) for each in snapshots]
    if any(each.anew for each in series) or _are_counted_anew(series):
        series = list(_summed(series))
    untimed = [each for each in series if each.time_us is None]
    known = [each.time_us for each in series if each.time_us is not None]
    start_us, end_us = (capture.first_us, capture.last_us) if capture else (None, None)
    if start_us is None or end_us is None:
        start_us = end_us = max(known, default=_SECOND_US)
    for number, each in enumerate(untimed):
        last = number == len(untimed) - 1
        if number == 0 and (not last or known):
            each.time_us = max(start_us - _APART_US, 0)
        elif last:
            each.time_us = end_us + _APART_US
        else:
            each.time_us = start_us + (end_us - start_us) * number // len(untimed)
    ordered = sorted(series, key=_time)
    for before, after in pairwise(ordered):
        # Two of one second were made one after the other.
        after.time_us = max(after.time_us or 0, (before.time_us or 0) + 1)
    return ordered


def _are_counted_anew(snapshots: list[Snapshot]) -> bool:
    """Return whether a series has what has grown at each time, and not what was counted in all.

    Counters only grow: one that is lower later was counted anew.
    """
    return any(
        later.counters[name] < value
        for earlier, later in pairwise(each for each in snapshots if each.counters)
        for name, value in earlier.counters.items()
        if name in later.counters and name.startswith(("Tcp.", "TcpExt.")) and name != _GAUGE
    )


def _summed(snapshots: list[Snapshot]) -> Iterator[Snapshot]:
    """Yield the snapshots with counters that grow from 0, out of those that say how much each grew."""
    total: dict[str, int] = {}
    for each in snapshots:
        total = {**total, **{name: total.get(name, 0) + value for name, value in each.counters.items()}}
        each.counters = {name: total[name] for name in each.counters}
        yield each
