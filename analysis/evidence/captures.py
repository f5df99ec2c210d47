"""Reads capture.json, a capture's own account; the packets themselves are in capture.pcap beside it."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from analysis.evidence.clock import Clock
from analysis.evidence.flows import Reduction
from analysis.evidence.jsonl import Record, integer, moment, parse
from formats.safe_files import read_regular

SCHEMA = "connlab.capture/1"
# Why the account of a capture that somebody else made has holes.
ELSEWHERE = "recorded elsewhere: nothing says when it ended, or how many packets the kernel dropped"


@dataclass(frozen=True, slots=True)
class Capture:
    """How one capture went.

    Attributes:
        packets: whether there is a pcap file, or something else under its name.
        report: capture.json, None if it is missing, broken or of another version: the capture did not end cleanly.
    """

    packets: bool
    report: Record | None

    @property
    def dropped_packets(self) -> int | None:
        """Packets that the kernel dropped before tcpdump took them; None if that is not known."""
        return integer(self.report, "packets_dropped_by_kernel") if self.report else None

    @property
    def truncated(self) -> bool:
        """Return whether the capture ended at its size limit, before the run did."""
        return self.report is not None and self.report.get("truncated") is True

    @property
    def handshakes_only(self) -> bool:
        """Return whether it lacks the packets without SYN, FIN or RST."""
        return self.report is not None and self.report.get("mode") == "handshakes"

    @property
    def elsewhere(self) -> bool:
        """Return whether somebody else made it, and the lab has the file alone."""
        return self.reason == ELSEWHERE

    @property
    def reason(self) -> str | None:
        """Why it ended before the run did, or why its account has holes; None if all is well."""
        reason = self.report.get("reason") if self.report else None
        return reason if isinstance(reason, str) else None


def read(folder: Path, clock: Clock) -> Capture:
    """Return what a collector's folder says of its capture, on the steady clock; it never raises."""
    try:
        report = parse(read_regular(folder / "capture.json"))
    except OSError:
        report = None
    if report is not None and report.get("schema") != SCHEMA:
        report = None
    for name in ("started_us", "ended_us"):
        time_us = moment(report or {}, name)
        if report is not None and time_us is not None:
            report[name] = clock.steady(time_us)
    return Capture(packets=os.path.lexists(folder / "capture.pcap"), report=report)


def whole_until_us(capture: Capture, reduction: Reduction) -> int | None:
    """Return until when what is not in a capture was not there, Unix epoch; None: to its end.

    0 if a part of the file is lost, and nothing says which. The capture's health reports the few packets that a kernel
    drops under load; they set no end.
    """
    written = integer(capture.report or {}, "packets_captured")
    if capture.report is None or reduction.rows is None or reduction.losses:
        return 0
    if written is not None and reduction.packets != written:
        return 0
    return reduction.last_us or 0 if capture.truncated or capture.reason is not None else None


def expected(
    path: list[str], mode: object, client_mode: object, *, apart: bool, also: Collection[str] = ()
) -> list[str]:
    """Return the roles whose instances capture: each hop once, and at the client's end too if asked.

    A role in the midst of the path sees both of its hops, so every second one captures. On several machines, `apart`,
    all servers do: what one clock timed must be seen by another. So do those of `also`: where the lab filters SYNs, or
    services beside the path may come, only a capture there shows who came. The modes are the knobs capture.mode and
    capture.client.
    """
    on = ("headers", "handshakes")
    servers = [role for place, role in enumerate(path) if place and (apart or place % 2 or role in also)]
    return [*(servers if mode in on else ()), *(path[:1] if client_mode in on else ())]
