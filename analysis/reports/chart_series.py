"""Charts, and series over time out of the derived tables, in seconds since the measurement began."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from analysis.database import Row, sql
from analysis.formatting import format_number
from analysis.reports.rendering import visible
from analysis.reports.run_record import Record
from formats.manifest import listeners_of_traffic

# None: nothing from there on.
Point = tuple[float, float | None]

_ROWS_MAX = 20
# A limit that is further above what it limits would press that to the ground.
_LIMIT_IN_VIEW = 4
# How wide a bar, or a row of a table, may be, in seconds.
WIDTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600)


@dataclass
class ChartSeries:
    """One line, or one kind of bars, dots or spans: of these, points have beginning and row, and `ends` the end.

    `tone` is what it means: ok, slow, fail, connect, limit or role. A level holds until the next point.
    """

    name: str
    tone: str
    points: Sequence[Point]
    ends: Sequence[float] = ()

    @property
    def most(self) -> float:
        """Return the greatest value."""
        return max((value for _, value in self.points if value is not None), default=0)


@dataclass
class Chart:
    """One time line; `says` is its caption, `missing` why there is nothing to draw, `table` its header and rows."""

    id: str
    title: str
    says: str
    unit: str
    kind: str
    series: list[ChartSeries] = field(default_factory=list)
    missing: str | None = None
    log: bool = False
    width_s: float = 0
    notes: list[str] = field(default_factory=list)
    table: tuple[list[str], list[list[str]]] = field(default_factory=lambda: ([], []))

    def add(self, name: str, tone: str, points: Sequence[Point], ends: Sequence[float] = ()) -> None:
        """Add a series, if it has any point."""
        if points:
            self.series.append(ChartSeries(name, tone, points, ends))

    def add_limit(self, name: str, value: float, until_s: float) -> None:
        """Add a line at one height."""
        self.add(name, "limit", [(0, value), (round(until_s, 1), value)])

    def drawn(self) -> Row:
        """Return what the script draws."""
        series = [vars(each) | {"name": visible(each.name)} for each in self.series]
        own = {"id": self.id, "kind": self.kind, "unit": self.unit, "log": self.log}
        return {**own, "width": self.width_s, "series": series}

    def keep_limits_in_view(self) -> None:
        """Take limits out that are far above all else, and say where they are."""
        most = max((each.most for each in self.series if each.tone != "limit"), default=0)
        for each in [each for each in self.series if each.tone == "limit"]:
            if each.most > max(_LIMIT_IN_VIEW * most, 1):
                self.series.remove(each)
                far = f"{each.name}: {each.most:,.0f}, far above the chart (maximum measured: {most:,.0f})."
                self.notes.append(far)


def chart_table(chart: Chart, lasts_s: float) -> tuple[list[str], list[list[str]]]:
    """Return a chart as a table, in equal intervals: sums of bars, counts of spans and dots, else the most."""
    # In whole milliseconds, as fine as points are: seconds as floats would lay some into the row before.
    lasts_ms = math.ceil(round(1000 * lasts_s, 3))
    widths_ms = (round(1000 * width_s) for width_s in WIDTHS_S)
    width_ms = next((width for width in widths_ms if lasts_ms <= width * _ROWS_MAX), -(-lasts_ms // _ROWS_MAX))
    of_kind: dict[str, Callable[[Iterable[float]], str]] = {
        "bars": lambda values: format_number(sum(values)),
        "points": _spread,
        "spans": lambda values: f"{len(list(values)):,} started",
    }
    how = of_kind.get(chart.kind, _most)
    header = ["from, s", *(each.name for each in chart.series)]
    series = [[(round(1000 * at_s), value) for at_s, value in each.points] for each in chart.series]
    rows = []
    for start_ms in range(0, max(1, lasts_ms), width_ms):
        cells = []
        for points in series:
            inside = [value for at_ms, value in points if start_ms <= at_ms < start_ms + width_ms]
            if chart.kind == "lines":
                inside += [value for at_ms, value in points if at_ms <= start_ms][-1:]
            cells.append(how(value for value in inside if value is not None))
        rows.append([f"{start_ms / 1000:g}", *cells])
    return header, rows


def _most(values: Iterable[float]) -> str:
    most = max(values, default=None)
    return "" if most is None else format_number(most)


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    if not found:
        return ""
    return f"{len(found):,}: median {format_number(found[len(found) // 2])}, maximum {format_number(found[-1])}"


Together = Callable[[Iterable[float]], float]

# A page holds no more points in a line; what is above is put together.
_STEPS_MAX = 1200


def log_ms(microseconds: float) -> float:
    """Return a duration for a logarithmic scale."""
    # A logarithmic scale has no zero.
    return max(round(microseconds / 1000, 2), 0.01)


def levels(
    record: Record, role: str, level: str, lasts_s: float, together: Together = sum, *, queues: int = 1
) -> list[Point]:
    """Return a column of levels.sql for a role; the greatest in each step, and only where it changes.

    `together` is what several instances make together, and `queues` how many accept queues each of them has.
    """
    width_us = 100_000 * max(1, -(-int(lasts_s * 10) // _STEPS_MAX))
    steps = {"start": record.start_us, "width": width_us}
    rows = record.rows(sql(__name__, "levels"), **steps, queues=queues, instances=record.manifest.of_role(role))
    of_instances: dict[str, dict[int, float | None]] = {}
    for row in rows:
        of_instances.setdefault(row["instance"], {})[row["step"]] = row[level]
    points = [(round(step * width_us / 1e6, 1), value) for step, value in _joined(of_instances, together)]
    return _changes(points) if any(value is not None for _, value in points) else []


def _joined(
    of_instances: Mapping[str, Mapping[int, float | None]], together: Together
) -> Iterator[tuple[int, float | None]]:
    """Return what instances make together, once all of them were read; one not read in a step is as before."""
    last: dict[str, float | None] = {}
    for step in sorted({step for each in of_instances.values() for step in each}):
        last |= {name: each[step] for name, each in of_instances.items() if step in each}
        if len(last) == len(of_instances):
            known = [value for value in last.values() if value is not None]
            yield step, together(known) if known else None


def _changes(points: Sequence[Point]) -> list[Point]:
    """Return the first point, the last, and all where the value changes; what ends is drawn to its end."""
    found: list[Point] = []
    for index, (at_s, value) in enumerate(points):
        before = points[index - 1][1] if index else None
        if value is None and before is not None:
            found.append((at_s, before))
        if index in (0, len(points) - 1) or value != before:
            found.append((at_s, value))
    return found


def machine_busy(record: Record) -> list[tuple[int, float]]:
    """Return how busy all processors of the machine were, in percent, at each reading's time."""
    if not record.has("readings"):
        return []
    rows = record.rows(sql(__name__, "machine_busy"), instance=next(iter(record.role_of), ""))
    return [(row["time_us"], row["value"]) for row in rows]


def rates(record: Record, role: str, counter: str, width_s: float) -> list[Point]:
    """Return by how much a kernel's counter grew in each second, over the instances of a role."""
    found = counter_growth(record, role, counter, round(width_s * 1e6))
    return _changes([(round(step * width_s, 3), round(growth / width_s, 2)) for step, growth in found])


def counter_growth(record: Record, role: str, counter: str, width_us: int) -> list[tuple[int, int]]:
    """Return by how much a counter, a column of timeline.parquet, grew in each step over a role's instances."""
    steps = {"start": record.start_us, "width": width_us}
    rows = record.rows(sql(__name__, "grown"), **steps, counter=counter, instances=record.manifest.of_role(role))
    return [(row["step"], int(row["grown"])) for row in rows]


def readings(record: Record, pattern: str) -> dict[tuple[str, str], list[Point]]:
    """Return what was read once a second: by role and name, summed over instances, by whole seconds."""
    if not record.has("readings"):
        return {}
    rows = record.rows(sql(__name__, "read_by_second"), start=record.start_us, pattern=pattern)
    read: dict[str, dict[int, float | None]] = {}
    found: dict[tuple[str, str], dict[str, dict[int, float | None]]] = {}
    for row in rows:
        read.setdefault(row["instance"], {})[row["second"]] = None
        of_instances = found.setdefault((record.role_of.get(row["instance"], ""), row["name"]), {})
        of_instances.setdefault(row["instance"], {})[row["second"]] = row["value"]
    order = {role: index for index, role in enumerate(record.manifest.path)}
    return {
        key: _changes(_seconds({instance: read[instance] | values for instance, values in of_instances.items()}))
        for key, of_instances in sorted(found.items(), key=lambda item: (order.get(item[0][0], 9), item[0][1]))
    }


def _seconds(of_instances: Mapping[str, Mapping[int, float | None]]) -> list[Point]:
    """Return the sums of instances; of those at or before the beginning the last, as what is known of it."""
    sums = {max(second, 0): value for second, value in _joined(of_instances, sum)}
    return [(second, None if value is None else round(value, 1)) for second, value in sums.items()]


_OVERFLOWS = "TcpExt.ListenOverflows"


def queue_levels(record: Record, lasts_s: float) -> list[Row]:
    """Return each server's accept queues, over its instances.

    `role`, `queues` (how many), and as pairs of seconds and a value `depth`, `places` (each queue holds one more than
    its limit), `full` (1 while one of them is) and `overflows` so far.
    """
    if record.start_us is None or not record.has("timeline"):
        return []
    counted, found = _OVERFLOWS in record.columns("timeline"), []
    for role in record.manifest.path[1:]:
        level = partial(levels, record, role, lasts_s=lasts_s, queues=queues_per_instance(record, role))
        if depth := level("depth"):
            queue = {"role": role, "queues": count_queues(record, role), "depth": depth, "places": level("places")}
            so_far = _so_far(record, role) if counted else []
            found.append(queue | {"full": level("full", together=max), "overflows": so_far})
    return found


def count_queues(record: Record, role: str) -> int:
    """Return how many accept queues a role has: one of each instance, and with nginx's reuseport one of each worker."""
    return queues_per_instance(record, role) * len(record.manifest.of_role(role))


def queues_per_instance(record: Record, role: str) -> int:
    """Return how many accept queues each instance of a role has."""
    declared = record.manifest.roles[role]
    found = [record.manifest.listeners.get(each, []) for each in record.manifest.of_role(role)]
    return max((len(listeners_of_traffic(each, declared.port, ipv6=declared.ipv6)) for each in found), default=0) or 1


def _so_far(record: Record, role: str) -> list[Point]:
    found = [each for each in counter_growth(record, role, _OVERFLOWS, width_us=1) if each[1] > 0]
    totals = accumulate(growth for _, growth in found)
    return [(round(since_us / 1e6, 3), total) for (since_us, _), total in zip(found, totals, strict=True)]
