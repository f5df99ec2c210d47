"""The accept queues over time, for the player: how full they are, and the overflows so far."""

from __future__ import annotations

from functools import partial
from itertools import accumulate

from analysis.reports import time_series
from analysis.reports.charts import Point
from analysis.reports.run_record import Record, Row
from formats.manifest import declared_roles

_OVERFLOWS = "TcpExt.ListenOverflows"


def of_run(record: Record, lasts_s: float) -> list[Row]:
    """Each server's accept queues, over its instances.

    `role`, `queues` (how many), and as pairs of seconds and a value `depth`, `places` (each queue holds one more than
    its limit), `full` (1 while one of them is) and `overflows` so far.
    """
    if record.start_us is None or not record.has("timeline"):
        return []
    counted = _OVERFLOWS in record.columns("timeline")
    found = []
    for role in record.path[1:]:
        levels = partial(time_series.levels, record, role, lasts_s=lasts_s, queues=of_instance(record, role))
        depth = levels("depth")
        if depth:
            found.append({
                "role": role,
                "queues": count(record, role),
                "depth": depth,
                "places": levels("places"),
                "full": levels("full", together=max),
                "overflows": _so_far(record, role) if counted else [],
            })  # fmt: skip
    return found


def count(record: Record, role: str) -> int:
    """How many accept queues a role has: one of each instance, and with nginx's reuseport one of each worker."""
    return of_instance(record, role) * len(record.manifest["instances"].get(role, []))


def of_instance(record: Record, role: str) -> int:
    """How many accept queues each instance of a role has."""
    listeners = record.manifest.get("listeners", {})
    port = declared_roles(record.manifest)[role].port
    of_instances = [listeners.get(each, []) for each in record.manifest["instances"].get(role, [])]
    return max((sum(one["port"] == port for one in each) for each in of_instances), default=0) or 1


def _so_far(record: Record, role: str) -> list[Point]:
    found = [each for each in time_series.grown(record, role, _OVERFLOWS, width_us=1) if each[1] > 0]
    totals = accumulate(growth for _, growth in found)
    return [(round(since_us / 1e6, 3), total) for (since_us, _), total in zip(found, totals, strict=True)]
