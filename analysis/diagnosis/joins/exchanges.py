"""Tells a client's requests by its packets: data one way, then data the other way.

The table `exchanges` has a row for each: when the client's data began and ended, when the answer's did, in how many
pieces the client sent it, and the last of the answer that it was there to hear. Data that the capture shows again is
left out. Headers alone show this, so nothing is known of a status; over TLS or HTTP/2, and where a client does not wait
for its answer, data has no such order.

Where the client records its requests, the table has those connections alone of which a request was slow at a server
that tells nothing of its threads, or for a client whose processors the lab limited, because a connection's first and
last data say nothing of the requests in between; and those on which an answer went on after its client had given up.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from analysis.database import composed, create, literal, sql
from analysis.evidence import flows
from analysis.evidence.flows import Connection
from analysis.evidence.rawrun import RawRun
from formats.manifest import Manifest

# Some 200 bytes each, for a moment.
_PACKETS_MAX = 2_000_000
_COLUMNS = {"observer": "VARCHAR", "flow": "BIGINT", "to_instance": "VARCHAR", "turn": "BIGINT", "time_us": "BIGINT",
            "asked_us": "BIGINT", "first_us": "BIGINT", "end_us": "BIGINT", "pieces": "BIGINT",
            "heard_us": "BIGINT"}  # fmt: skip


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
    carrying = found.fetchall()
    with tempfile.TemporaryDirectory(prefix="connlab-") as folder:
        for observer in dict.fromkeys(row[0] for row in carrying):
            of = [row[1:] for row in carrying if row[0] == observer]
            why = _load(database, raw, observer, of, Path(folder) / f"{observer}.jsonl")
            if why is not None:
                database.execute("INSERT INTO unread_exchanges VALUES (?, ?)", [observer, why])


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
    database: duckdb.DuckDBPyConnection, raw: RawRun, observer: str, carrying: list[tuple[object, ...]], file: Path
) -> str | None:
    packets = sum(int(str(row[-1])) for row in carrying)
    if packets > _PACKETS_MAX:
        return f"{packets:,} packets are too many to tell requests by; {_PACKETS_MAX:,} at most"
    chosen = [
        Connection((str(client), int(str(port))), (str(server), int(str(to_port))), int(str(first)), int(str(last)))
        for _, _, client, port, server, to_port, first, last, _ in carrying
    ]
    clock = raw.clocks.of(observer)
    why = flows.extract_to(raw.places.collector(observer, "capture.pcap"), chosen, file, clock)
    numbers = [list(column) for column in zip(*((row[0], row[1]) for row in carrying), strict=True)]
    database.execute(
        composed(__name__, "exchanges_of_packets", steady=clock.sql("time_us")),
        {"path": literal(file), "observer": observer, "flows": numbers[0], "servers": numbers[1]},
    )
    return why
