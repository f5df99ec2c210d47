"""The accept queues over time, for the player: how full they are, and the overflows so far."""

from __future__ import annotations

from itertools import accumulate

from analysis.evidence import roles
from analysis.pages.report import time_series
from analysis.pages.report.charts import Point
from analysis.pages.report.run_files import Record, Row

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
        places = f"listen_limit + {of_instance(record, role)}"
        depth = time_series.levels(record, role, "listen_depth", lasts_s)
        if depth:
            found.append({
                "role": role,
                "queues": count(record, role),
                "depth": depth,
                "places": time_series.levels(record, role, places, lasts_s),
                "full": time_series.levels(record, role, f"(listen_depth >= {places})::INTEGER", lasts_s, max),
                "overflows": _so_far(record, role) if counted else [],
            })  # fmt: skip
    return found


def count(record: Record, role: str) -> int:
    """How many accept queues a role has: one of each instance, and with nginx's reuseport one of each worker."""
    return of_instance(record, role) * len(record.manifest["instances"].get(role, []))


def of_instance(record: Record, role: str) -> int:
    """How many accept queues each instance of a role has."""
    listeners = record.manifest.get("listeners", {})
    port = roles.of_manifest(record.manifest)[role].port
    of_instances = [listeners.get(each, []) for each in record.manifest["instances"].get(role, [])]
    return max((sum(one["port"] == port for one in each) for each in of_instances), default=0) or 1


def _so_far(record: Record, role: str) -> list[Point]:
    rows = record.rows(
        f"""SELECT time_us, sum("{_OVERFLOWS}") AS grown FROM timeline
             WHERE list_contains($instances, instance) GROUP BY time_us HAVING grown > 0 ORDER BY time_us""",  # noqa: S608  a column's name
        instances=record.manifest["instances"].get(role, []),
    )
    totals = accumulate(int(row["grown"]) for row in rows)
    return [(time_series.seconds(record, row["time_us"]), total) for row, total in zip(rows, totals, strict=True)]
