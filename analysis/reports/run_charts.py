"""The time lines of a run: what each chart draws, from the derived tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from analysis.database import Row, sql
from analysis.diagnosis.causes import UNEXPLAINED, cause_named
from analysis.formatting import format_ms
from analysis.reports import chart_series
from analysis.reports.chart_series import WIDTHS_S, Chart, Point, chart_table, log_ms
from analysis.reports.run_record import Record
from formats.manifest import PORT_RANGE, port_count
from formats.role import NO_LIMIT

# A page holds no more dots and no more bars of a kind; what is above is summed up.
_DOTS_MAX = 3000
_SPANS_MAX = 400
_BARS_MAX = 120
# What takes less is no wider than a dot.
_WORTH_DRAWING_US = 1000
# Processes that never matter are not drawn.
_CPU_PERCENT_MIN = 1.0


def build_charts(record: Record) -> list[Chart]:
    """Return all time lines of a run."""
    return _build(_CHARTS, record, duration_s(record))


def build_comparable_charts(record: Record, until_s: float) -> list[Chart]:
    """Return those that stand under another run's: of the same kind and in the same steps, whatever the load.

    `until_s` is how many seconds the longest of the runs lasts.
    """
    # A row for each request is not a shape that two runs can be compared by.
    summed = (_SUMMED_TIMES if each.id == "times" else each for each in _CHARTS if each.id != "spans")
    return _build(summed, record, until_s)


def phase_spans(record: Record) -> list[Row]:
    """Return the phases that the time lines cover, and the lab's actions: name, and from when to when in seconds."""
    start_us = record.start_us
    if start_us is None:
        return []
    phases = [(each.name, each.start_us, each.end_us) for each in record.phases if each.name in ("measure", "drain")]
    actions = [
        (f"{each.name or each.instance}: {each.do}", each.start_us, each.end_us) for each in record.manifest.actions
    ]
    return [
        {"name": name, "from": (began_us - start_us) / 1e6, "to": (ended_us - start_us) / 1e6}
        for name, began_us, ended_us in (*phases, *actions)
        if began_us is not None and ended_us is not None
    ]


def duration_s(record: Record) -> float:
    """Return how many seconds the time lines cover."""
    ends = [phase["to"] for phase in phase_spans(record)]
    if not ends and record.start_us is not None and record.has("timeline"):
        last = record.rows("SELECT max(time_us) AS time_us FROM timeline")[0]["time_us"]
        return (last - record.start_us) / 1e6 if last else 1
    return max(ends, default=1)


@dataclass(frozen=True)
class _Maker:
    """How a chart is made.

    Attributes:
        says: what it shows; `{bar}` is the width of its bars.
        needs: the derived table without which there is nothing to draw.
        fill: adds the series; gets the chart, the run and how many seconds the chart covers.
    """

    id: str
    title: str
    says: str
    unit: str
    kind: str
    fill: Callable[[Chart, Record, float], None]
    needs: str | None = None
    log: bool = False
    bar_s_min: float = 0


_NEEDED = {"requests": "No request is on record.", "timeline": "Sockets and kernel counters were not sampled."}


def _build(makers: Iterable[_Maker], record: Record, until_s: float) -> list[Chart]:
    bar_s = next((width for width in WIDTHS_S if until_s / width <= _BARS_MAX), WIDTHS_S[-1])
    charts = []
    for make in makers:
        width_s = max(bar_s, make.bar_s_min)
        bar = format_ms(1000 * width_s)
        says, unit = make.says.format(bar=bar), make.unit.format(bar=bar)
        chart = Chart(make.id, make.title, says, unit, make.kind, log=make.log, width_s=width_s)
        if make.needs and not record.has(make.needs):
            chart.missing = _NEEDED[make.needs]
        else:
            make.fill(chart, record, until_s)
        if chart.missing is None and not any(each.points for each in chart.series):
            chart.missing = "Not recorded."
        if chart.missing is None:
            chart.table = chart_table(chart, until_s)
        charts.append(chart)
    return charts


def _fill_requests(chart: Chart, record: Record, _: float) -> None:
    rows = record.rows(sql(__name__, "ended"), start=record.start_us, width=round(chart.width_s * 1e6))
    kinds: dict[tuple[str, str | None], list[Point]] = {}
    for row in rows:
        point = (round(row["step"] * chart.width_s, 3), row["count"])
        kinds.setdefault((row["outcome"], row["cause"]), []).append(point)
    order = [outcome for outcome, *_ in _OUTCOMES]
    for (outcome, cause), points in sorted(kinds.items(), key=lambda kind: (order.index(kind[0][0]), str(kind[0][1]))):
        label = "succeeded" if outcome == "ok" else f"{outcome}: {cause_named(cause or UNEXPLAINED.name).label}"
        chart.add(label, {"ok": "ok", "slow": "slow"}.get(outcome, "fail"), points)


_OUTCOMES = (("ok", "succeeded", "ok"), ("slow", "slow", "slow"), ("failed", "failed", "fail"))


def _fill_times(chart: Chart, record: Record, until_s: float) -> None:
    if record.count_requests() > _DOTS_MAX:
        chart.kind, chart.says = "lines", _SUMMED_TIMES.says.format(bar=format_ms(1000 * chart.width_s))
        _fill_summed_times(chart, record, until_s)
        return
    rows = record.rows(sql(__name__, "in_order"))
    for outcome, name, tone in _OUTCOMES:
        found = [row for row in rows if row["outcome"] == outcome]
        chart.add(name, tone, [(record.offset_s(row["time_us"]), log_ms(row["total_us"])) for row in found])
    rows = record.rows(sql(__name__, "dialled"), least_us=_WORTH_DRAWING_US)
    chart.add("connecting", "connect", [(record.offset_s(row["time_us"]), log_ms(row["took_us"])) for row in rows])


def _fill_summed_times(chart: Chart, record: Record, _: float) -> None:
    rows = record.rows(sql(__name__, "took"), start=record.start_us, width=round(chart.width_s * 1e6))
    for key, name, tone in (
        ("median", "median", "ok"),
        ("high", "95th percentile", "slow"),
        ("longest", "maximum", "fail"),
        ("connecting", "longest time to connect", "connect"),
    ):
        bars = [(row["step"], row[key]) for row in rows if row[key] is not None]
        chart.add(name, tone, _steps(bars, chart.width_s))


def _steps(bars: Sequence[tuple[int, float]], width_s: float) -> list[Point]:
    """Return a level for each bar that has one, with gaps between bars that are not neighbours."""
    points: list[Point] = []
    for index, (bar, took_us) in enumerate(bars):
        points.append((round(bar * width_s, 3), log_ms(took_us)))
        if index + 1 == len(bars) or bars[index + 1][0] > bar + 1:
            end_s = round((bar + 1) * width_s, 3)
            points += [(end_s, log_ms(took_us)), (end_s, None)]
    return points


def _fill_spans(chart: Chart, record: Record, _: float) -> None:
    if (count := record.count_requests()) > _SPANS_MAX:
        chart.missing = f"{count:,} requests are too many to draw one by one."
        return
    rows = record.rows(sql(__name__, "in_order"))

    def add(name: str, tone: str, found: Sequence[tuple[int, int, int]]) -> None:
        points = [(record.offset_s(begin_us), place) for place, begin_us, _ in found]
        chart.add(name, tone, points, [record.offset_s(end_us) for *_, end_us in found])

    for outcome, name, tone in _OUTCOMES:
        add(name, tone, [(row["place"], row["time_us"], row["end_us"]) for row in rows if row["outcome"] == outcome])
    dials = [(row["place"], row["dial_us"], row["dial_took_us"] or 0) for row in rows]
    worth = [(place, begin, begin + took) for place, begin, took in dials if took >= _WORTH_DRAWING_US]
    add("connecting", "connect", worth)


def _fill_queue(chart: Chart, record: Record, until_s: float) -> None:
    for role in record.manifest.path[1:]:
        level = partial(chart_series.levels, record, role, lasts_s=until_s)
        chart.add(f"{role}: waiting", "role", level("depth"))
        chart.add(f"{role}: limit", "limit", level("limit"))
        count = chart_series.count_queues(record, role)
        if count > 1:
            uneven = record.figures.get(f"listen.{role}.full_beside_empty")
            known = isinstance(uneven, int) and not isinstance(uneven, bool)
            seen = f"one was full while another was empty at {uneven:,} readings" if known else "one may be full"
            chart.notes.append(
                f"{role}: the sum of its {count} queues; {seen}"
                f"{_which_queue(record, role) if known else ' while others have room'}."
            )
    chart.keep_limits_in_view()


def _which_queue(record: Record, role: str) -> str:
    """Return which queue was full while another was empty, where the samples tell."""
    pattern = re.compile(rf"listen\.{role}\.queue\.(\d+)\.full_beside_empty")
    found = {
        int(match[1]): value for name, value in record.figures.items() if value and (match := pattern.fullmatch(name))
    }
    said = [f"queue {number} at {value:,}" for number, value in sorted(found.items()) if isinstance(value, int)]
    return f": {', '.join(said)} (nginx makes that of its first worker first)" if said else ""


def _fill_kernel(chart: Chart, record: Record, _: float) -> None:
    columns = record.columns("timeline")
    for role in record.manifest.path:
        for counter, label, tone in _COUNTERS:
            if counter in columns and (role != record.manifest.path[0] or not counter.startswith("TcpExt.Listen")):
                points = chart_series.rates(record, role, counter, chart.width_s)
                if any(value for _, value in points):
                    chart.add(f"{role}: {label}", tone, points)
    if not chart.series:
        chart.missing = "None of these counters grew."


_COUNTERS = (
    ("Tcp.ActiveOpens", "connections opened", "role"),
    ("Tcp.PassiveOpens", "connections received", "role"),
    ("TcpExt.ListenDrops", "SYNs dropped", "slow"),
    ("TcpExt.ListenOverflows", "of these, at a full queue", "fail"),
    ("TcpExt.TCPReqQFullDrop", "of these, at a full SYN queue", "fail"),
    ("Tcp.RetransSegs", "segments retransmitted", "connect"),
    ("TcpExt.TCPTimeWaitOverflow", "TIME_WAIT sockets over the limit", "fail"),
)


def _fill_sockets(chart: Chart, record: Record, _: float) -> None:
    found = {
        (role, *name.split(".", 2)[1:]): points
        for (role, name), points in chart_series.readings(record, "sockets.%").items()
        if any(value for _, value in points)
    }
    for (role, side, state), points in found.items():
        # The side needs no name where a role is only one of the two.
        both = {of_role for of_role, of_side, _ in found if of_side != side}
        chart.add(f"{role}{f' as {side}' if role in both else ''}: {state.upper()}", "role", points)


def _fill_time_wait(chart: Chart, record: Record, until_s: float) -> None:
    for role in record.manifest.path if record.has("timeline") else ():
        # Each instance has the range of ports to itself.
        points = chart_series.levels(record, role, "time_wait", until_s, max)
        chart.add(f"{role}: TIME_WAIT", "role", points)
        if points and len(record.manifest.of_role(role)) > 1:
            chart.notes.append(f"{role}: the highest of its instances at each moment.")
    for role in record.manifest.path[:-1]:
        if chart.series and (ports := _ports(record, role)):
            chart.add_limit(f"{role}: ports", ports, until_s)
    chart.keep_limits_in_view()


def _ports(record: Record, role: str) -> int | None:
    """Return how many ports an instance of a role may connect from."""
    for instance in record.manifest.of_role(role):
        if ports := port_count(record.manifest.sysctl(instance, PORT_RANGE)):
            return ports
    return None


def _fill_cpu(chart: Chart, record: Record, _: float) -> None:
    for (role, name), points in chart_series.readings(record, "cpu_percent.%").items():
        chart.add(f"{role}: {name.partition('.')[2]}", "role", points)
    chart.series = [each for each in chart.series if each.most >= _CPU_PERCENT_MIN]
    machine = chart_series.machine_busy(record)
    chart.add("machine", "limit", [(record.offset_s(time_us), value) for time_us, value in machine])


def _fill_servers(chart: Chart, record: Record, until_s: float) -> None:
    pages = [(role, name, page) for role, each in record.manifest.roles.items() for name, page in each.scrape.items()]
    words = {
        f"{page.figure_prefix or name}.{each}": value.label or value.description or each
        for _, name, page in pages
        for each, value in page.values.items()
    }
    for source in dict.fromkeys(page.figure_prefix or name for _, name, page in pages):
        for (role, name), points in chart_series.readings(record, f"{source}.%").items():
            chart.add(f"{role}: {words.get(name, name.partition('.')[2])}", "role", points)
    chart.series = [each for each in chart.series if each.most > 0]
    limits = [(role, value) for role, _, page in pages for value in page.values.values() if value.limit is not None]
    for role, value in limits if chart.series else ():
        limit = record.manifest.value_of(record.manifest.roles[role].knob(value.limit or ""))
        if isinstance(limit, int) and not isinstance(limit, bool) and limit != NO_LIMIT:
            count = len(record.manifest.of_role(role)) or 1
            chart.add_limit(f"{role}: {value.limit_label or value.limit}", limit * count, until_s)
    chart.keep_limits_in_view()


_TIMES = _Maker(
    "times", "How long each request took",
    "Each dot is a request, at the time when it began; its height is how long it took to succeed or fail. A cross is"
    " the time to connect, if 1 ms or more. The scale is logarithmic.",
    "ms", "points", _fill_times, needs="requests", log=True,
)  # fmt: skip
_SUMMED_TIMES = replace(
    _TIMES, kind="lines", fill=_fill_summed_times,
    says="Median, 95th percentile and maximum of the requests that began in each {bar}, and the longest time to"
    " connect. The scale is logarithmic.",
)  # fmt: skip
_CHARTS = (
    _Maker("requests", "Requests by outcome and cause",
           "Requests that ended in each {bar}. A failed or slow request is labelled with its proven cause.",
           "requests in {bar}", "bars", _fill_requests, needs="requests"),
    _Maker("spans", "Each request from start to end",
           "One row per request, in the order of their start. The thin line within is the time to connect, where there"
           " is room for it.",
           "requests in progress", "spans", _fill_spans, needs="requests"),
    _TIMES,
    _Maker("queue", "Accept queue and its limit",
           "The queue holds limit + 1 connections. While it is full, the line is above the dashed one, and new SYNs are"
           " dropped.",
           "connections", "lines", _fill_queue, needs="timeline"),
    _Maker("kernel", "Kernel counters per second",
           "New connections, dropped SYNs (and how many of these at a full queue), and retransmitted segments. Counters"
           " that stayed at zero are not drawn.",
           "per second", "lines", _fill_kernel, needs="timeline", bar_s_min=0.5),
    _Maker("sockets", "Sockets by state",
           "Read once a second. “as server”: connections that it accepted; “as client”: connections that it opened."
           " TIME_WAIT has its own chart.",
           "sockets", "lines", _fill_sockets),
    _Maker("time-wait", "Sockets in TIME_WAIT and the port range",
           "The side that closes a connection first keeps it in TIME_WAIT for 60 s. A client has one range of ports for"
           " each server: when all are in use, connecting fails.",
           "sockets", "lines", _fill_time_wait),
    _Maker("servers", "Connections and threads",
           "Read once a second from the programs. Above its limit, a connection waits in the accept queue, a request"
           " waits for a thread, and a pool closes an idle connection.",
           "", "lines", _fill_servers),
    _Maker("cpu", "Processor time by process",
           "100 % is one processor. “machine” is the usage of all processors, in percent of all of them: near 100 %,"
           " measured times are partly the machine's own delays.",
           "% of a processor", "lines", _fill_cpu),
)  # fmt: skip
