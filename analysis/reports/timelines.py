"""The time lines: what each chart draws.

A chart is a mapping for static/report.js: `id`, `kind` (`bars`, `lines`, `points` or `spans`), `unit`, and `series`:
`name`, `tone` (what it means, not how it looks) and `points`, pairs of seconds since the beginning of the measurement
and a value. Levels hold until the next point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.database import sql
from analysis.diagnosis.causes import UNEXPLAINED, cause_named
from analysis.formatting import format_ms
from analysis.reports import time_series
from analysis.reports.run_record import Record, Row
from analysis.reports.time_series import WIDTHS_S, Chart, ChartSeries, Point, chart_table

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
    return _made(_CHARTS, record, duration_s(record))


def build_comparable_charts(record: Record, until_s: float) -> list[Chart]:
    """Return those of a run that stand under another run's: of the same kind and in the same steps, whatever the load.

    Args:
        record: the run's.
        until_s: how many seconds the longest of the runs lasts.
    """
    return _made(_COMPARED, record, until_s)


def _made(makers: Sequence[Callable[[Record, float], Chart]], record: Record, until_s: float) -> list[Chart]:
    charts = [make(record, until_s) for make in makers]
    for chart in charts:
        if chart.missing is None and not any(each.points for each in chart.series):
            chart.missing = "There is no record of it."
        if chart.missing is None:
            chart.table = chart_table(chart, until_s)
    return charts


def phase_spans(record: Record) -> list[Row]:
    """Return the phases that the time lines cover, and the lab's actions: name, and from when to when in seconds."""
    start_us = record.start_us
    if start_us is None:
        return []
    acted = [
        {"name": f"{each['instance']}: {each['do']}", "start_us": each["start_us"], "end_us": each["end_us"]}
        for each in record.manifest.get("actions", [])
        if each.get("start_us") is not None and each.get("end_us") is not None
    ]
    return [
        {"name": each["name"], "from": (each["start_us"] - start_us) / 1e6, "to": (each["end_us"] - start_us) / 1e6}
        for each in (
            *(one for one in record.phases if one.get("end_us") is not None and one["name"] in ("measure", "drain")),
            *acted,
        )
    ]


def duration_s(record: Record) -> float:
    """Return how many seconds the time lines cover."""
    ends = [phase["to"] for phase in phase_spans(record)]
    if not ends and record.start_us is not None and record.has("timeline"):
        last = record.rows("SELECT max(time_us) AS time_us FROM timeline")[0]["time_us"]
        return (last - record.start_us) / 1e6 if last else 1
    return max(ends, default=1)


def _bars_s(lasts_s: float) -> float:
    return next((width for width in WIDTHS_S if lasts_s / width <= _BARS_MAX), WIDTHS_S[-1])


def _requests(record: Record, lasts_s: float) -> Chart:
    width_s = _bars_s(lasts_s)
    chart = Chart(
        "requests",
        "Requests that ended, by what became of them",
        f"Each bar is {format_ms(1000 * width_s)}: requests in the moment in which they ended. A failure carries the"
        " cause that the ledger proved.",
        f"requests in {format_ms(1000 * width_s)}",
        "bars",
        width_s=width_s,
    )
    if not record.has("requests"):
        chart.missing = "No request is on record."
        return chart
    rows = record.rows(sql(__name__, "ended"), start=record.start_us, width=round(width_s * 1e6))
    kinds = sorted({(row["outcome"], row["cause"]) for row in rows}, key=lambda kind: (_ORDER[kind[0]], str(kind[1])))
    for outcome, cause in kinds:
        counts = [row for row in rows if (row["outcome"], row["cause"]) == (outcome, cause)]
        points = [(round(row["step"] * width_s, 3), row["count"]) for row in counts]
        label = "answered well" if outcome == "ok" else f"{outcome}: {cause_named(cause or UNEXPLAINED.name).label}"
        chart.add(label, {"ok": "ok", "slow": "slow"}.get(outcome, "fail"), points)
    return chart


_ORDER = {"ok": 0, "slow": 1, "failed": 2}


def _by_outcome(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Return the name and the tone of each outcome that requests have, with these requests."""
    outcomes = (("ok", "answered well", "ok"), ("slow", "slow", "slow"), ("failed", "failed", "fail"))
    return [(name, tone, [row for row in rows if row["outcome"] == outcome]) for outcome, name, tone in outcomes]


def _times(record: Record, lasts_s: float) -> Chart:
    if not record.has("requests") or record.count_requests() > _DOTS_MAX:
        return _times_together(record, lasts_s)
    chart = _chart_of_times("points")
    chart.says = (
        "Each dot stands where a request began; its height is the time until it had its answer, or gave up. Crosses"
        " are the part that went by connecting, where that took a millisecond and more. The scale is logarithmic."
    )
    for name, tone, found in _by_outcome(record.rows(sql(__name__, "in_order"))):
        points = [(record.offset_s(row["time_us"]), time_series.log_ms(row["total_us"])) for row in found]
        chart.add(name, tone, points)
    rows = record.rows(sql(__name__, "dialled"), least_us=_WORTH_DRAWING_US)
    points = [(record.offset_s(row["time_us"]), time_series.log_ms(row["took_us"])) for row in rows]
    chart.add("connecting", "connect", points)
    return chart


def _times_together(record: Record, lasts_s: float) -> Chart:
    """However many requests there are: what they took, step by step."""
    chart = _chart_of_times("lines")
    if not record.has("requests"):
        chart.missing = "No request is on record."
        return chart
    width_s = _bars_s(lasts_s)
    chart.says = (
        f"For the requests that began in each {format_ms(1000 * width_s)}: the median, the 95th percentile and"
        " the longest, with the longest time for connecting. The scale is logarithmic."
    )
    chart.series = _percentiles(record, width_s)
    return chart


def _chart_of_times(kind: str) -> Chart:
    return Chart("times", "How long each request took", "", "ms", kind, log=True)


def _spans(record: Record, _: float) -> Chart:
    chart = Chart(
        "spans",
        "Each request, from its beginning to its end",
        "A row for each request, in the order in which they began. The thin line within,"
        " where there is room for it, is the time that went by connecting.",
        "requests under way",
        "spans",
    )
    if not record.has("requests"):
        chart.missing = "No request is on record."
        return chart
    if (count := record.count_requests()) > _SPANS_MAX:
        chart.missing = f"There are {count:,} requests, too many to draw one by one."
        return chart
    rows = record.rows(sql(__name__, "in_order"))
    for name, tone, found in _by_outcome(rows):
        points = [(record.offset_s(row["time_us"]), row["place"]) for row in found]
        ends = [record.offset_s(row["end_us"]) for row in found]
        chart.add(name, tone, points, ends)
    found = [row for row in rows if (row["dial_took_us"] or 0) >= _WORTH_DRAWING_US]
    points = [(record.offset_s(row["dial_us"]), row["place"]) for row in found]
    ends = [record.offset_s(row["dial_us"] + row["dial_took_us"]) for row in found]
    chart.add("connecting", "connect", points, ends)
    return chart


def _percentiles(record: Record, width_s: float) -> list[ChartSeries]:
    rows = record.rows(sql(__name__, "took"), start=record.start_us, width=round(width_s * 1e6))
    return [
        ChartSeries(name, tone, _steps([(row["step"], row[key]) for row in rows if row[key] is not None], width_s))
        for key, name, tone in _PERCENTILES
    ]


_PERCENTILES = (
    ("median", "median", "ok"),
    ("high", "95th percentile", "slow"),
    ("longest", "longest", "fail"),
    ("connecting", "longest for connecting", "connect"),
)


def _steps(bars: list[tuple[int, float]], width_s: float) -> list[Point]:
    """Return a level for each bar that has one, with gaps between bars that are not neighbours."""
    points: list[Point] = []
    for index, (bar, took_us) in enumerate(bars):
        points.append((round(bar * width_s, 3), time_series.log_ms(took_us)))
        if index + 1 == len(bars) or bars[index + 1][0] > bar + 1:
            end_s = round((bar + 1) * width_s, 3)
            points += [(end_s, time_series.log_ms(took_us)), (end_s, None)]
    return points


def _queue(record: Record, lasts_s: float) -> Chart:
    chart = Chart(
        "queue",
        "Accept queue: connections that wait for the server, against its limit",
        "The queue is full when it holds one more than its limit: above the dashed line each new SYN is thrown away.",
        "connections",
        "lines",
    )
    if not record.has("timeline"):
        chart.missing = "No sample of the listening sockets is on record."
        return chart
    for role in record.path[1:]:
        chart.add(f"{role}: waiting", "role", time_series.levels(record, role, "depth", lasts_s))
        chart.add(f"{role}: limit", "limit", time_series.levels(record, role, "limit", lasts_s))
        count = time_series.count_queues(record, role)
        if count > 1:
            chart.notes.append(f"{role}: its {count} queues together; one of them may be full while others have room.")
    chart.keep_limits_in_view()
    return chart


def _sockets(record: Record, _: float) -> Chart:
    chart = Chart(
        "sockets",
        "Sockets by state",
        "Read once a second. “as server” are connections that came in, “as client” those that it opened. TIME_WAIT"
        " has a chart of its own.",
        "sockets",
        "lines",
    )
    found = {
        (role, *name.split(".", 2)[1:]): points
        for (role, name), points in time_series.readings(record, "sockets.%").items()
        if any(value for _, value in points)
    }
    for (role, side, state), points in found.items():
        # Who is only one of the two need not be told.
        both = {of_role for of_role, of_side, _ in found if of_side != side}
        ends = f" as {side}" if role in both else ""
        chart.add(f"{role}{ends}: {state.upper()}", "role", points)
    return chart


def _time_wait(record: Record, lasts_s: float) -> Chart:
    chart = Chart(
        "time-wait",
        "Sockets in TIME_WAIT, against the range of ports",
        "Who closes a connection first keeps its port for 60 seconds. At the side that connects, the range of ports is"
        " all that there is for one server: when it is used up, connecting fails.",
        "sockets",
        "lines",
    )
    for role in record.path if record.has("timeline") else ():
        # Each instance has the range of ports to itself.
        points = time_series.levels(record, role, "time_wait", lasts_s, max)
        if points:
            chart.add(f"{role}: TIME_WAIT", "role", points)
            if len(record.instances(role)) > 1:
                chart.notes.append(f"{role}: of its instances the one that has the most at each moment.")
    for role in record.path[:-1]:
        ports = _ports(record, role)
        if ports and chart.series:
            chart.add(f"{role}: ports", "limit", [(0, ports), (round(lasts_s, 1), ports)])
    chart.keep_limits_in_view()
    return chart


def _ports(record: Record, role: str) -> int | None:
    """Return how many ports an instance of a role may connect from."""
    for instance in record.instances(role):
        bounds = str(record.manifest.get("sysctls", {}).get(instance, {}).get("net.ipv4.ip_local_port_range")).split()
        if len(bounds) == 2 and all(bound.isdigit() for bound in bounds):  # noqa: PLR2004  first and last
            return int(bounds[1]) - int(bounds[0]) + 1
    return None


def _kernel(record: Record, lasts_s: float) -> Chart:
    width_s = max(_bars_s(lasts_s), 0.5)
    chart = Chart(
        "kernel",
        "What the kernels counted, each second",
        "New connections, SYNs that were dropped (and of these, those that met a full accept queue), and segments that"
        " were sent again. Lines that never leave zero are left out.",
        "in each second",
        "lines",
        width_s=width_s,
    )
    columns = record.columns("timeline")
    for role in record.path:
        for counter, label, tone in _COUNTERS:
            if counter in columns and (role != record.path[0] or not counter.startswith("TcpExt.Listen")):
                points = time_series.rates(record, role, counter, width_s)
                if any(value for _, value in points):
                    chart.add(f"{role}: {label}", tone, points)
    if not columns:
        chart.missing = "No sample of the kernels' counters is on record."
    elif not chart.series:
        chart.missing = "None of these counters grew."
    return chart


_COUNTERS = (
    ("Tcp.ActiveOpens", "connections opened", "role"),
    ("Tcp.PassiveOpens", "connections taken", "role"),
    ("TcpExt.ListenDrops", "SYNs dropped", "slow"),
    ("TcpExt.ListenOverflows", "of these, at a full queue", "fail"),
    ("TcpExt.TCPReqQFullDrop", "of these, at a full SYN queue", "fail"),
    ("Tcp.RetransSegs", "segments sent again", "connect"),
    ("TcpExt.TCPTimeWaitOverflow", "TIME_WAIT sockets over the limit", "fail"),
)


def _processors(record: Record, _: float) -> Chart:
    chart = Chart(
        "cpu",
        "Processor time by process",
        "100 % is one processor. “machine” is all that its processors did, in percent of all of them: near 100 %, the"
        " figures tell of the machine.",
        "% of a processor",
        "lines",
    )
    for (role, name), points in time_series.readings(record, "cpu_percent.%").items():
        chart.add(f"{role}: {name.partition('.')[2]}", "role", points)
    chart.series = [each for each in chart.series if each.most >= _CPU_PERCENT_MIN]
    first = next(iter(record.role_of), "")
    machine = record.rows(sql(__name__, "machine_busy"), instance=first) if record.has("readings") else []
    chart.add("machine", "limit", [(record.offset_s(row["time_us"]), row["value"]) for row in machine])
    return chart


def _servers(record: Record, lasts_s: float) -> Chart:
    chart = Chart(
        "servers",
        "Connections and threads of the programs",
        "Read once a second from the programs themselves. Above a limit, connections wait in the accept queue, requests"
        " wait for a thread, and a pool keeps no more idle connections.",
        "",
        "lines",
    )
    pages = [(role, name, page) for role, each in record.roles.items() for name, page in each.scrape.items()]
    words = {
        f"{page.figure_prefix or name}.{each}": value.label or value.description or each
        for _, name, page in pages
        for each, value in page.values.items()
    }
    for source in dict.fromkeys(page.figure_prefix or name for _, name, page in pages):
        for (role, name), points in time_series.readings(record, f"{source}.%").items():
            chart.add(f"{role}: {words.get(name, name.partition('.')[2])}", "role", points)
    chart.series = [each for each in chart.series if each.most > 0]
    if chart.series:
        for role, _, page in pages:
            for value in page.values.values():
                limit = None if value.limit is None else record.knob(record.roles[role].knob(value.limit))
                if isinstance(limit, int) and not isinstance(limit, bool):
                    limit *= len(record.instances(role)) or 1
                    points = [(0, limit), (round(lasts_s, 1), limit)]
                    chart.add(f"{role}: {value.limit_label or value.limit}", "limit", points)
        chart.keep_limits_in_view()
    return chart


_CHARTS: tuple[Callable[[Record, float], Chart], ...] = (
    _requests,
    _spans,
    _times,
    _queue,
    _kernel,
    _sockets,
    _time_wait,
    _servers,
    _processors,
)
# A row for each request is not a shape that two runs can be compared by.
_COMPARED = tuple(_times_together if make is _times else make for make in _CHARTS if make is not _spans)
