"""The listening sockets of observed instances, tick by tick, and what the kernel threw away in front of each.

The kernel counts overflows for a whole network namespace, and for each listener only drops, of which overflows are one
kind. So a listener has at least the namespace's overflows less the drops of all other listeners: as many are proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.database import create
from analysis.diagnosis.joins.tables import DROP_COUNTERS, TICKS, insert

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from analysis.evidence.bulk import Integers
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.samples import Samples


def load(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the table `ticks`: a row for each tick and listener, which is named `instance:port`."""
    create(database, "ticks", {"instance": "VARCHAR", **dict.fromkeys(TICKS, "BIGINT")})
    for instance, samples in raw.samples.items():
        for port in ports(samples):
            columns = dict(zip(TICKS, _columns(samples, port), strict=True))
            insert(database, "ticks", columns, f"'{instance}:{port}' AS instance, *")


def ports(samples: Samples) -> list[int]:
    """Every port that listened at any tick."""
    return sorted({listener.port for tick in samples.ticks for listener in tick.listeners})


def _columns(samples: Samples, port: int) -> Iterable[Integers]:
    overflows, _, cookies, syn_queue_drops = map(samples.series, DROP_COUNTERS)
    drops = _of_port(samples, port, "drops")
    others = sum(
        (_grown(_of_port(samples, other, "drops")) for other in ports(samples) if other != port), np.zeros_like(drops)
    )
    yield np.arange(len(samples.ticks), dtype=np.int64)
    yield np.array([tick.time_us for tick in samples.ticks], dtype=np.int64)
    yield np.array([sum(each.port == port for each in tick.listeners) for tick in samples.ticks], dtype=np.int64)
    yield _of_port(samples, port, "depth")
    yield _of_port(samples, port, "limit")
    yield drops
    yield overflows - others
    yield _grown(drops)
    yield cookies
    yield syn_queue_drops - others


def _of_port(samples: Samples, port: int, key: str) -> Integers:
    return np.array(
        [sum(getattr(each, key) for each in tick.listeners if each.port == port) for tick in samples.ticks],
        dtype=np.int64,
    )


def _grown(counts: Integers) -> Integers:
    """How much a count grew since the first tick; a listener that was opened again counts anew."""
    return np.cumsum(np.clip(np.diff(counts, prepend=counts[:1]), 0, None))
