"""Writes the raw files of a run of any size: what k6, tcpdump and the sampler would have recorded of a load known here.

Users of several k6 instances send requests one after another on connections that they keep; each connection is made,
used and closed by the client within a second. Every observer agrees: nothing fails, nothing is slow, and all
identities hold. All else (settings, phases, the ticks' rhythm) is that of docs/example.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[np.int64]]

_EXAMPLE = Path(__file__).resolve().parents[2] / "docs/example"
_SERVER, _PORT = "10.0.0.2", 8080
_FIRST_PORT, _PORTS = 1024, 60_000
_ASKS, _ANSWERS = 95, 199
# Connections are written in groups, each within its own stretch of the load, so that a capture is in order without
# having all of its packets in memory.
_GROUP = 20_000
_SYN, _ACK, _PUSH, _FIN = 2, 16, 24, 17
# A record of a pcap, Ethernet, IPv4 and TCP without options: what a capture of headers keeps.
_PACKET = np.dtype(
    [
        ("seconds", "<u4"), ("micros", "<u4"), ("kept", "<u4"), ("length", "<u4"),
        ("macs", "V12"), ("ethertype", ">u2"),
        ("version", "u1"), ("service", "u1"), ("total", ">u2"), ("id", ">u2"), ("fragment", ">u2"), ("ttl", "u1"),
        ("protocol", "u1"), ("checksum", ">u2"), ("source", ">u4"), ("target", ">u4"),
        ("source_port", ">u2"), ("target_port", ">u2"), ("seq", ">u4"), ("ack", ">u4"), ("offset", "u1"),
        ("flags", "u1"), ("window", ">u2"), ("sum", ">u2"), ("urgent", ">u2"),
    ]
)  # fmt: skip
_HEADERS = _PACKET.itemsize - 16
_COUNTS = {
    "Tcp.ActiveOpens", "Tcp.PassiveOpens", "TcpExt.TCPSynRetrans", "TcpExt.ListenDrops", "TcpExt.ListenOverflows",
    "sockstat.TCP.tw",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Load:
    """What the users do.

    Attributes:
        requests: all of them; a multiple of calls.
        calls: on each connection.
        instances: of k6.
    """

    requests: int
    calls: int
    instances: int

    @property
    def connections(self) -> int:
        """How many there are."""
        return self.requests // self.calls

    def of(self, instance: int) -> int:
        """How many connections an instance makes, the first being number 1."""
        return self.connections // self.instances + (instance <= self.connections % self.instances)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one k6 instance does of a load, between two moments."""

    load: Load
    number: int
    start_us: int
    end_us: int

    @property
    def instance(self) -> str:
        return f"k6-{self.number}"

    @property
    def address(self) -> str:
        return f"10.1.{self.number // 250}.{self.number % 250 + 1}"

    @property
    def connections(self) -> int:
        return self.load.of(self.number)

    def times(self, numbers: npt.NDArray[np.int64]) -> Columns:
        """When each connection begins, and how long a call takes: all of a group lie in its own stretch."""
        stretch_us = (self.end_us - self.start_us) // -(-self.load.of(1) // _GROUP)
        lasts_us = min(stretch_us // 4, 1_000_000)
        within_us = numbers % _GROUP * (stretch_us - lasts_us - 1000) // _GROUP
        return {
            "begin_us": self.start_us + numbers // _GROUP * stretch_us + 10 + within_us,
            "call_us": np.full(len(numbers), max(lasts_us // (self.load.calls + 1), 8)),
        }


def write(folder: Path, load: Load) -> None:
    """Write a run's folder.

    Raises:
        ValueError: an instance has fewer ports than the load needs connections.
    """
    if load.of(1) > _PORTS:
        raise ValueError(f"an instance has {_PORTS:,} ports, and needs {load.of(1):,}: give more instances")
    manifest: dict[str, Any] = json.loads((_EXAMPLE / "manifest.json").read_text())
    start_us, end_us = next(
        (each["start_us"], each["end_us"]) for each in manifest["phases"] if each["name"] == "measure"
    )
    parts = [_Part(load, number, start_us, end_us) for number in range(1, load.instances + 1)]
    _write_manifest(folder, manifest, parts, load)
    for part in parts:
        raw = folder / "raw" / part.instance
        (raw / "role").mkdir(parents=True)
        (raw / "collector").mkdir()
        for file in ("live.jsonl", "k6.log", "summary.json"):
            shutil.copy(_EXAMPLE / "raw/k6-1/role" / file, raw / "role")
        events = (_EXAMPLE / "raw/k6-1/role/events.jsonl").read_text()
        (raw / "role/events.jsonl").write_text(events.replace("k6-1", part.instance, 1))
        _write_records(raw / "role", part)
        count = part.connections
        held = {"side": "client", "port": _PORT, "local": part.address, "peer": _SERVER, "count": count}
        counters = {"Tcp.ActiveOpens": count, "sockstat.TCP.tw": count}
        _write_samples("k6-1", raw / "collector", counters, [held], end_us)
    raw = folder / "raw/backend-1"
    shutil.copytree(_EXAMPLE / "raw/backend-1/role", raw / "role")
    (raw / "collector").mkdir()
    shutil.copy(_EXAMPLE / "raw/backend-1/collector/tomcat.jsonl", raw / "collector")
    _write_samples("backend-1", raw / "collector", {"Tcp.PassiveOpens": load.connections}, [], end_us)
    _write_capture(raw / "collector", parts)


def _write_manifest(folder: Path, manifest: dict[str, Any], parts: list[_Part], load: Load) -> None:
    clients = [part.instance for part in parts]
    manifest["instances"]["k6"] = clients
    manifest["addresses"] = {part.instance: [part.address] for part in parts} | {"backend-1": [_SERVER]}
    for by_instance in ("sysctls", "listeners", "exits"):
        of = manifest[by_instance]
        manifest[by_instance] = dict.fromkeys(clients, of["k6-1"]) | {"backend-1": of["backend-1"]}
    knobs = {
        "instances": load.instances, "users": load.connections, "calls": load.calls, "arrival_gap": 0,
        "handler_delay": 0,
    }  # fmt: skip
    for name, value in knobs.items():
        manifest["knobs"][f"load.{name}"]["value"] = value
    held = ("client.requests.ok", load.requests), ("ledger.unexplained", 0), ("ledger.identities.failed", 0)
    manifest["predictions"] = [
        {"id": name.rpartition(".")[2], "description": "It is as it was made.", "expression": f"{name} == {value}"}
        for name, value in held
    ]
    del manifest["published"]
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))


# DuckDB writes them: it is quick at that.
_DIALS = """
    SELECT 'dial' AS kind, number + 1 AS id, number + 1 AS vu, begin_us AS time_us, 3 AS duration_us,
           $address || ':' || (number + $first_port) AS local, $remote AS remote, NULL AS error, NULL AS error_kind
      FROM connections ORDER BY number"""
_CLOSES = """
    SELECT 'close' AS kind, number + 1 AS id, begin_us + $calls * call_us + 6 AS time_us, $asks * $calls AS bytes_sent,
           $answers * $calls AS bytes_received, NULL AS error
      FROM connections ORDER BY number"""
_REQUESTS = """
    SELECT number * $calls + call + 1 AS id, number + 1 AS vu, 0 AS iteration, 'users' AS scenario, 'delay' AS name,
           'GET' AS method, 'http://backend-1:8080/api/delay?ms=0&bytes=100' AS url, 200 AS status, 0 AS error_code,
           NULL AS error, begin_us + call * call_us + if(call = 0, 0, 3) AS time_us,
           begin_us + (call + 1) * call_us + 2 AS end_us, if(call = 0, 3, 0) AS blocked_us,
           if(call = 0, 3, 0) AS connecting_us, 0 AS tls_us, 1 AS sending_us, call_us - 3 AS waiting_us,
           1 AS receiving_us, call_us - 1 AS duration_us, call > 0 AS reused, $remote AS remote, number + 1 AS dial
      FROM connections CROSS JOIN range($calls) AS calls (call) ORDER BY number, call"""


def _write_records(folder: Path, part: _Part) -> None:
    numbers = np.arange(part.connections, dtype=np.int64)
    with duckdb.connect() as database:
        database.register("connections", {"number": numbers, **part.times(numbers)})
        ended = {"dials": part.connections, "failed": 0}
        _write_lines(database, folder / "dials.jsonl", part, ended, [_DIALS, _CLOSES])
        ended = {"requests": part.connections * part.load.calls}
        _write_lines(database, folder / "requests.jsonl", part, ended, [_REQUESTS])


def _write_lines(
    database: duckdb.DuckDBPyConnection, path: Path, part: _Part, ended: dict[str, int], queries: list[str]
) -> None:
    known = {
        "address": part.address, "first_port": _FIRST_PORT, "remote": f"{_SERVER}:{_PORT}", "calls": part.load.calls,
        "asks": _ASKS, "answers": _ANSWERS,
    }  # fmt: skip
    header = {"kind": "header", "schema": f"connlab.{path.stem}/1", "instance": part.instance}
    lines = path.with_suffix(".part")
    with path.open("wb") as file:
        file.write(_line(header | {"time_us": part.start_us - 1}))
        for query in queries:
            asked = {name: value for name, value in known.items() if f"${name}" in query}
            database.execute(f"COPY ({query}) TO '{lines}' (FORMAT json)", asked)
            with lines.open("rb") as records:
                shutil.copyfileobj(records, file, 1 << 20)
        lines.unlink()
        file.write(_line({"kind": "end", "time_us": part.end_us, **ended}))


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _write_samples(
    of_example: str, folder: Path, counters: dict[str, int], time_wait: list[dict[str, Any]], end_us: int
) -> None:
    """Copy the example's ticks for the folder's instance, with the counters of this load, all just before its end."""
    counted = False
    with (
        (_EXAMPLE / "raw" / of_example / "collector/samples.jsonl").open() as file,
        (folder / "samples.jsonl").open("w") as out,
    ):
        for line in file:
            record = json.loads(line)
            if record["kind"] == "tick":
                record["counters"] |= dict.fromkeys(_COUNTS & record["counters"].keys(), 0)
                if not record.get("full"):
                    record["counters"] = {k: v for k, v in record["counters"].items() if k not in _COUNTS}
                for listener in record["listen"]:
                    listener |= {"depth": 0, "drops": 0}
                if not counted and record["time_us"] > end_us - 1_000_000:
                    record["counters"] |= counters
                    counted = True
            elif record["kind"] == "header":
                record["role"] = folder.parent.name
            elif record["kind"] == "sockets":
                record["groups"] = []
            elif record["kind"] == "time_wait":
                record["groups"] = time_wait if counted else []
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


def _write_capture(folder: Path, parts: list[_Part]) -> None:
    packets = 0
    with (folder / "capture.pcap").open("wb") as file:
        file.write(np.array([0xA1B2C3D4, 2 | 4 << 16, 0, 0, _HEADERS, 1], dtype="<u4").tobytes())
        for group in _in_order(parts):
            file.write(group.tobytes())
            packets += len(group)
    report = json.loads((_EXAMPLE / "raw/backend-1/collector/capture.json").read_text())
    report |= {"snaplen": _HEADERS, "packets_captured": packets, "packets_received": packets}
    (folder / "capture.json").write_text(json.dumps(report | {"bytes": packets * _PACKET.itemsize + 24}))


def _in_order(parts: list[_Part]) -> Iterator[npt.NDArray[Any]]:
    for first in range(0, parts[0].connections, _GROUP):
        found = [_packets(part, np.arange(first, min(first + _GROUP, part.connections))) for part in parts]
        # NumPy's concatenate would give every field the machine's own order of bytes.
        together = np.empty(sum(map(len, found)), dtype=_PACKET)
        for filled, each in zip(accumulate(map(len, found)), found, strict=True):
            together[filled - len(each) : filled] = each
        moment = together["seconds"].astype(np.int64) * 1_000_000 + together["micros"]
        yield together[np.argsort(moment, kind="stable")]


def _packets(part: _Part, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """All packets of some connections of an instance: handshake, an ask and an answer for each call, and the end."""
    times, calls = part.times(numbers), part.load.calls
    begin, call = times["begin_us"], times["call_us"]
    sent, received = 1 + _ASKS * calls, 1 + _ANSWERS * calls
    # When, by the client, flags, payload, its own sequence number, the other's.
    steps: list[tuple[Any, bool, int, int, int, int]] = [
        (begin + 1, True, _SYN, 0, 0, 0),
        (begin + 1, False, _SYN | _ACK, 0, 0, 1),
        (begin + 2, True, _ACK, 0, 1, 1),
    ]
    for nth in range(calls):
        asked, answered = 1 + _ASKS * nth, 1 + _ANSWERS * nth
        steps.append((begin + nth * call + 4, True, _PUSH, _ASKS, asked, answered))
        steps.append((begin + (nth + 1) * call + 1, False, _PUSH, _ANSWERS, answered, asked + _ASKS))
    over = begin + calls * call + 6
    steps += [
        (over, True, _FIN, 0, sent, received),
        (over + 1, False, _FIN, 0, received, sent + 1),
        (over + 1, True, _ACK, 0, sent + 1, received + 1),
    ]
    found = np.zeros((len(steps), len(numbers)), dtype=_PACKET)
    ends, ports = (int(IPv4Address(part.address)), int(IPv4Address(_SERVER))), (_FIRST_PORT + numbers, _PORT)
    found["kept"], found["ethertype"], found["version"], found["ttl"] = _HEADERS, 0x0800, 0x45, 64
    found["protocol"], found["offset"], found["window"] = 6, 0x50, 64_000
    for row, (at, by_client, flags, payload, seq, ack) in zip(found, steps, strict=True):
        row["seconds"], row["micros"] = at // 1_000_000, at % 1_000_000
        row["length"], row["total"] = _HEADERS + payload, 40 + payload
        row["source"], row["target"] = ends if by_client else ends[::-1]
        row["source_port"], row["target_port"] = ports if by_client else ports[::-1]
        row["flags"], row["seq"], row["ack"] = flags, 1000 + seq, 1000 + ack if flags != _SYN else 0
    return found.reshape(-1)
