"""Where a capture was made: which addresses are those of its own host, by the connections that it has."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.database import literal, over_files

# A host of several addresses has each of them in many connections, with several peers.
_ADDRESSES_MAX = 3
_CONNECTIONS_MIN = 10
# One end is nearer if its packets come so many times as soon.
_CLEARLY = 3


@dataclass(frozen=True, slots=True)
class Vantage:
    """What the connections of a capture say of its place.

    Attributes:
        own: the addresses of its host; none where nothing tells, as at a switch.
        handshakes_only: whether it was made of SYN, FIN and RST alone.
        pair: client and server, where it has no others.
        answer_us: how long the SYN-ACK took at the least, where it has one pair alone.
    """

    own: tuple[str, ...] = ()
    handshakes_only: bool = False
    pair: tuple[str, str] | None = None
    answer_us: float | None = None


# All packets of a connection are SYN, FIN or RST, and some connection closed: then the capture kept no others.
_HANDSHAKES = """
SELECT count(*) FILTER (client_fin_time_us IS NOT NULL AND answered) > 0
       AND bool_and(client_payload_bytes = 0 AND server_payload_bytes = 0
                    AND client_packets <= syn_count + client_rst_count + if(client_fin_time_us IS NULL, 0, 2)
                    AND server_packets <= synack_count + server_rst_count + if(server_fin_time_us IS NULL, 0, 2))
  FROM read_parquet($path, hive_partitioning = false)
"""
_ENDS = """
SELECT client_address, server_address, count(*),
       median(synack_times_us[1] - syn_times_us[1]) FILTER (syn_count = 1 AND answered),
       median(handshake_ack_time_us - synack_times_us[1]) FILTER (synack_count = 1 AND established)
  FROM read_parquet($path, hive_partitioning = false) WHERE NOT client_inferred GROUP BY ALL ORDER BY ALL
"""


def find_vantage(rows: Path, sockets: Collection[str], server: str | None) -> Vantage:
    """Return where a capture was made.

    Args:
        rows: its connections, as `flows` wrote them.
        sockets: addresses that dumps of the same host have as its own.
        server: the address of the server that the user named, None if none was named.
    """
    path = {"path": literal(rows)}
    with over_files() as database:
        (only,) = database.execute(_HANDSHAKES, path).fetchone() or (False,)
        pairs = database.execute(_ENDS, path).fetchall()
    alone = len(pairs) == 1
    answer_us = pairs[0][3] if alone else None
    return Vantage(_own(pairs, sockets, server), bool(only), pairs[0][:2] if alone else None, answer_us)


_Pair = tuple[str, str, int, float | None, float | None]


def _own(pairs: list[_Pair], sockets: Collection[str], server: str | None) -> tuple[str, ...]:
    seen = {address for client, to, *_ in pairs for address in (client, to)}
    if known := seen & set(sockets):
        return tuple(sorted(known))
    if not pairs:
        return (server,) if server is not None else ()
    common = set.intersection(*({client, to} for client, to, *_ in pairs))
    if len(common) == 1:
        return tuple(common)
    if len(common) > 1:
        return _near(pairs, server)
    return _cover(pairs)


def _near(pairs: list[_Pair], server: str | None) -> tuple[str, ...]:
    """Return the end of a single pair of hosts that is clearly nearer: its answers come at once."""
    client, to, _, answer_us, ack_us = pairs[0]
    if answer_us is not None and ack_us is not None:
        if answer_us * _CLEARLY <= ack_us:
            return (to,)
        if ack_us * _CLEARLY <= answer_us:
            return (client,)
    return (server,) if server is not None and server in {client, to} else ()


def compare_vantages(found: Sequence[Vantage]) -> list[Vantage]:
    """Return the places of captures that have one pair of hosts alone, the same: a SYN-ACK is soonest at its server."""
    told = [each for each in found if each.pair is not None and each.answer_us is not None]
    placed = list(found)
    for number, each in enumerate(found):
        others = [other.answer_us or 0 for other in told if other.pair == each.pair and other is not each]
        if each.pair is None or each.answer_us is None or not others or each.answer_us in others:
            continue
        at_server = each.answer_us < min(others)
        placed[number] = replace(each, own=(each.pair[1 if at_server else 0],))
    return placed


def _cover(pairs: list[_Pair]) -> tuple[str, ...]:
    """Return a few addresses of which each connection has one, as those of a proxy; none if there are no such."""
    left = list(pairs)
    found: list[str] = []
    while left and len(found) < _ADDRESSES_MAX:
        peers: dict[str, set[str]] = {}
        counts: dict[str, int] = {}
        for client, to, count, *_ in left:
            for own, other in ((client, to), (to, client)):
                peers.setdefault(own, set()).add(other)
                counts[own] = counts.get(own, 0) + count
        best = max(sorted(counts), key=lambda each: (len(peers[each]), counts[each]))
        if counts[best] < _CONNECTIONS_MIN or len(peers[best]) < 2:  # noqa: PLR2004  two peers make a host
            return ()
        found.append(best)
        left = [each for each in left if best not in each[:2]]
    return () if left else tuple(sorted(found))
