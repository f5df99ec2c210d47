"""Tells a client's requests by its packets: data one way, then data the other way.

The table `exchanges` has a row for each: when the client's data began and ended, when the answer's did, in how many
pieces the client sent it, and the last of the answer that it was there to hear. Data that the capture shows again is
left out. Headers alone show this, so nothing is known of a status; over TLS or HTTP/2, and where a client does not wait
for its answer, data has no such order.

A proxy's log may not say over which connection it sent a request. Of a slow one that went over a kept connection the
exchange tells, which began and was answered when the log says so (`link_tries_by_exchange`).

Where the client records its requests, the table has those connections alone of which a request was slow at a server
that tells nothing of its threads, or for a client whose processors the lab limited, because a connection's first and
last data say nothing of the requests in between; and those on which an answer went on after its client had given up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from analysis.database import composed, create, has_rows, literal, sql
from analysis.diagnosis.joins.requests import CLOCK_SLACK_US
from analysis.evidence import flows
from analysis.evidence.flows import Connection
from analysis.evidence.rawrun import RawRun
from analysis.evidence.samples import Counter
from formats.manifest import Manifest

# The kernel's least timeout for data is 200 ms; it sends again no sooner where little is on its way.
_SENT_AGAIN_US = 195_000
# A kernel delays an acknowledgement for which it has nothing else to send: Linux by 40 ms to 200 ms. What waited for it
# leaves as soon as it has come.
_DELAYED_US, _DELAYED_MAX_US, _ACKED_US = 30_000, 250_000, 2_000

# Some 200 bytes each, for a moment.
_PACKETS_MAX = 2_000_000
_COLUMNS = {"observer": "VARCHAR", "flow": "BIGINT", "to_instance": "VARCHAR", "turn": "BIGINT", "time_us": "BIGINT",
            "asked_us": "BIGINT", "first_us": "BIGINT", "end_us": "BIGINT", "pieces": "BIGINT",
            "heard_us": "BIGINT"}  # fmt: skip
_PACKETS = {"observer": "VARCHAR", "flow": "BIGINT", "number": "BIGINT", "asks": "BOOLEAN", "has_data": "BOOLEAN",
            "time_us": "BIGINT", "first_us": "BIGINT"}  # fmt: skip


def build_exchanges(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the tables `exchanges` and `unread_exchanges`: an observer, and why its capture does not tell of them.

    Where the client records its requests, the table `cases` must be there.
    """
    create(database, "exchanges", _COLUMNS)
    create(database, "unread_exchanges", {"observer": "VARCHAR", "why": "VARCHAR"})
    if raw.clients or raw.with_results:
        limited = [action.instance for action in raw.manifest.actions if action.do == "cpu"]
        instances = {"silent": silent_servers(raw.manifest), "limited": limited}
        found = database.execute(sql(__name__, "carrying_slow"), instances)
    else:
        found = database.execute(sql(__name__, "carrying"))
    for observer, why in _load(database, raw, found.fetchall(), "exchanges_of_packets", ("flows", "servers")):
        database.execute("INSERT INTO unread_exchanges VALUES (?, ?)", [observer, why])


def link_tries_by_exchange(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Add to `try_links` the slow tries that went over a kept connection, where their exchange on it tells which.

    The tables of `build_links` must be there. `exchanges_of_tries` has the exchanges that were read for it.
    """
    if raw.manifest.slow_ms is None or not has_rows(database, "access"):
        return
    slow = {"slow_us": 1000 * raw.manifest.slow_ms}
    slack_us = CLOCK_SLACK_US + (raw.clocks.apart_us or 0)
    found = database.execute(sql(__name__, "carrying_tries"), slow).fetchall()
    if found:
        create(database, "exchanges", _COLUMNS)
        list(_load(database, raw, found, "exchanges_of_packets", ("flows", "servers")))
        database.execute("ALTER TABLE exchanges RENAME TO exchanges_of_tries")
        database.execute(sql(__name__, "try_links_by_exchange"), {**slow, "at_once_us": slack_us})


def build_data_waits(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `data_waits`: for how long requests waited for data that got lost, or that a kernel held back.

    The table `cases` must be there. `unseen_data` has the instances whose kernels sent data again that no capture has.
    """
    again = _senders_again(database, raw)
    database.execute(sql(__name__, "unseen_data"), {"again": again})
    apart_us = raw.clocks.apart_us or 0
    create(database, "sent_packets", _PACKETS)
    found = database.execute(sql(__name__, "carrying_late"), {"again": again, "delayed_max_us": _DELAYED_MAX_US})
    list(_load(database, raw, found.fetchall(), "sent_packets_of_capture", ("flows",)))
    bounds = {
        "again": again,
        "slack_us": apart_us,
        "timeout_us": _SENT_AGAIN_US + apart_us,
        "delayed_us": _DELAYED_US,
        "delayed_max_us": _DELAYED_MAX_US,
        "at_once_us": _ACKED_US,
    }
    database.execute(sql(__name__, "data_waits"), bounds)


def _senders_again(database: duckdb.DuckDBPyConnection, raw: RawRun) -> list[str]:
    """Return the instances whose kernels sent data again that no capture has, as the first of it was lost before."""
    captured = dict(database.execute(sql(__name__, "data_again")).fetchall())
    return [one for one, samples in raw.samples.items() if _data_again(samples.counters) > captured.get(one, 0)]


def _data_again(counters: Mapping[str, Counter]) -> int:
    """Return how many segments a kernel sent again, but for those of handshakes; 0 where it was not sampled."""
    found = [counters.get(name) for name in ("Tcp.RetransSegs", "TcpExt.TCPSynRetrans")]
    every, handshakes = (int(one.values[-1] - one.values[0]) if one and one.values else 0 for one in found)
    return every - handshakes


def silent_servers(manifest: Manifest) -> list[str]:
    """Return the servers none of whose pages tells of their threads, by their declarations."""
    told = {"threads_busy", "threads_max"}
    return [
        instance
        for name, role in manifest.roles.items()
        if role.kind == "server" and not any(told <= page.values.keys() for page in role.scrape.values())
        for instance in manifest.of_role(name)
    ]


def _load(
    database: duckdb.DuckDBPyConnection,
    raw: RawRun,
    carrying: list[tuple[Any, ...]],
    statement: str,
    lists: tuple[str, ...],
) -> Iterator[tuple[str, str]]:
    """Put the packets of connections into a table by a statement, with these of its `flows` and `servers`.

    Yields:
        Each observer whose capture could not be read, or not to its end, and why.
    """
    with tempfile.TemporaryDirectory(prefix="connlab-") as folder:
        for observer in dict.fromkeys(row[0] for row in carrying):
            of = [row[1:] for row in carrying if row[0] == observer]
            packets = sum(row[-1] for row in of)
            if packets > _PACKETS_MAX:
                yield observer, f"{packets:,} packets are too many to tell requests by; {_PACKETS_MAX:,} at most"
                continue
            chosen = [
                Connection((client, port), (server, to_port), first, last)
                for _, _, client, port, server, to_port, first, last, _ in of
            ]
            file, clock = Path(folder) / f"{observer}.jsonl", raw.clocks.of(observer)
            why = flows.extract_to(raw.places.collector(observer, "capture.pcap"), chosen, file, clock)
            numbers = [list(column) for column in zip(*((row[0], row[1]) for row in of), strict=True)]
            database.execute(
                composed(__name__, statement, steady=clock.sql("time_us")),
                {"path": literal(file), "observer": observer, **dict(zip(lists, numbers, strict=False))},
            )
            if why is not None:
                yield observer, why
