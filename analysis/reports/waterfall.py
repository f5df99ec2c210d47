"""The waterfall of an observation: each connection from its SYN to its end, out of derived/connections.parquet."""

from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from analysis.database import over_files, sql
from analysis.evidence.rawfiles import descriptor_path
from analysis.verdicts import derived
from analysis.verdicts.connections_file import TABLE, Connections
from formats.safe_files import open_within

# A page with more is too large to open. The rows that failed come before others.
ROWS_MAX = 100_000


def build_waterfall(folder: Path, account: Connections) -> dict[str, Any] | None:
    """Return what static/waterfall.js draws; None where there is no connection.

    The rows are one list of numbers, eight for each connection: when it began, in µs since the observation did; when
    its handshake ended, its first data and its first answer came, and it ended, in µs since it began, -1 where that is
    not known; and its outcome, peer and server, by their numbers in the lists of names.
    """
    if account.start_us is None:
        return None
    try:
        file = open_within(folder, TABLE)
    except OSError:
        return None
    peers = [target.instance for target in account.targets if target.peer]
    with file, over_files() as database:
        try:
            found = database.execute(
                sql(__name__, "waterfall"),
                {"path": descriptor_path(file), "start_us": account.start_us, "peers": peers, "most": ROWS_MAX},
            ).fetchall()
        except duckdb.Error:
            raise derived.DerivedError(f"{folder / TABLE}: damaged", folder) from None
    if not found:
        return None
    names: list[dict[str, int]] = [{}, {}, {}]
    rows = [
        [*times, *(of.setdefault(text, len(of)) for of, text in zip(names, texts, strict=True))]
        for outcome, server, _, *times, peer in found
        for texts in [(outcome, peer, server)]
    ]
    outcomes, of_peers, servers = (list(each) for each in names)
    return {
        "count": len(rows),
        "left_out": found[0][2] - len(rows),
        "seconds": account.seconds or 0,
        "outcomes": outcomes,
        "peers": of_peers,
        "servers": servers,
        "rows": list(chain.from_iterable(rows)),
    }
