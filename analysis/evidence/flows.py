"""Runs the program `flows`, which reduces a packet capture to one record for each connection, or gives packets of it.

docs/flows.md defines its fields. The program is a static binary that the set-up exports, so it needs no Docker.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from analysis import installation
from analysis.database import literal, over_files
from analysis.evidence.clock import NEVER_SET, Clock
from analysis.evidence.jsonl import why_unreadable
from analysis.evidence.rawfiles import descriptor_path
from formats.safe_files import open_regular

SCHEMA = "connlab.flows/1"

_ENVIRONMENT = "CONNLAB_FLOWS"
# The set-up exports it there.
EXPORTED = installation.CACHE / "bin" / "flows"
_HINT = f"hint: `connlab setup` (make setup) makes it, or {_ENVIRONMENT} names one"

_CAPTURE = "capture.pcap"
_ROWS = "read_parquet($path, hive_partitioning = false)"

_ALL_READ = 0
_PART_READ = 3

# Packets that the records lack, or tell something doubtful of → why. An earlier `flows` does not count them all.
_SKIPPED = {
    "skipped_fragments": "are fragments of IP packets",
    "skipped_cut_headers": "have headers that the capture cut off",
    "skipped_malformed": "have headers that contradict themselves, or end inside them",
    "skipped_gre": "are in GRE tunnels",
    "skipped_vxlan": "are in VXLAN tunnels",
    "skipped_geneve": "are in Geneve tunnels",
    "skipped_gtp": "are in GTP tunnels",
    "skipped_ip_in_ip": "are IP packets in IP packets",
    "skipped_pseudowires": "are in MPLS pseudowires",
    "skipped_unsupported_link": "have an unsupported link layer",
    "skipped_untimed": "have no time, or an impossible one",
    "beyond_frame_packets": "claim more bytes than their frames had",
}

# How long the program may take: a slow machine reads many times this rate.
_SECONDS_MAX = 300
_BYTES_PER_SECOND_MIN = 5_000_000

# A pcap file's header, and no packet after it.
_EMPTY_CAPTURE = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 60000000 01000000")


class FlowsError(Exception):
    """The program `flows` reads no capture at all."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """What `flows` made of one capture.

    Attributes:
        rows: the Parquet file with a row for each connection, None if there is none.
        packets: how many packets were read, None if that is not known.
        first_us, last_us: when the first and the last packet of a connection came, Unix epoch; None if there is none.
        lasts_us: from the first packet of any kind to the last one; None if there is none.
        backward_us: the longest step back from one packet's time to the next one's.
        knows_tls: whether the rows have the times of TLS handshakes; those of an earlier `flows` have none.
        losses: what the rows lack, one sentence each; none if they hold all of the capture.
    """

    rows: Path | None
    packets: int | None
    losses: tuple[str, ...]
    first_us: int | None = None
    last_us: int | None = None
    lasts_us: int | None = None
    backward_us: int = 0
    knows_tls: bool = False


def require() -> None:
    """Try the program on a capture without packets, once in a process.

    Raises:
        FlowsError: it is missing, does not run, or is of another version.
    """
    program = find_program()
    if isinstance(program, str):
        raise FlowsError(program)
    _try(program, program.stat().st_mtime_ns)


@cache
def _try(_program: Path, _changed_ns: int) -> None:
    """Raise FlowsError if the program does not read captures; one that was replaced is tried again."""
    with tempfile.TemporaryDirectory(prefix="connlab-") as name:
        scratch = Path(name)
        (scratch / _CAPTURE).write_bytes(_EMPTY_CAPTURE)
        losses = reduce_capture(scratch, scratch / "flows.parquet").losses
        if losses:
            raise FlowsError("; ".join(losses))
        # An earlier version reads captures too, and gives no packets.
        with open_regular(scratch / _CAPTURE) as capture:
            done = run(capture, ["--packets", "-"])
        if isinstance(done, str):
            raise FlowsError(f"{done}; {_HINT}")


def reduce_capture(folder: Path, out: Path) -> Reduction:
    """Reduce capture.pcap of a collector's folder, with times as captured; it never raises."""
    try:
        capture = open_regular(folder / _CAPTURE)
    except FileNotFoundError:
        return Reduction(None, None, ())
    except OSError as error:
        return Reduction(None, None, (f"{_CAPTURE}: {why_unreadable(error)}",))
    with capture:
        done = run(capture, ["--out", str(out)])
    if isinstance(done, str):
        return Reduction(None, None, (done,))
    if not out.is_file():
        return Reduction(None, None, (f"flows ended with exit code {done.returncode}",))
    return _read(out)


def on_steady(found: Reduction, clock: Clock) -> Reduction:
    """Write the rows once more, with their times on the steady clock, beside the file that has them as captured."""
    if found.rows is None or not clock.differs:
        return found
    path, out = {"path": literal(found.rows)}, found.rows.with_suffix(".steady.parquet")
    with over_files() as database:
        names = _names(database, found.rows)
        times = {name: clock.sql(name) for name in names if name.endswith("_time_us")}
        times |= {name: f"[{clock.sql('us')} FOR us IN {name}]" for name in names if name.endswith("_times_us")}
        begun, ended = clock.sql("syn_times_us[1]"), clock.sql("handshake_ack_time_us")
        times["handshake_us"] = f"if(handshake_us IS NULL, NULL, {ended} - ({begun}))"
        replaced = ", ".join(f"{sql} AS {name}" for name, sql in times.items())
        rows = f"SELECT * REPLACE ({replaced}) FROM {_ROWS} ORDER BY id"  # noqa: S608  names of our own
        target = str(out).replace("'", "''")
        database.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet)", path)
        first_us, last_us = _first_and_last_us(database, out)
    return replace(found, rows=out, first_us=first_us, last_us=last_us)


def _names(database: duckdb.DuckDBPyConnection, rows: Path) -> list[str]:
    """Return the names of the columns that the rows have."""
    return [name for name, *_ in database.execute(f"DESCRIBE FROM {_ROWS}", {"path": literal(rows)}).fetchall()]


def _first_and_last_us(database: duckdb.DuckDBPyConnection, rows: Path) -> tuple[int | None, int | None]:
    query = f"SELECT min(first_time_us), max(last_time_us) FROM {_ROWS}"  # noqa: S608  as above
    return database.execute(query, {"path": literal(rows)}).fetchone() or (None, None)


def run(
    capture: BinaryIO, options: Sequence[str], stdin: str = "", out: BinaryIO | None = None
) -> subprocess.CompletedProcess[str] | str:
    """Run the program on an open capture; `out` takes its output, which else is in what is returned.

    Returns:
        What became of it, if it read the capture or a part of it; else why not, as one sentence.
    """
    program = find_program()
    if isinstance(program, str):
        return program
    name = descriptor_path(capture)
    seconds = _SECONDS_MAX + os.fstat(capture.fileno()).st_size // _BYTES_PER_SECOND_MIN
    try:
        done = subprocess.run(
            [str(program), *options, name],
            pass_fds=(capture.fileno(),),
            input=stdin,
            stdout=out or subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except OSError as error:
        return f"{program}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"flows did not end within {seconds} s; hint: see what it does with {_CAPTURE}, by hand"
    if done.returncode not in (_ALL_READ, _PART_READ):
        said = done.stderr.strip().splitlines() or [f"flows ended with exit code {done.returncode}"]
        # Messages are the same wherever a run is analysed.
        return said[-1].replace(name, _CAPTURE)
    return done


def find_program() -> Path | str:
    """Return the program that reads captures, or why there is none."""
    named = os.environ.get(_ENVIRONMENT)
    if named:
        # A name without a folder would be looked up in the capture's folder.
        return Path(named).resolve() if Path(named).is_file() else f"{_ENVIRONMENT} names no file; {_HINT}"
    if EXPORTED.is_file():
        return EXPORTED
    found = shutil.which("flows")
    return Path(found).resolve() if found else f"the program `flows`, which reads captures, is missing; {_HINT}"


def _read(rows: Path) -> Reduction:
    try:
        with over_files() as database:
            pairs = database.execute(
                "SELECT key, value FROM parquet_kv_metadata($path)", {"path": literal(rows)}
            ).fetchall()
            first_us, last_us = _first_and_last_us(database, rows)
            knows_tls = "tls_end_time_us" in _names(database, rows)
    except duckdb.Error as error:
        return Reduction(None, None, (f"flows wrote no Parquet: {str(error).splitlines()[0]}",))
    metadata = {bytes(key).decode(): bytes(value).decode() for key, value in pairs}
    if metadata.get("connlab.schema") != SCHEMA:
        return Reduction(None, None, (other_version(SCHEMA),))
    summary: dict[str, Any] = json.loads(metadata["connlab.summary"])
    began_us, ended_us = summary["first_time_us"], summary["last_time_us"]
    lasts_us = None if began_us is None or ended_us is None else ended_us - began_us
    losses = tuple(_losses(summary))
    backward_us = summary["backward_us_max"]
    return Reduction(rows, summary["packets"], losses, first_us, last_us, lasts_us, backward_us, knows_tls)


def captured_servers(reduction: Reduction, most: int) -> list[str]:
    """Return the servers of a capture, `address:port`, those with the most connections first."""
    if reduction.rows is None:
        return []
    query = (
        "SELECT format(if(contains(server_address, ':'), '[{}]:{}', '{}:{}'), server_address, server_port) AS server"
        " FROM read_parquet($path, hive_partitioning = false) GROUP BY ALL ORDER BY count(*) DESC, server LIMIT $most"
    )
    with over_files() as database:
        found = database.execute(query, {"path": literal(reduction.rows), "most": most}).fetchall()
    return [server for (server,) in found]


def other_version(schema: str) -> str:
    """Say that the program writes something else than a schema."""
    return f"flows writes another version than {schema}; {_HINT}"


def unreadable(summary: dict[str, Any]) -> list[str]:
    """Return what of a capture could not be read, one sentence each, by the program's last line."""
    return [
        f"{_CAPTURE} is unreadable from byte {each['byte']} on ({each['why']}); {summary['packets']} packets were read"
        for each in summary["unreadable"]
    ]


# What names the file within a message about it.
_NAME = re.compile(rf"^(flows: )?{re.escape(_CAPTURE)}:? ")


def unnamed(loss: str) -> str:
    """Return a sentence about a capture, for those who name its file themselves."""
    return _NAME.sub("", loss)


def _losses(summary: dict[str, Any]) -> list[str]:
    skipped = (
        f"{summary[key]} of {summary['packets']} packets {why}" for key, why in _SKIPPED.items() if summary.get(key)
    )
    return [*unreadable(summary), *skipped]


PACKETS_SCHEMA = "connlab.packets/1"


class Flags(IntFlag):
    """The TCP flags that a story tells of."""

    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


@dataclass(frozen=True, slots=True)
class Connection:
    """Which packets to read: those between two sockets, from its first packet to its last, Unix epoch."""

    client: tuple[str, int]
    server: tuple[str, int]
    first_us: int
    last_us: int

    def covers(self, time_us: int) -> bool:
        """Return whether a time lies within the span."""
        return self.first_us <= time_us <= self.last_us


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment.

    Attributes:
        number: its place in the capture, from 1, as Wireshark's frame.number.
        time_us: when it was captured, Unix epoch.
        from_client: who sent it.
        flags: its TCP flags.
        data_bytes: how much data it carries, whether or not the capture kept it.
        seq: where it begins in what its sender sends: 0 is the SYN, 1 the first byte. It does not wrap around.
        ack: what its sender expects next of the other side, counted as `seq`; None without ACK.
        window: how much more its sender can take, before the scale that the handshake agreed on.
        tls: what record of TLS begins its data, such as `ClientHello`; None if none is seen.
    """

    number: int
    time_us: int
    from_client: bool
    flags: Flags
    data_bytes: int
    seq: int
    ack: int | None
    window: int = 1
    tls: str | None = None


@dataclass(frozen=True, slots=True)
class Extract:
    """What a capture has of some connections.

    Attributes:
        packets: of each connection, in the order of the capture; empty where there are none.
        problem: why the capture could not be read, or not to its end; None if it was.
    """

    packets: tuple[tuple[Packet, ...], ...]
    problem: str | None


def extract(path: Path, connections: Sequence[Connection], clock: Clock = NEVER_SET) -> Extract:
    """Read the packets of some connections, in one process for all of them; it never raises.

    Times of connections and packets are on the steady clock; `clock` is the wall clock that the capture's are by.
    """
    nothing = tuple(() for _ in connections)
    try:
        capture = open_regular(path)
    except OSError as error:
        return Extract(nothing, why_unreadable(error))
    with capture:
        done = run(capture, ["--packets", "-"], _chosen(connections, clock))
    if isinstance(done, str):
        return Extract(nothing, unnamed(done))
    header, *rows, end = map(json.loads, done.stdout.splitlines())
    if header.get("schema") != PACKETS_SCHEMA:
        return Extract(nothing, other_version(PACKETS_SCHEMA))
    found: list[list[Packet]] = [[] for _ in connections]
    times_us = clock.in_order([row["time_us"] for row in rows])
    for row, time_us in zip(rows, times_us, strict=True):
        if not clock.differs or connections[row["connection"]].covers(time_us):
            found[row["connection"]].append(_packet(row, time_us))
    return Extract(tuple(map(tuple, found)), "; ".join(map(unnamed, unreadable(end))) or None)


def extract_to(path: Path, connections: Sequence[Connection], out: Path, clock: Clock = NEVER_SET) -> str | None:
    """Write the packets of many connections to a file of JSON lines, with times as captured.

    Returns:
        Why the capture could not be read, or not to its end; None if it was.
    """
    try:
        with open_regular(path) as capture, out.open("wb") as lines:
            done = run(capture, ["--packets", "-"], _chosen(connections, clock), lines)
    except OSError as error:
        return why_unreadable(error)
    if isinstance(done, str):
        return unnamed(done)
    return None if done.returncode == _ALL_READ else f"{_CAPTURE} was not read to its end"


def _chosen(connections: Sequence[Connection], clock: Clock) -> str:
    return "".join(f"{json.dumps(_row(number, each, clock))}\n" for number, each in enumerate(connections))


def _row(number: int, connection: Connection, clock: Clock) -> dict[str, Any]:
    first_us, last_us = clock.shown(connection.first_us, connection.last_us)
    (client, client_port), (server, server_port) = connection.client, connection.server
    return {
        "id": number,
        "client_address": client,
        "client_port": client_port,
        "server_address": server,
        "server_port": server_port,
        "first_time_us": first_us,
        "last_time_us": last_us,
    }


def _packet(row: dict[str, Any], time_us: int) -> Packet:
    flags = _flags(tuple(row["flags"]))
    from_client = row["from"] == "client"
    data_bytes, window = row["payload_bytes"], row["window"]
    # An earlier `flows` tells nothing of TLS.
    tls = row.get("tls")
    return Packet(row["number"], time_us, from_client, flags, data_bytes, row["seq"], row["ack"], window, tls)


@cache
def _flags(names: tuple[str, ...]) -> Flags:
    return reduce(or_, (Flags[name] for name in names if name in Flags.__members__), Flags(0))
