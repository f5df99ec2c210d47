"""Puts what every observer recorded into tables of one DuckDB in memory, a row for each record.

Times are microseconds since the Unix epoch, as in the raw files. What is missing or damaged is left out here; the
health of the instruments says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice

import duckdb
import numpy as np

from analysis.database import Integers, composed, create, insert, insert_rows, literal, sql
from analysis.evidence import container_log, logs, processes
from analysis.evidence.jsonl import Record, integer, records
from analysis.evidence.logs import lines_of
from analysis.evidence.rawrun import RawRun
from analysis.evidence.records import put_on_steady, tell_processes_apart
from analysis.evidence.samples import Listener, Samples, read_machine_ms
from formats.manifest import ActionRecord
from formats.role import CONTAINER_LOG
from formats.safe_files import open_regular

# docs/flows.md says what each is.
FLOWS = {
    "id": "BIGINT", "reused_port_of": "BIGINT",
    "client_address": "VARCHAR", "client_port": "BIGINT", "server_address": "VARCHAR", "server_port": "BIGINT",
    "client_inferred": "BOOLEAN", "client_isn": "BIGINT", "server_isn": "BIGINT",
    "first_packet": "BIGINT", "first_time_us": "BIGINT", "last_time_us": "BIGINT",
    "syn_count": "BIGINT", "syn_retransmissions": "BIGINT", "syn_times_us": "BIGINT[]",
    "synack_count": "BIGINT", "synack_times_us": "BIGINT[]", "answered": "BOOLEAN", "established": "BOOLEAN",
    "simultaneous_open": "BOOLEAN", "handshake_ack_time_us": "BIGINT", "handshake_us": "BIGINT",
    "client_packets": "BIGINT", "client_payload_bytes": "BIGINT", "client_unique_bytes": "BIGINT",
    "client_missing_bytes": "BIGINT", "client_retransmissions": "BIGINT", "client_out_of_order": "BIGINT",
    "client_duplicate_acks": "BIGINT", "client_first_data_time_us": "BIGINT", "client_last_data_time_us": "BIGINT",
    "server_packets": "BIGINT", "server_payload_bytes": "BIGINT", "server_unique_bytes": "BIGINT",
    "server_missing_bytes": "BIGINT", "server_retransmissions": "BIGINT", "server_out_of_order": "BIGINT",
    "server_duplicate_acks": "BIGINT", "server_first_data_time_us": "BIGINT", "server_last_data_time_us": "BIGINT",
    "client_fin_time_us": "BIGINT", "server_fin_time_us": "BIGINT", "first_fin_by": "VARCHAR",
    "client_rst_count": "BIGINT", "server_rst_count": "BIGINT", "first_rst_by": "VARCHAR",
    "first_rst_time_us": "BIGINT", "closed_by": "VARCHAR", "close_kind": "VARCHAR", "simultaneous_close": "BOOLEAN",
    "time_wait_owner": "VARCHAR", "truncated_start": "BOOLEAN", "truncated_end": "BOOLEAN", "stray_packets": "BIGINT",
    "sequence_exact": "BOOLEAN",
}  # fmt: skip

# The times of a TLS handshake; an earlier `flows` has none.
TLS_TIMES = ("client_hello_time_us", "server_hello_time_us", "client_reply_time_us", "tls_end_time_us")


def open_database(raw: RawRun) -> duckdb.DuckDBPyConnection:
    """Return a database with the tables of a run; it never raises for what the run's files hold or lack."""
    database = raw.records.database
    _load_instances(database, raw)
    _load_error_log(database, raw)
    load_captured(database, raw)
    _load_samples(database, raw)
    _load_servers(database, raw)
    _load_scrapes(database, raw)
    return database


def _load_instances(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    create(database, "instances", {"instance": "VARCHAR", "role": "VARCHAR"})
    create(database, "addresses", {"instance": "VARCHAR", "address": "VARCHAR"})
    create(database, "rules", {"instance": "VARCHAR", "number": "BIGINT", "rule": "VARCHAR", "place": "VARCHAR"})
    manifest = raw.manifest
    for role, instances in manifest.instances.items():
        rules = manifest.roles[role].rules if role in manifest.roles else ()
        for instance in instances:
            database.execute("INSERT INTO instances VALUES (?, ?)", [instance, role])
            for number, rule in enumerate(rules):
                database.execute("INSERT INTO rules VALUES (?, ?, ?, ?)", [instance, number, rule.text, rule.where])
            for address in manifest.addresses.get(instance, []):
                database.execute("INSERT INTO addresses VALUES (?, ?)", [instance, address])
    columns = {"number": "BIGINT", "instance": "VARCHAR", "deed": "VARCHAR", "words": "VARCHAR", "is_ending": "BOOLEAN"}
    create(database, "actions", columns | {"throttled": "VARCHAR", "start_us": "BIGINT", "until_us": "BIGINT"})
    for number, action in enumerate(manifest.actions):
        if action.start_us is not None:
            row = [number, action.concerns, action.do, action.words, action.is_ending, _throttled(raw, action)]
            times = [action.start_us, manifest.until_us(action)]
            database.execute("INSERT INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [*row, *times])


# The kernel gives a limited container its share anew in each period.
_PERIOD_US = 100_000
# A limit that held its server in fewer of the periods is not the wait of most requests.
_PERIODS_MIN = 0.5
# A reading counts processor time in ticks of 10 ms, one for each process.
_USED_MIN = 0.9


def _throttled(raw: RawRun, action: ActionRecord) -> str | None:
    """Return how the evidence shows that a limit held its server for most of its time; None where it shows none."""
    if action.do != "cpu" or action.cpus is None or action.start_us is None or action.end_us is None:
        return None
    if action.throttled_periods is not None:
        periods = (action.end_us - action.start_us) // _PERIOD_US
        if action.throttled_periods < _PERIODS_MIN * periods:
            return None
        return f"throttled in {min(action.throttled_periods, periods)} of {periods} periods of 100 ms (nr_throttled)"
    within = [
        reading
        for reading in raw.processes.get(action.instance, ())
        if action.start_us <= reading["time_us"] <= action.end_us
    ]
    percent = processes.cpu_percent(within)
    if percent is None or percent < _USED_MIN * 100 * action.cpus:
        return None
    return f"at its limit: its processes used {percent / 100:.2g} processors"


# So many messages of an error log are in memory before they become rows.
_ERRORS_AT_ONCE = 10_000


_MESSAGE = ("instance", "line", "time_us", "serial", "text")
_MESSAGES = "instance, line, time_us, nullif(serial, 0) AS connection, text"


def _load_error_log(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    columns = {"instance": "VARCHAR", "line": "BIGINT", "time_us": "BIGINT", "connection": "BIGINT", "text": "VARCHAR"}
    create(database, "errors", columns)
    for instance, name, of in raw.manifest.logged(logs.ERRORS):
        # A file that is not there or cannot be read at all: its instrument's health says so.
        with contextlib.suppress(OSError), open_regular(raw.places.role(instance, name)) as file:
            said = ((number, logs.ERRORS[of](line)) for number, line in lines_of(file))
            found = ((instance, number, *message) for number, message in said if message is not None)
            while part := list(islice(found, _ERRORS_AT_ONCE)):
                insert_rows(database, "errors", _MESSAGE, part, _MESSAGES)
        put_on_steady(database, "errors", instance, raw.clocks.of(instance), "time_us")
    tell_processes_apart(database, raw.manifest, "errors", "time_us", resolution_us=1_000_000)


def load_captured(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the tables `captured` and `tls_handshakes`, a row for each connection in each capture, and each of TLS."""
    create(database, "captured", {"observer": "VARCHAR", "handshakes_only": "BOOLEAN", **FLOWS})
    create(database, "tls_handshakes", {"observer": "VARCHAR", "id": "BIGINT", **dict.fromkeys(TLS_TIMES, "BIGINT")})
    for instance, reduction in raw.reductions.items():
        if reduction.rows is not None:
            only = raw.captures[instance].handshakes_only
            database.execute(
                composed(__name__, "captured_of_instance", columns=", ".join(FLOWS)),
                {"observer": instance, "handshakes_only": only, "path": literal(reduction.rows)},
            )
            if reduction.knows_tls:
                of_instance = {"observer": instance, "path": literal(reduction.rows)}
                database.execute(sql(__name__, "tls_handshakes_of_instance"), of_instance)


# What the kernel counts of connections that it throws away, in the order of the columns below.
_COOKIES = "TcpExt.TCPReqQFullDoCookies"
DROP_COUNTERS = (
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    _COOKIES,
    "TcpExt.TCPReqQFullDrop",
)
# What tells whether a SYN came to a socket: SYN-ACKs sent again, cookies; and of a namespace that follows connections,
# how many there are, how many there may be, and the packets dropped because there was no place for another. Then the
# ACKs that a socket with TCP_DEFER_ACCEPT did not take.
SOCKET_COUNTERS = {
    "syns_again": "TcpExt.TCPSynRetrans",
    "cookies_sent": "TcpExt.SyncookiesSent",
    "tracked": "conntrack.table.entries",
    "tracked_max": "conntrack.table.max",
    "untracked": "conntrack.drop",
    "deferred": "TcpExt.TCPDeferAcceptDrop",
}


# All sockets in TIME_WAIT of a namespace, with each tick.
_TIME_WAIT = "sockstat.TCP.tw"

TICKS = ("n", "time_us", "listeners", "depth", "queue_limit", "drops", "overflows", "listen_drops", "cookies",
         "syn_queue_drops")  # fmt: skip


def _load_samples(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    create_ticks(database)
    create(
        database, "processors", {"machine": "VARCHAR", **dict.fromkeys(("time_us", "total_ms", "idle_ms"), "BIGINT")}
    )
    create(database, "machines", {"instance": "VARCHAR", "machine": "VARCHAR"})
    create(database, "waiting_sockets", {"instance": "VARCHAR", **dict.fromkeys(("time_us", "count"), "BIGINT")})
    # Whether the server that answers the requests asks another one.
    asks = len(raw.manifest.path) > len(raw.manifest.request_path)
    for instance, samples in raw.samples.items():
        if samples.ticks:
            listeners = [samples.traffic(tick) for tick in range(len(samples.ticks))]
            columns = tick_columns(samples, listeners, _dropped_of_traffic(samples))
            columns |= socket_columns(samples)
            insert(database, "ticks", columns, f"'{instance}' AS instance, *")
            if asks and instance in raw.manifest.of_role(raw.manifest.origin or "") and _TIME_WAIT in samples.counters:
                counts = {"time_us": columns["time_us"], "count": samples.series(_TIME_WAIT)}
                insert(database, "waiting_sockets", counts, f"'{instance}' AS instance, *")
    for machine, instances in raw.clocks.together(raw.samples).items():
        insert_rows(database, "machines", ["instance", "machine"], [(each, machine) for each in instances])
        # All samplers of a machine see the same host; one that has readings will do.
        hosts = next(filter(None, (_processors(raw.samples[each]) for each in instances)), [])
        if hosts:
            readings = zip(("time_us", "total_ms", "idle_ms"), zip(*hosts, strict=True), strict=True)
            insert(database, "processors", {"machine": [machine] * len(hosts), **dict(readings)})


def count_drops(samples: Samples, *, inner: bool) -> Integers:
    """Return what the listeners of the traffic, or all others (`inner`), had dropped by each tick, since the first one.

    By their own counters, which count a packet after the SYN twice: tcp_listendrop() does, and then who discards it.
    """
    counts = np.zeros(len(samples.ticks), dtype=np.int64)
    for number, tick in enumerate(samples.ticks):
        traffic = samples.traffic(number)
        counts[number] = sum(each.drops or 0 for each in tick.listeners if (each not in traffic) is inner)
    return grown(counts)


def grown(counts: Integers) -> Integers:
    """Return how much a count grew since the first tick; a listener that was opened again counts anew."""
    return np.cumsum(np.clip(np.diff(counts, prepend=counts[:1]), 0, None))


def _dropped_of_traffic(samples: Samples) -> Iterator[Integers]:
    """Yield the namespace's counters of drops; where others dropped, too, no more than the traffic's own listeners."""
    others = count_drops(samples, inner=True).any()
    own = np.diff(count_drops(samples, inner=False), prepend=0)
    for name in DROP_COUNTERS:
        counter = samples.series(name)
        # With a cookie the kernel drops nothing.
        if others and name != _COOKIES:
            counter = np.cumsum(np.minimum(np.diff(counter, prepend=counter[:1]), own))
        yield counter


INNER_QUEUES = {
    "instance": "VARCHAR", "time_us": "BIGINT", "name": "VARCHAR", "depth": "BIGINT", "queue_limit": "BIGINT",
}  # fmt: skip
PROCESSES = {
    "instance": "VARCHAR", "time_us": "BIGINT", "pid": "BIGINT", "comm": "VARCHAR", "open_files": "BIGINT",
    "open_files_limit": "BIGINT",
}  # fmt: skip
_FILES = ("open_files", "open_files_limit")
INNER_REFUSALS = {"instance": "VARCHAR", "line": "BIGINT", "time_us": "BIGINT", "name": "VARCHAR"}
ENDINGS = {"instance": "VARCHAR", "line": "BIGINT", "time_us": "BIGINT", "pid": "BIGINT"}


def _load_servers(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Load what waited inside the servers' containers, their processes, and what they printed of both."""
    create(database, "inner_queues", INNER_QUEUES)
    create(database, "server_processes", PROCESSES)
    create(database, "inner_refusals", INNER_REFUSALS)
    create(database, "told_endings", ENDINGS)
    manifest = raw.manifest
    for instance, samples in raw.samples.items():
        if instance in manifest.clients:
            continue
        held = [
            (tick.time_us, queue.name, queue.depth, queue.limit)
            for number, tick in enumerate(samples.ticks)
            for queue in samples.inner_queues(number)
            if queue.depth
        ]
        select = f"'{instance}' AS instance, *"
        insert_rows(database, "inner_queues", ("time_us", "name", "depth", "queue_limit"), held, select)
        role = next((role for name, role in manifest.roles.items() if instance in manifest.of_role(name)), None)
        with contextlib.suppress(OSError), open_regular(raw.places.log(instance, CONTAINER_LOG)) as file:
            said = container_log.read(file)
            insert_rows(database, "inner_refusals", ("line", "time_us", "name"), said.refusals, select)
            if role is not None and samples.processes:
                insert_rows(database, "told_endings", ("line", "time_us", "pid"), said.endings, select)
        for table in ("inner_refusals", "told_endings"):
            put_on_steady(database, table, instance, raw.clocks.of(instance), "time_us")
        if role is not None:
            _load_processes(database, instance, processes.select_role(samples.processes, role.processes))


def _load_processes(database: duckdb.DuckDBPyConnection, instance: str, readings: Iterable[Record]) -> None:
    """Load a server's processes at each reading, which also has a row without a number."""
    rows = [
        (
            reading["time_us"],
            process["pid"] or None,
            str(process.get("comm")),
            *(integer(process, name) for name in _FILES),
        )
        for reading in readings
        for process in [*records(reading, "processes"), {"pid": 0}]
        if integer(process, "pid") is not None
    ]
    insert_rows(database, "server_processes", ("time_us", "pid", "comm", *_FILES), rows, f"'{instance}' AS instance, *")


def create_ticks(database: duckdb.DuckDBPyConnection) -> None:
    """Make the table `ticks`, empty."""
    create(database, "ticks", {"instance": "VARCHAR", **dict.fromkeys((*TICKS, *SOCKET_COUNTERS), "BIGINT")})


def socket_columns(samples: Samples) -> dict[str, Integers]:
    """Return those columns of `SOCKET_COUNTERS` that are known."""
    return {name: samples.series(counter) for name, counter in SOCKET_COUNTERS.items() if counter in samples.counters}


def tick_columns(
    samples: Samples, listeners: list[list[Listener]], counters: Iterable[Integers]
) -> dict[str, Integers]:
    """Return the columns of `ticks`: the sums over the listeners that there are at each tick, and counters."""
    sums = [
        [sum(getattr(each, key) or 0 for each in of_tick) for of_tick in listeners]
        for key in ("depth", "limit", "drops")
    ]
    times_us = [tick.time_us for tick in samples.ticks]
    columns = (range(len(times_us)), times_us, list(map(len, listeners)), *sums)
    return dict(zip(TICKS, [*(np.array(each, dtype=np.int64) for each in columns), *counters], strict=True))


def _processors(samples: Samples) -> list[tuple[int, int, int]]:
    """Return when the processors' time was read, and the two values: with each tick, in earlier runs once a second."""
    readings = [(tick.time_us, tick.machine_ms) for tick in samples.ticks]
    if not any(machine_ms for _, machine_ms in readings):
        readings = [(record["time_us"], read_machine_ms(record)) for record in samples.processes]
    return [(time_us, *machine_ms) for time_us, machine_ms in readings if machine_ms is not None]


def _load_scrapes(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Load the servers' busy threads, the most there may be, and the work done; NULL for what a scrape lacks."""
    columns = {"busy": "threads_busy", "threads_max": "threads_max", "processing_ms": "processing_ms",
               "requests": "requests"}  # fmt: skip
    create(database, "scrapes", {"instance": "VARCHAR", **dict.fromkeys(("time_us", *columns), "BIGINT")})
    of_servers = [each for each in raw.scraped if raw.manifest.kind_of(each.role) == "server"]
    for scraped in of_servers:
        # A page that says nothing of threads is another one.
        if not {"threads_busy", "threads_max"} <= scraped.page.values.keys() or not scraped.values:
            continue
        rows = [
            (time_us, *(values.get(name) for name in columns.values()))
            for time_us, values in zip(scraped.scrape.times_us, scraped.values, strict=True)
        ]
        insert_rows(database, "scrapes", ("time_us", *columns), rows, f"'{scraped.instance}' AS instance, *")
