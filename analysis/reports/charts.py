"""What a time line is: its series, and the table that stands behind its chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from analysis import formatting
from analysis.reports.rendering import visible
from analysis.reports.run_record import Row

# None: nothing from there on.
Point = tuple[float, float | None]

_ROWS_MAX = 20
# A limit that is further above what it limits would press that to the ground.
_LIMIT_IN_VIEW = 4
# How wide a bar, or a row of a table, may be, in seconds.
WIDTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600)


@dataclass
class ChartSeries:
    """One line, or one kind of bars, dots or spans.

    Attributes:
        tone: ok, slow, fail, connect, limit or role.
        points: of a span its beginning, and its row.
        ends: of spans, the end of each.
    """

    name: str
    tone: str
    points: Sequence[Point]
    ends: Sequence[float] = ()

    @property
    def most(self) -> float:
        """The greatest value."""
        return max((value for _, value in self.points if value is not None), default=0)


@dataclass
class Chart:
    """One time line.

    Attributes:
        says: what it shows, in words, and what to look for.
        missing: why there is nothing to draw, None if there is.
        log: whether its scale is logarithmic.
        table: its header and rows.
    """

    id: str
    title: str
    says: str
    unit: str
    kind: str
    series: list[ChartSeries]
    missing: str | None = None
    log: bool = False
    width_s: float = 0
    notes: list[str] = field(default_factory=list)
    table: tuple[list[str], list[list[str]]] = field(default_factory=lambda: ([], []))

    def drawn(self) -> Row:
        """What the script draws."""
        return {
            "id": self.id,
            "kind": self.kind,
            "unit": self.unit,
            "log": self.log,
            "width": self.width_s,
            "series": [
                {"name": visible(each.name), "tone": each.tone, "points": each.points, "ends": each.ends}
                for each in self.series
            ],
        }


def keep_limits_in_view(chart: Chart) -> None:
    """Take limits out that are far above all else, and say where they are."""
    most = max((each.most for each in chart.series if each.tone != "limit"), default=0)
    for each in [each for each in chart.series if each.tone == "limit"]:
        if each.most > max(_LIMIT_IN_VIEW * most, 1):
            chart.series.remove(each)
            chart.notes.append(
                f"{each.name}: {each.most:,.0f}, far above the chart. The most that there was: {most:,.0f}."
            )


def table(chart: Chart, lasts_s: float) -> tuple[list[str], list[list[str]]]:
    """The same as a table, in equal intervals: sums of bars, counts of spans and dots, else the greatest value."""
    # In whole milliseconds, as fine as points are: seconds as floats would lay some into the row before.
    lasts_ms = math.ceil(round(1000 * lasts_s, 3))
    widths_ms = (round(1000 * width_s) for width_s in WIDTHS_S)
    width_ms = next((width for width in widths_ms if lasts_ms <= width * _ROWS_MAX), -(-lasts_ms // _ROWS_MAX))
    how: Callable[[Iterable[float]], str] = {"bars": _total, "points": _spread, "spans": _count}.get(chart.kind, _most)
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


def _total(values: Iterable[float]) -> str:
    return formatting.number(sum(values))


def _most(values: Iterable[float]) -> str:
    most = max(values, default=None)
    return "" if most is None else formatting.number(most)


def _count(values: Iterable[float]) -> str:
    return f"{len(list(values)):,} begun"


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    if not found:
        return ""
    return f"{len(found):,}: median {formatting.number(found[len(found) // 2])}, longest {formatting.number(found[-1])}"
