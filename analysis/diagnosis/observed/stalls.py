"""Where single connections stood still or failed: data sent again, receivers without room, TLS that was broken off.

It reads packets, so it looks at as many connections as its budget allows, the most troubled first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.database import Row, sql
from analysis.diagnosis.observed import Observation
from analysis.evidence import flows
from analysis.evidence.flows import Connection, Flags, Packet
from analysis.evidence.rawrun import RawRun

# The most packets that are read of each capture; they take a second or two.
PACKETS_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Resent:
    """Data that one side sent again: how often, and how long after it was sent first, at the least and at the most."""

    by: str
    count: int
    least_us: int
    most_us: int


@dataclass(frozen=True, slots=True)
class ZeroWindow:
    """A side whose receive window was 0.

    Attributes:
        count: how often it began to be.
        longest_us: for how long, at the most.
        for_ever: whether the last time had no end in the capture.
    """

    by: str
    count: int
    longest_us: int
    for_ever: bool


@dataclass(frozen=True, slots=True)
class Stall:
    """What held one connection up, or broke it off.

    Attributes:
        alerts: of TLS, that a side sent in clear, in words; the usual close_notify is none.
    """

    resent: tuple[Resent, ...]
    zero_windows: tuple[ZeroWindow, ...]
    alerts: tuple[str, ...]


def has_twice(seen: Observation, instance: str) -> bool:
    """Return whether a capture has most packets twice, so that data sent again cannot be recognised."""
    return bool(seen.rows("SELECT 1 FROM doubled WHERE observer = $observer", observer=instance))


def find_stalls(raw: RawRun, seen: Observation, instance: str) -> tuple[dict[int, Stall], int, int]:
    """Return the stalls of a capture's connections by their ids; how many were looked at, and how many there are."""
    chosen = seen.rows(sql(__name__, "troubled"), observer=instance, packets=PACKETS_MAX)
    wanted = [connection_of(row) for row in chosen]
    path = raw.places.collector(instance, "capture.pcap")
    extract = flows.extract(path, wanted, raw.clocks.of(instance))
    found = {row["id"]: _stall(of_one) for row, of_one in zip(chosen, extract.packets, strict=True)}
    return (
        {id_: each for id_, each in found.items() if each.resent or each.zero_windows or each.alerts},
        len(chosen),
        chosen[0]["of_all"] if chosen else 0,
    )


def connection_of(row: Row) -> Connection:
    """Return which packets a row of the ledger is about."""
    client, server = ((row[f"{side}_address"], row[f"{side}_port"]) for side in ("client", "server"))
    return Connection(client, server, row["first_time_us"], row["last_time_us"])


def _stall(packets: Sequence[Packet]) -> Stall:
    sides = [(name, [each for each in packets if each.from_client is client]) for name, client in _SIDES]
    resent = (_resent(name, of_side) for name, of_side in sides)
    windows = (_zero_windows(name, of_side, packets[-1].time_us if packets else 0) for name, of_side in sides)
    alerts = dict.fromkeys(
        f"the {'client' if each.from_client else 'server'} sent the TLS alert {each.tls.removeprefix(_ALERT)}"
        for each in packets
        if each.tls is not None and each.tls.startswith(_ALERT) and each.tls != f"{_ALERT}close_notify"
    )
    return Stall(tuple(filter(None, resent)), tuple(filter(None, windows)), tuple(alerts))


_SIDES = (("client", True), ("server", False))
# How `flows` names one.
_ALERT = "alert "


def _resent(by: str, packets: Sequence[Packet]) -> Resent | None:
    first_us: dict[int, int] = {}
    pauses: list[int] = []
    for each in packets:
        if not each.data_bytes or each.flags & (Flags.SYN | Flags.RST):
            continue
        begun_us = first_us.setdefault(each.seq, each.time_us)
        if begun_us != each.time_us:
            pauses.append(each.time_us - begun_us)
    return Resent(by, len(pauses), min(pauses), max(pauses)) if pauses else None


def _zero_windows(by: str, packets: Sequence[Packet], end_us: int) -> ZeroWindow | None:
    since_us: int | None = None
    spans: list[int] = []
    for each in packets:
        # The window of a SYN has no scale, and that of a RST means nothing.
        if each.flags & (Flags.SYN | Flags.RST | Flags.FIN):
            continue
        if each.window == 0:
            since_us = each.time_us if since_us is None else since_us
        elif since_us is not None:
            spans.append(each.time_us - since_us)
            since_us = None
    if since_us is not None:
        return ZeroWindow(by, len(spans) + 1, max([*spans, end_us - since_us]), for_ever=True)
    return ZeroWindow(by, len(spans), max(spans), for_ever=False) if spans else None
