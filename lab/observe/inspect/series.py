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
    """Return a host's snapshots in the order of their times; those that tell none, in the order given.

    Beside a capture, a dump without a time bounds what happened only as the first or as the last: the counters of one
    in between are left out, as nobody knows which packets came before it.
    """
    # Those that tell their time may have been given in any order.
    told = iter(sorted((each for each in snapshots if each.time_us is not None), key=_time))
    series = _in_order([each if each.time_us is None else next(told) for each in snapshots])
    if any(each.anew for each in series) or _are_counted_anew(series):
        series = list(_summed(series))
    start_us, end_us = (capture.first_us, capture.last_us) if capture else (None, None)
    known = [each.time_us for each in series if each.time_us is not None]
    before_us = min([*known, *([] if start_us is None else [start_us]), *([] if known or start_us else [_SECOND_US])])
    after_us = max([*known, *([] if end_us is None else [end_us]), before_us])
    counted = [each for each in series if each.counters]
    for number, each in enumerate(series):
        if each.time_us is not None:
            continue
        is_first = bool(counted) and len(series) > 1 and each is counted[0]
        is_last = bool(counted) and each is counted[-1]
        if is_first and not any(earlier.time_us is not None for earlier in series[:number]):
            each.time_us = max(before_us - _APART_US, 0)
        elif is_last and not any(later.time_us is not None for later in series[number + 1 :]):
            each.time_us = after_us + _APART_US
        else:
            each.time_us = max([before_us, *(_time(earlier) for earlier in series[:number])])
            each.counters = each.counters if capture is None else {}
    ordered = sorted(series, key=_time)
    for earlier, later in pairwise(ordered):
        # Two of one second were made one after the other.
        later.time_us = max(_time(later), _time(earlier) + 1)
    return ordered


def _in_order(series: list[Snapshot]) -> list[Snapshot]:
    """Return two dumps without a time that were given the wrong way round, in their order.

    Then no counter is higher in the later one, and most are nearly as high. What has grown since a former call is
    lower by far.
    """
    counted = [each for each in series if each.counters]
    if len(counted) != 2 or any(each.time_us is not None or each.anew for each in counted):  # noqa: PLR2004  a pair
        return series
    pairs = [
        (value, counted[1].counters[name])
        for name, value in counted[0].counters.items()
        if name in counted[1].counters and name.startswith(("Tcp.", "TcpExt.")) and name != _GAUGE and value > 0
    ]
    if not pairs or any(later > earlier for earlier, later in pairs):
        return series
    nearly = sum(2 * later >= earlier for earlier, later in pairs)
    falls = any(later < earlier for earlier, later in pairs)
    return series[::-1] if falls and 2 * nearly > len(pairs) else series


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
