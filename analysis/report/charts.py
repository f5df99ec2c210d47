"""What a time line is: its series, and the table that stands behind its chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from analysis.page import visible
from analysis.report import words
from analysis.report.record import Row

# None: nothing from there on.
Point = tuple[float, float | None]

_ROWS_MAX = 20
# A limit that is further above what it limits would press that to the ground.
_LIMIT_IN_VIEW = 4
# How wide a bar, or a row of a table, may be, in seconds.
WIDTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600)


@dataclass
class Series:
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
    series: list[Series]
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
    width_s = next((width for width in WIDTHS_S if lasts_s / width <= _ROWS_MAX), lasts_s / _ROWS_MAX)
    how: Callable[[Iterable[float]], str] = {"bars": _total, "points": _spread, "spans": _count}.get(chart.kind, _most)
    header = ["from, s", *(each.name for each in chart.series)]
    rows = []
    for number in range(max(1, -(-int(lasts_s * 10) // round(width_s * 10)))):
        start_s, end_s = number * width_s, (number + 1) * width_s
        cells = []
        for each in chart.series:
            inside = [value for at, value in each.points if start_s <= at < end_s and value is not None]
            if chart.kind == "lines":
                before = [value for at, value in each.points if at <= start_s]
                inside += [value for value in before[-1:] if value is not None]
            cells.append(how(inside))
        rows.append([f"{start_s:g}", *cells])
    return header, rows


def _total(values: Iterable[float]) -> str:
    return f"{sum(values):,g}"


def _most(values: Iterable[float]) -> str:
    found = list(values)
    return words.number(float(max(found))) if found else ""


def _count(values: Iterable[float]) -> str:
    return f"{len(list(values)):,} begun"


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    if not found:
        return ""
    return f"{len(found):,}: median {words.number(found[len(found) // 2])}, longest {words.number(found[-1])}"
