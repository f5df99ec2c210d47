"""Which files would tell what those of an inspection do not."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from analysis.diagnosis.observed import Observation
from analysis.figures import Run
from analysis.formatting import format_moment
from formats.manifest import Observed


def what_to_record(run: Run, seen: Observation | None, observed: Observed, findings: Collection[str]) -> Iterator[str]:
    """Yield what to record next time; `findings`: the names of what the files prove."""
    kinds = {each.kind for each in observed.files}
    if "capture" not in kinds:
        yield "`tcpdump -s 128 -w incident.pcap 'tcp port …'` on the server: what became of each connection"
    elif observed.capture == "handshakes":
        yield "a capture of all TCP packets, not of SYN, FIN and RST alone: which connections got an answer"
    counted = [
        each.instance
        for each in observed.targets
        if sum(tick.counted for tick in run.raw.samples[each.instance].ticks) > 1
    ]
    if not counted:
        once = any(tick.counted for samples in run.raw.samples.values() for tick in samples.ticks)
        why = "; a single dump does not tell whether it counted what the capture has" if once else ""
        yield f"`nstat -az` on the server before and after: whether its kernel dropped SYNs, and why{why}"
    elif seen is not None and (apart := _apart(run, counted)) is not None:
        yield apart
    if not any(tick.listeners for samples in run.raw.samples.values() for tick in samples.ticks):
        yield "`ss -ltnmp` on the server, a few times: which queue was full, its limit, its drops, its program"
    if any(not each.timed for each in observed.files):
        yield "`date` before each command: dumps without a time are taken in the order given, around the capture"
    yield from _record_of_captures(run, seen, observed, findings)


def _record_of_captures(
    run: Run, seen: Observation | None, observed: Observed, findings: Collection[str]
) -> Iterator[str]:
    captures = sum(each.kind == "capture" for each in observed.files)
    if "unexplained" in findings and captures == 1 and seen is not None and _leaves_host(seen):
        yield "a capture at the other end at the same time: whether the SYNs, or their answers, got lost on the way"
    if any(each.dropped_packets is None for each in run.raw.captures.values()):
        yield "what tcpdump prints when it ends: whether the kernel dropped packets, and when it stopped"
    if "doubled" in findings:
        yield "a capture of one interface, `tcpdump -i eth0`, or `tcpdump -r any.pcap -w one.pcap 'ifindex 2'`"
    if seen is not None and len(run.raw.captures) > 1 and run.raw.clocks.apart_us is None:
        yield "captures that have some connections in common: nothing puts these on one clock"


def _leaves_host(seen: Observation) -> bool:
    """Return whether a connection that was not made is of two hosts; on one, nothing gets lost on the way."""
    query = (
        "SELECT 1 FROM ledger WHERE cause = 'unexplained' AND outcome IN ('never-answered', 'never-accepted')"
        " AND client_address <> server_address LIMIT 1"
    )
    return bool(seen.rows(query))


def _apart(run: Run, instances: list[str]) -> str | None:
    """Return what to record if no capture lies between two dumps of its host's counters."""
    spans = [
        (run.raw.reductions[each], [tick.time_us for tick in run.raw.samples[each].ticks if tick.counted])
        for each in instances
        if each in run.raw.reductions and run.raw.reductions[each].first_us is not None
    ]
    if not spans or any(min(us) < (of.first_us or 0) and (of.last_us or 0) < max(us) for of, us in spans):
        return None
    of, us = spans[0]
    captured = f"{format_moment(of.first_us)} to {format_moment(of.last_us)}"
    return (
        f"`nstat -az` before and after the capture ({captured}): the dumps are of {format_moment(min(us))} to"
        f" {format_moment(max(us))}; a time without a zone counts as UTC, so use `date -u`"
    )
