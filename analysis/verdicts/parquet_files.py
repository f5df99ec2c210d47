"""The Parquet files beside ledger.json: from the same raw files always the same bytes.

- requests.parquet: each request with its dial, connections, access line, outcome, cause and evidence;
- flows.parquet: each connection of each capture;
- timeline.parquet: what each instance counted, in steps of 100 ms.

docs/data-format.md describes their columns.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from analysis.database import Integers, create, has_rows, insert, over_files, sql
from analysis.diagnosis.joins import Joined
from analysis.evidence import window_readings
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.rawrun import RawRun, Scraped
from analysis.evidence.samples import read_machine_ms
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown
from analysis.figures import Run
from analysis.output import copy_rows

FILES = ("requests.parquet", "flows.parquet", "timeline.parquet")

STEP_US = 100_000

# A day; a manifest whose phases last longer is damaged.
_STEPS_MAX = 864_000


REQUESTS = sql(__name__, "requests_file")
# What the files of a run with TLS have besides. Without TLS they have no such columns.
_WITH_TLS = {
    "requests.parquet": "SELECT * FROM ({rows}) LEFT JOIN (SELECT instance, id, tls_wait_us, up_tls_wait_us FROM waits)"
    " USING (instance, id) ORDER BY instance, id",
    "flows.parquet": "SELECT * FROM ({rows}) LEFT JOIN tls_handshakes USING (observer, id) ORDER BY observer, id",
}


def write(run: Run, folder: Path) -> None:
    """Write the files into a folder; those of a run that has none are removed."""
    joined, window = run.joined, run.joined_window
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    if isinstance(joined, Unknown) or isinstance(window, Unknown):
        return
    _timeline(run, joined, window)
    queries = (REQUESTS, sql(__name__, "flows_file"), "SELECT * FROM timeline ORDER BY time_us, instance")
    with_tls = _WITH_TLS if has_rows(joined.database, "tls_handshakes") else {}
    for name, rows in zip(FILES, queries, strict=True):
        copy_rows(joined.execute, with_tls.get(name, "{rows}").format(rows=rows), folder / name)


def _timeline(run: Run, joined: Joined, window: Window) -> None:
    """Make the table `timeline`: for each instance and each step of the window, what its ticks in it say."""
    steps = min(-(-(window.end_us - window.start_us) // STEP_US), _STEPS_MAX)
    names = _changing_counters(run)
    counts = ("ticks", "listen_depth", "listen_limit", "time_wait", *_OF_CLIENTS, *names)
    types = {"time_us": "BIGINT", "instance": "VARCHAR", **dict.fromkeys(counts, "BIGINT")}
    create(joined.database, "timeline", types)
    for instance in run.raw.instances:
        columns = {"time_us": window.start_us + STEP_US * np.arange(steps, dtype=np.int64)}
        columns |= _of_requests(run, joined, instance, window, steps)
        columns |= _of_ticks(run, instance, window, steps, names)
        selected = ", ".join(f'nullif("{name}", {_NONE}) AS "{name}"' for name in columns)
        insert(joined.database, "timeline", columns, f"'{instance}' AS instance, {selected}")


# Stands for what is not known: no count of the kernel is below 0, and no difference of two is this far.
_NONE = -(1 << 62)


def _changing_counters(run: Run) -> list[str]:
    """Return the counters that grew in any instance; sockstat has levels instead."""
    found = {
        name
        for samples in run.raw.samples.values()
        for name, counter in samples.counters.items()
        if len(counter.values) > 1 and not name.startswith("sockstat.")
    }
    return sorted(name for name in found if name.replace(".", "").isalnum())


_OF_CLIENTS = ("requests_begun", "requests_ended", "requests_failed")


def _of_requests(run: Run, joined: Joined, instance: str, window: Window, steps: int) -> dict[str, Integers]:
    """Count a client's requests in each step; what is not a client has none to count."""
    if instance not in run.raw.clients:
        return {name: np.full(steps, _NONE, dtype=np.int64) for name in _OF_CLIENTS}
    found = joined.execute(
        "SELECT time_us, end_us, outcome = 'failed' AS failed FROM cases WHERE instance = $instance", instance=instance
    ).fetchnumpy()
    begun, ended = (np.asarray(found[name], dtype=np.int64) for name in ("time_us", "end_us"))
    failed = np.asarray(found["failed"], dtype=bool)
    counted = (begun, ended, ended[failed])
    return {name: _per_step(times_us, window, steps) for name, times_us in zip(_OF_CLIENTS, counted, strict=True)}


def _per_step(times_us: Integers, window: Window, steps: int) -> Integers:
    at = (times_us - window.start_us) // STEP_US
    return np.bincount(at[(at >= 0) & (at < steps)], minlength=steps).astype(np.int64)


def _of_ticks(run: Run, instance: str, window: Window, steps: int, names: list[str]) -> dict[str, Integers]:
    """Return the columns by step: what grew counts where a tick saw it; a level is the step's last reading."""
    samples = run.raw.samples[instance]
    at = (np.array([tick.time_us for tick in samples.ticks], dtype=np.int64) - window.start_us) // STEP_US
    inside = (at >= 0) & (at < steps)
    ticks = np.bincount(at[inside], minlength=steps).astype(np.int64)
    listeners = [samples.traffic(tick) for tick in range(len(samples.ticks))]
    columns = {"ticks": ticks}
    for column, levels in (
        ("listen_depth", [sum(each.depth for each in of_tick) if of_tick else _NONE for of_tick in listeners]),
        ("listen_limit", [sum(each.limit for each in of_tick) if of_tick else _NONE for of_tick in listeners]),
        ("time_wait", samples.series("sockstat.TCP.tw")),
    ):
        values = np.full(steps, _NONE, dtype=np.int64)
        values[at[inside]] = np.asarray(levels, dtype=np.int64)[inside]
        columns[column] = values
    for name in names:
        grown = np.diff(samples.series(name), prepend=0)
        values = np.zeros(steps, dtype=np.int64)
        np.add.at(values, at[inside], grown[inside])
        columns[name] = np.where(ticks > 0, values, _NONE)
    return columns


READINGS = Path("derived") / "readings.parquet"

# One value: when it was read, of which instance, its name, and itself.
_Row = tuple[int, str, str, float]


def write_readings(run: Run, folder: Path) -> None:
    """Write the file into a run's folder; that of a run without a window is removed."""
    path, window = folder / READINGS, run.joined_window
    path.unlink(missing_ok=True)
    if isinstance(window, Unknown):
        return
    rows = sorted(_rows(run.raw, window))
    columns = zip(("time_us", "instance", "name", "value"), zip(*rows, strict=True) if rows else ([],) * 4, strict=True)
    types = {"time_us": "int64", "value": "float64"}
    with over_files() as database:
        database.register(
            "incoming", {name: np.array(values, dtype=types.get(name, "object")) for name, values in columns}
        )
        query = "SELECT time_us, instance::VARCHAR AS instance, name::VARCHAR AS name, value FROM incoming"
        copy_rows(database.execute, query, path)


def _rows(raw: RawRun, window: Window) -> Iterator[_Row]:
    for instance, samples in raw.samples.items():
        counts = [
            (record["time_us"], _sockets(record))
            for record in window_readings.readings_from_before_start(samples.sockets, window.start_us, window.end_us)
        ]
        for name in {name for _, counted in counts for name in counted}:
            # No socket in a state is not a line of a reading, and a count all the same.
            yield from ((time_us, instance, name, counted[name]) for time_us, counted in counts)
        readings = window_readings.readings_from_before_start(samples.processes, window.start_us, window.end_us)
        for before, after in pairwise(readings):
            for name, percent in _processor(before, after):
                yield after["time_us"], instance, name, percent
    for scraped in raw.scraped:
        yield from _levels(scraped, window)


def _sockets(record: Record) -> Counter[str]:
    counts: Counter[str] = Counter()
    for group in records(record, "groups"):
        side, state, count = group.get("side"), group.get("state"), integer(group, "count")
        if isinstance(side, str) and isinstance(state, str) and count is not None:
            counts[f"sockets.{side}.{state.lower()}"] += count
    return counts


def _processor(before: Record, after: Record) -> Iterator[tuple[str, float]]:
    """Yield what each program used from one reading to the next, in percent of one processor; then the machine."""
    lasted_us = after["time_us"] - before["time_us"]
    if lasted_us <= 0:
        return
    used_ms = {process.get("pid"): integer(process, "cpu_ms") for process in records(before, "processes")}
    of_program: Counter[str] = Counter()
    for process in records(after, "processes"):
        program, cpu_ms = process.get("comm"), integer(process, "cpu_ms")
        if isinstance(program, str) and cpu_ms is not None:
            # A process that is new began in between: all that it used counts.
            of_program[program] += max(cpu_ms - (used_ms.get(process.get("pid")) or 0), 0)
    for program, cpu_ms in of_program.items():
        yield f"cpu_percent.{program}", round(100_000 * cpu_ms / lasted_us, 2)
    first, last = read_machine_ms(before), read_machine_ms(after)
    if first and last and last[0] > first[0]:
        yield "host.cpu_percent", round(100 * (1 - (last[1] - first[1]) / (last[0] - first[0])), 2)


def _levels(scraped: Scraped, window: Window) -> Iterator[_Row]:
    """Yield what a page says: its levels that are figures, too."""
    names = {
        name: f"{scraped.figure_prefix}.{name}"
        for name, value in scraped.page.values.items()
        if value.description is not None and not value.grows
    }
    times_us = scraped.scrape.times_us
    for index in window_readings.indices_from_before_start(times_us, window.start_us, window.end_us):
        values = scraped.values[index]
        for name, full in names.items():
            if name in values:
                yield times_us[index], scraped.instance, full, values[name]
