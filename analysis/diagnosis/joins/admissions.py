"""When a connection really came into its server's accept queue, where the capture of its packets has to tell.

A handshake's last ACK that meets a full queue is dropped. Then the client believes it is connected, and the
server's kernel (net/ipv4/tcp_minisocks.c, tcp_check_req) does not know it: it drops the client's data as well, each
time it is sent again, until one of these packets finds room and makes the connection, or the server forgets the
handshake and answers with RST. The server repeats its SYN-ACK meanwhile, and the ACK that answers this may be the one;
then the data can come long after it, or too late for the server's patience. Each packet so dropped counts as
ListenOverflows and ListenDrops.

A socket with TCP_DEFER_ACCEPT, as Apache's, takes no bare ACK: the data behind it makes the connection. The kernel
counts the ACK as TCPDeferAcceptDrop, and not as an overflow. When the socket has waited for long enough, it repeats its
SYN-ACK, and takes what answers that.

With net.ipv4.tcp_abort_on_overflow the server forgets the handshake at once: the last ACK that meets a full queue,
which counts the same, is answered with RST.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import duckdb

from analysis.database import create, insert_rows, sql
from analysis.evidence.flows import Connection, Flags, Packet, extract
from analysis.evidence.rawrun import RawRun


@dataclass(frozen=True, slots=True)
class Admission:
    """How a connection came into the accept queue.

    Attributes:
        entered_us: when, Unix epoch; None if it never did.
        dropped: the packets after the client's SYNs that surely met a full queue.
        perhaps_dropped: how many more may have.
        aborted: whether the server answered the first of them with RST, as tcp_abort_on_overflow bids it.
    """

    entered_us: int | None
    dropped: Sequence[Packet] = ()
    perhaps_dropped: int = 0
    aborted: bool = False


def build_admissions(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `admissions` out of `flows` and `hops`, a row for each connection that may have waited so."""
    create(database, "admissions", _COLUMNS)
    database.execute(sql(__name__, "candidates"))
    for (observer,) in database.execute("SELECT DISTINCT observer FROM candidates ORDER BY observer").fetchall():
        rows = database.execute("SELECT * EXCLUDE (observer) FROM candidates WHERE observer = ?", [observer]).fetchall()
        connections = [Connection((row[1], row[2]), (row[3], row[4]), row[5], row[6]) for row in rows]
        found = extract(raw.places.collector(observer, "capture.pcap"), connections, raw.clocks.of(observer)).packets
        admissions: list[tuple[object, ...]] = []
        for row, packets in zip(rows, found, strict=True):
            # `flows` has seen packets of each: a capture of which none can be read here says nothing.
            if not packets:
                continue
            # A listener of an observed instance is named instance:port.
            aborts = raw.manifest.sysctl(row[7].partition(":")[0], _ABORT_ON_OVERFLOW) == "1"
            each = admission(packets, aborts=aborts, defers=row[8])
            dropped_us = [packet.time_us for packet in each.dropped]
            dropped_max = len(dropped_us) + each.perhaps_dropped
            admissions.append((observer, row[0], each.entered_us, dropped_us, dropped_max, each.aborted))
        insert_rows(database, "admissions", _COLUMNS, admissions)


_COLUMNS = {
    "observer": "VARCHAR", "id": "BIGINT", "entered_us": "BIGINT", "ack_dropped_us": "BIGINT[]",
    "ack_dropped_max": "BIGINT", "aborted": "BOOLEAN",
}  # fmt: skip
_ABORT_ON_OVERFLOW = "net.ipv4.tcp_abort_on_overflow"


# How much later one processor may take a packet than another takes the packet behind it.
_RACE_US = 1000


def admission(packets: Sequence[Packet], *, aborts: bool = False, defers: bool = False) -> Admission:
    """Return how a connection whose handshake the client completed came into the accept queue, by all its packets.

    `aborts`: whether its server has tcp_abort_on_overflow set; `defers`: whether its socket waits for data.
    """
    # A full queue drops no RST: it ends the open handshake.
    sent = [packet for packet in packets if packet.from_client and not packet.flags & (Flags.SYN | Flags.RST)]
    answer = next(
        (packet for packet in packets if not packet.from_client and not packet.flags & (Flags.SYN | Flags.RST)), None
    )
    reset = next((packet for packet in packets if not packet.from_client and packet.flags & Flags.RST), None)
    end = answer or reset
    before = [packet for packet in sent if end is None or packet.number < end.number]
    if defers and any(map(_is_data, before)):
        answers = [packet.number for packet in packets if not packet.from_client and packet.flags & Flags.SYN]
        waits_until = max(answers[1:], default=packets[-1].number)
        before = [packet for packet in before if _is_data(packet) or packet.number > waits_until]
    if not before:
        return Admission(None)
    if aborts and answer is None and reset is not None and not reset.flags & Flags.ACK:
        # A socket resets its connection with ACK; a RST without one answers a packet that found none.
        return Admission(None, before, aborted=True)
    if answer is None and any(map(_is_data, before)):
        # Not even its data was acknowledged. The packet that got the RST was not dropped.
        return Admission(None, before[:-1] if reset is not None else before)
    if not _is_repeated(before):
        # The ACK made it, or that which answered the last SYN-ACK.
        acks = list(takewhile(lambda packet: not _is_data(packet), before)) or before[:1]
        # A server repeats its SYN-ACK only until an ACK finds room. One that it sent just before an ACK came in says
        # nothing of that ACK.
        repeated = [packet.number for packet in packets if not packet.from_client and packet.flags & Flags.SYN]
        proven = [packet for packet in acks[:-1] if packet.number < max(repeated, default=0)]
        return Admission(acks[-1].time_us, proven, len(acks) - 1 - len(proven))
    last = max(index for index, packet in enumerate(before) if _is_data(packet))
    if answer is not None and last < len(before) - 1 and not _acknowledges(answer, before[last]):
        # None of its data found a connection, and the server has one: that of a bare ACK behind them.
        return Admission(before[-1].time_us, before[: last + 1], len(before) - last - 2)
    # The last copy of the data was acknowledged, so it found a connection: its own, or that of a bare ACK just before.
    bare = sum(1 for _ in takewhile(lambda packet: not _is_data(packet), reversed(before[:last])))
    perhaps = set(range(last - bare, last)) or _raced(before[:last])
    dropped = [packet for index, packet in enumerate(before[:last]) if index not in perhaps]
    return Admission(before[last].time_us, dropped, len(perhaps))


def _raced(before: Sequence[Packet]) -> set[int]:
    """Return which ACK may not have met a full queue, although the data behind it had to be sent again.

    One processor lets the ACK make the connection, which takes the queue's last place. Another, which looked for the
    connection a moment earlier, drops the data behind the ACK at the full queue.
    """
    ack = next((index for index in reversed(range(len(before))) if not _is_data(before[index])), None)
    return set() if ack is None or before[-1].time_us - before[ack].time_us > _RACE_US else {ack}


def _is_data(packet: Packet) -> bool:
    return packet.data_bytes > 0 or bool(packet.flags & Flags.FIN)


def _acknowledges(answer: Packet, data: Packet) -> bool:
    """Return whether an answer has seen anything of some data."""
    return answer.ack is not None and answer.ack > data.seq


def _is_repeated(packets: Iterable[Packet]) -> bool:
    """Return whether any data was sent twice."""
    starts = [packet.seq for packet in packets if _is_data(packet)]
    return len(set(starts)) < len(starts)
