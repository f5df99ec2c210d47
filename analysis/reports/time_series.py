"""Series over time out of the derived tables, in seconds since the measurement began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from analysis.database import sql
from analysis.reports.charts import Point
from analysis.reports.run_record import Record

Together = Callable[[Iterable[float]], float]

# A page holds no more points in a line; what is above is put together.
_STEPS_MAX = 1200


def seconds(record: Record, time_us: int) -> float:
    """A moment, Unix epoch, since the measurement began."""
    return round((time_us - (record.start_us or 0)) / 1e6, 3)


def ms(microseconds: float) -> float:
    """A duration for a logarithmic scale."""
    # A logarithmic scale has no zero.
    return max(round(microseconds / 1000, 2), 0.01)


def levels(
    record: Record, role: str, level: str, lasts_s: float, together: Together = sum, *, queues: int = 1
) -> list[Point]:
    """A level of a role; the greatest in each step, and only where it changes.

    Args:
        record: the run's.
        role: whose.
        level: a column of levels.sql; where it is null, there is none.
        lasts_s: how long the time line is.
        together: what several instances make together.
        queues: how many accept queues each instance has.
    """
    width_us = 100_000 * max(1, -(-int(lasts_s * 10) // _STEPS_MAX))
    rows = record.rows(
        sql(__name__, "levels"),
        start=record.start_us,
        width=width_us,
        queues=queues,
        instances=record.manifest["instances"].get(role, []),
    )
    of_instances: dict[str, dict[int, float | None]] = {}
    for row in rows:
        of_instances.setdefault(row["instance"], {})[row["step"]] = row[level]
    points = [(round(step * width_us / 1e6, 1), value) for step, value in _joined(of_instances, together)]
    return _changes(points) if any(value is not None for _, value in points) else []


def _joined(
    of_instances: Mapping[str, Mapping[int, float | None]], together: Together
) -> Iterator[tuple[int, float | None]]:
    """What instances make together, from when all of them were read; who was not in a step is as it was before."""
    last: dict[str, float | None] = {}
    for step in sorted({step for each in of_instances.values() for step in each}):
        last |= {name: each[step] for name, each in of_instances.items() if step in each}
        if len(last) == len(of_instances):
            known = [value for value in last.values() if value is not None]
            yield step, together(known) if known else None


def _changes(points: Sequence[Point]) -> list[Point]:
    """The first point, the last, and all at which the value is another than before; what ends is drawn to its end."""
    found: list[Point] = []
    for index, (at_s, value) in enumerate(points):
        before = points[index - 1][1] if index else None
        if value is None and before is not None:
            found.append((at_s, before))
        if index in (0, len(points) - 1) or value != before:
            found.append((at_s, value))
    return found


def rates(record: Record, role: str, counter: str, width_s: float) -> list[Point]:
    """By how much a kernel's counter grew in each second, over the instances of a role."""
    found = grown(record, role, counter, round(width_s * 1e6))
    return _changes([(round(step * width_s, 3), round(growth / width_s, 2)) for step, growth in found])


def grown(record: Record, role: str, counter: str, width_us: int) -> list[tuple[int, int]]:
    """By how much a kernel's counter, a column of timeline.parquet, grew in each step, over the instances of a role."""
    rows = record.rows(
        sql(__name__, "grown"),
        start=record.start_us,
        width=width_us,
        counter=counter,
        instances=record.manifest["instances"].get(role, []),
    )
    return [(row["step"], int(row["grown"])) for row in rows]


def readings(record: Record, pattern: str) -> dict[tuple[str, str], list[Point]]:
    """What was read once a second: by role and name, summed over instances, by whole seconds."""
    if not record.has("readings"):
        return {}
    rows = record.rows(sql(__name__, "read_by_second"), start=record.start_us, pattern=pattern)
    read: dict[str, dict[int, float | None]] = {}
    found: dict[tuple[str, str], dict[str, dict[int, float | None]]] = {}
    for row in rows:
        read.setdefault(row["instance"], {})[row["second"]] = None
        of_instances = found.setdefault((record.role_of.get(row["instance"], ""), row["name"]), {})
        of_instances.setdefault(row["instance"], {})[row["second"]] = row["value"]
    order = {role: index for index, role in enumerate(record.path)}
    return {
        key: _changes(_seconds({instance: read[instance] | values for instance, values in of_instances.items()}))
        for key, of_instances in sorted(found.items(), key=lambda item: (order.get(item[0][0], 9), item[0][1]))
    }


def _seconds(of_instances: Mapping[str, Mapping[int, float | None]]) -> list[Point]:
    """The sums of instances; of those at or before the beginning the last, as what is known of it."""
    sums = {max(second, 0): value for second, value in _joined(of_instances, sum)}
    return [(second, None if value is None else round(value, 1)) for second, value in sums.items()]
