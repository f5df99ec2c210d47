"""What is drawn of an observation: accept queues and the kernel's counters over time, and the waterfall below them."""

from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from analysis import formatting
from analysis.database import over_files, sql
from analysis.evidence.rawfiles import descriptor_path
from analysis.reports.chart_series import Chart, Point, chart_table
from analysis.verdicts import derived
from analysis.verdicts.connections_file import COUNTERS, QUEUES, STEPS, TABLE, Connections
from formats.safe_files import open_within

# A page with more is too large to open. The rows that failed come before others.
ROWS_MAX = 100_000
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


def _columns(columns: str) -> str:
    return f"SELECT {columns} FROM read_parquet($path, hive_partitioning = false) ORDER BY ALL"  # noqa: S608  constants


def _read(folder: Path, file: Path, query: str, **parameters: object) -> list[tuple[Any, ...]]:
    """Return what a query over a table of derived/, its `$path`, gives; none where there is no such file."""
    try:
        opened = open_within(folder, file)
    except OSError:
        return []
    with opened, over_files() as database:
        try:
            return database.execute(query, {"path": descriptor_path(opened), **parameters}).fetchall()
        except duckdb.Error:
            raise derived.DerivedError(f"{folder / file}: damaged", folder) from None


def _queue_charts(folder: Path, lasts_s: float) -> Iterator[Chart]:
    """Yield a chart for each queue that ever held a connection."""
    rows = _read(folder, QUEUES, _columns("server, step, depth, queue_limit"))
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
    rows = _read(folder, COUNTERS, _columns("instance, counter, from_us, to_us, growth"))
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


def build_waterfall(folder: Path, account: Connections) -> dict[str, Any] | None:
    """Return what static/waterfall.js draws: each connection from its SYN to its end; None where there is none.

    The rows are one list of numbers, eight for each connection: when it began, in µs since the observation did; when
    its handshake ended, its first data and its first answer came, and it ended, in µs since it began, -1 where that is
    not known; and its outcome, peer and server, by their numbers in the lists of names.
    """
    if account.start_us is None:
        return None
    peers = [target.instance for target in account.targets if target.peer]
    edges = {"start_us": account.start_us, "peers": peers, "most": ROWS_MAX}
    found = _read(folder, TABLE, sql(__name__, "waterfall"), **edges)
    if not found:
        return None
    names: list[dict[str, int]] = [{}, {}, {}]
    rows = [
        [*times, *(of.setdefault(text, len(of)) for of, text in zip(names, texts, strict=True))]
        for outcome, server, _, *times, peer in found
        for texts in [(outcome, peer, server)]
    ]
    outcomes, of_peers, servers = (list(each) for each in names)
    return {
        "count": len(rows),
        "left_out": found[0][2] - len(rows),
        "seconds": account.seconds or 0,
        "outcomes": outcomes,
        "peers": of_peers,
        "servers": servers,
        "rows": list(chain.from_iterable(rows)),
    }
