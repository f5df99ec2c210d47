"""Series over time out of the derived tables, in seconds since the measurement began."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.report.charts import Point
from analysis.report.record import Record

# A page holds no more points in a line; what is above is put together.
_STEPS_MAX = 1200


def seconds(record: Record, time_us: int) -> float:
    """A moment, Unix epoch, since the measurement began."""
    return round((time_us - (record.start_us or 0)) / 1e6, 3)


def ms(microseconds: float) -> float:
    """A duration for a logarithmic scale."""
    # A logarithmic scale has no zero.
    return max(round(microseconds / 1000, 2), 0.01)


def levels(record: Record, role: str, column: str, lasts_s: float) -> list[Point]:
    """A level of a role, over its instances; the greatest in each step, and only where it changes."""
    width_us = 100_000 * max(1, -(-int(lasts_s * 10) // _STEPS_MAX))
    rows = record.rows(
        f"""WITH levels AS (
                SELECT instance, (time_us - $start) // $width AS step, max({column}) AS level FROM timeline
                 WHERE list_contains($instances, instance) AND {column} IS NOT NULL GROUP BY ALL)
            SELECT step, sum(level) AS level FROM levels GROUP BY step ORDER BY step""",  # noqa: S608  names of our own
        start=record.start_us,
        width=width_us,
        instances=record.manifest["instances"].get(role, []),
    )
    return _changes([(round(row["step"] * width_us / 1e6, 1), int(row["level"])) for row in rows])


def _changes(points: Sequence[Point]) -> list[Point]:
    """The first point, the last, and all at which the value is another than before."""
    return [
        point for index, point in enumerate(points) if index in (0, len(points) - 1) or point[1] != points[index - 1][1]
    ]


def rates(record: Record, role: str, counter: str, width_s: float) -> list[Point]:
    """By how much a kernel's counter grew in each second, over the instances of a role."""
    rows = record.rows(
        f"""SELECT (time_us - $start) // $width AS step, sum("{counter}") AS grown FROM timeline
            WHERE list_contains($instances, instance) GROUP BY step ORDER BY step""",  # noqa: S608  a column's name
        start=record.start_us,
        width=round(width_s * 1e6),
        instances=record.manifest["instances"].get(role, []),
    )
    points = [
        (round(row["step"] * width_s, 3), round(float(row["grown"]) / width_s, 2))
        for row in rows
        if row["grown"] is not None
    ]
    return _changes(points)


def readings(record: Record, pattern: str) -> dict[tuple[str, str], list[Point]]:
    """What was read once a second: by role and name, summed over instances, by whole seconds."""
    if not record.has("readings"):
        return {}
    rows = record.rows(
        """SELECT instance, name, (time_us - $start) // 1000000 AS second, max(value) AS value FROM readings
            WHERE name LIKE $pattern GROUP BY ALL ORDER BY instance, name, second""",
        start=record.start_us,
        pattern=pattern,
    )
    found: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        of_name = found.setdefault((record.role_of.get(row["instance"], ""), row["name"]), {})
        of_name[row["second"]] = round(of_name.get(row["second"], 0) + row["value"], 1)
    order = {role: index for index, role in enumerate(record.path)}
    return {
        key: _changes(sorted((max(second, 0), value) for second, value in points.items()))
        for key, points in sorted(found.items(), key=lambda item: (order.get(item[0][0], 9), item[0][1]))
    }
