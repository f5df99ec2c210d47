"""The accept queues over time, for the player: depth against limit, and the overflows so far."""

from __future__ import annotations

from itertools import accumulate

from analysis.report import series
from analysis.report.charts import Point
from analysis.report.record import Record, Row

_OVERFLOWS = "TcpExt.ListenOverflows"


def of_run(record: Record, lasts_s: float) -> list[Row]:
    """Each server's queue: `role`, and as pairs of seconds and a value `depth`, `limit` and `overflows` so far."""
    if record.start_us is None or not record.has("timeline"):
        return []
    counted = _OVERFLOWS in record.columns("timeline")
    found = []
    for role in record.path[1:]:
        depth, limit = (series.levels(record, role, f"listen_{name}", lasts_s) for name in ("depth", "limit"))
        if depth and limit:
            overflows = _so_far(record, role) if counted else []
            found.append({"role": role, "depth": depth, "limit": limit, "overflows": overflows})
    return found


def _so_far(record: Record, role: str) -> list[Point]:
    rows = record.rows(
        f"""SELECT time_us, sum("{_OVERFLOWS}") AS grown FROM timeline
             WHERE list_contains($instances, instance) GROUP BY time_us HAVING grown > 0 ORDER BY time_us""",  # noqa: S608  a column's name
        instances=record.manifest["instances"].get(role, []),
    )
    totals = accumulate(int(row["grown"]) for row in rows)
    return [(series.seconds(record, row["time_us"]), total) for row, total in zip(rows, totals, strict=True)]
