"""The time lines of an observation, above its connections: accept queues and the kernel's counters."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from analysis import formatting
from analysis.database import over_files
from analysis.evidence.rawfiles import descriptor_path
from analysis.reports.time_series import Chart, Point, chart_table
from analysis.verdicts import derived
from analysis.verdicts.connections_file import COUNTERS, QUEUES, STEPS, Connections
from formats.safe_files import open_within

# Label and tone of each counter that is drawn; those of a chart have one scale.
_CHARTS = (
    (
        "drops",
        "Dropped and failed handshakes at",
        {
            "TcpExt.ListenDrops": ("SYNs dropped", "slow"),
            "TcpExt.ListenOverflows": ("of these, at a full accept queue", "fail"),
            "TcpExt.TCPReqQFullDrop": ("of these, at a full SYN queue", "fail"),
            "TcpExt.TCPReqQFullDoCookies": ("SYN cookies at a full SYN queue", "role"),
            "Tcp.AttemptFails": ("handshakes that failed", "role"),
        },
    ),
    (
        "again",
        "Packets sent again, and resets, at",
        {
            "Tcp.RetransSegs": ("segments retransmitted", "slow"),
            "TcpExt.TCPSynRetrans": ("of these, SYN or SYN-ACK", "fail"),
            "Tcp.OutRsts": ("RSTs sent", "role"),
            "TcpExt.TCPTimeWaitOverflow": ("TIME_WAIT sockets over the limit", "role"),
        },
    ),
)


def build_charts(folder: Path, account: Connections) -> list[Chart]:
    """Return all time lines of an observation; raises DerivedError if a table is damaged."""
    lasts_s = account.seconds or 0
    found = [*_queue_charts(folder, lasts_s), *_counter_charts(folder, account)]
    for chart in found:
        chart.table = chart_table(chart, lasts_s)
    return found


def _read(folder: Path, file: Path, columns: str) -> list[tuple[Any, ...]]:
    try:
        opened = open_within(folder, file)
    except OSError:
        return []
    query = f"SELECT {columns} FROM read_parquet($path, hive_partitioning = false) ORDER BY ALL"  # noqa: S608  constants
    with opened, over_files() as database:
        try:
            return database.execute(query, {"path": descriptor_path(opened)}).fetchall()
        except duckdb.Error:
            raise derived.DerivedError(f"{folder / file}: damaged", folder) from None


def _queue_charts(folder: Path, lasts_s: float) -> Iterator[Chart]:
    """Yield a chart for each queue that ever held a connection."""
    rows = _read(folder, QUEUES, "server, step, depth, queue_limit")
    width_s = lasts_s / STEPS
    for number, (server, found) in enumerate(groupby(rows, key=itemgetter(0)), start=1):
        steps = [(round(step * width_s, 3), depth, limit) for _, step, depth, limit in found]
        says = f"The most connections in the queue in each of {len(steps)} equal steps; the limit is"
        limit = formatting.format_number(max(limit for *_, limit in steps))
        chart = Chart(f"queue-{number}", f"Accept queue of {server}", f"{says} {limit}.", "connections", "lines")
        chart.add("in the queue", "role", [(at_s, depth) for at_s, depth, _ in steps])
        chart.add("limit", "limit", [(at_s, limit) for at_s, _, limit in steps])
        chart.keep_limits_in_view()
        yield chart


def _counter_charts(folder: Path, account: Connections) -> Iterator[Chart]:
    """Yield charts of the counters that grew, for each target."""
    rows = _read(folder, COUNTERS, "instance, counter, from_us, to_us, growth")
    grown: dict[tuple[str, str], list[Point]] = {}
    for key, found in groupby(rows, key=itemgetter(0, 1)):
        grown[key] = _rates([(from_us, to_us, growth) for *_, from_us, to_us, growth in found])
    says = (
        "How much each counter grew in a second, between one reading and the next. Those that stood still are left out."
    )
    for number, target in enumerate(account.targets, start=1):
        for part, title, counters in _CHARTS:
            chart = Chart(f"{part}-{number}", f"{title} {target.name}", says, "per second", "lines")
            for name, (label, tone) in counters.items():
                chart.add(label, tone, grown.get((target.instance, name), []))
            if chart.series:
                yield chart


def _rates(readings: list[tuple[int, int, int | None]]) -> list[Point]:
    """Return growth as a level from reading to reading, with gaps where it is not known."""
    points: list[Point] = []
    for number, (from_us, to_us, growth) in enumerate(readings):
        rate = None if growth is None else float(f"{growth / max(to_us - from_us, 1) * 1e6:.4g}")
        points.append((round(from_us / 1e6, 3), rate))
        if rate is not None and (number + 1 == len(readings) or readings[number + 1][2] is None):
            points.append((round(to_us / 1e6, 3), rate))
    return [*points, (points[-1][0], None)] if points and points[-1][1] is not None else points
