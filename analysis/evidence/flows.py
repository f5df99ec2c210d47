"""Runs the program `flows`, which reduces a packet capture to one record for each connection.

docs/flows.md defines its fields. The program is a static binary that the set-up exports, so it needs no Docker.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from analysis.database import over_files
from analysis.evidence.jsonl import why_unreadable
from analysis.evidence.rawfiles import descriptor_path, open_raw

SCHEMA = "connlab.flows/1"

_ENVIRONMENT = "CONNLAB_FLOWS"
_EXPORTED = Path(__file__).resolve().parents[2] / ".cache" / "bin" / "flows"
_WAY_ON = f"way on: `make setup` makes it, or {_ENVIRONMENT} names one"

_CAPTURE = "capture.pcap"

_ALL_READ = 0
_PART_READ = 3

# Packets that may belong to a connection and are in none of the records → why.
_SKIPPED = {
    "skipped_fragments": "are fragments of IP packets",
    "skipped_cut_headers": "have headers that the capture cut off",
    "skipped_malformed": "have headers that contradict themselves",
    "skipped_unsupported_link": "have an unsupported link layer",
    "skipped_untimed": "have no time",
}

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
        losses: what the rows lack, one sentence each; none if they hold all of the capture.
    """

    rows: Path | None
    packets: int | None
    losses: tuple[str, ...]
    first_us: int | None = None
    last_us: int | None = None


def require() -> None:
    """Try the program on a capture without packets.

    Raises:
        FlowsError: it is missing, does not run, or is of another version.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / _CAPTURE).write_bytes(_EMPTY_CAPTURE)
        losses = reduce(scratch, scratch / "flows.parquet").losses
    if losses:
        raise FlowsError("; ".join(losses))


def reduce(folder: Path, out: Path) -> Reduction:
    """Reduce capture.pcap of a collector's folder; it never raises.

    Args:
        folder: the collector's raw files.
        out: the Parquet file to write.
    """
    try:
        capture = open_raw(folder / _CAPTURE)
    except FileNotFoundError:
        return Reduction(None, None, ())
    except OSError as error:
        return Reduction(None, None, (f"{_CAPTURE}: {why_unreadable(error)}",))
    with capture:
        program = _program()
        return Reduction(None, None, (program,)) if isinstance(program, str) else _reduce(program, capture, out)


def _reduce(program: Path, capture: BinaryIO, out: Path) -> Reduction:
    name = descriptor_path(capture)
    command = [str(program), "--out", str(out), name]
    try:
        done = subprocess.run(
            command, pass_fds=(capture.fileno(),), capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        return Reduction(None, None, (f"{program}: {error.strerror}",))
    if done.returncode not in (_ALL_READ, _PART_READ) or not out.is_file():
        # Messages are the same wherever a run is analysed.
        return Reduction(None, None, (_last_line(done.stderr, done.returncode).replace(name, _CAPTURE),))
    return _read(out)


def _program() -> Path | str:
    """The program, or why there is none."""
    named = os.environ.get(_ENVIRONMENT)
    if named:
        # A name without a folder would be looked up in the capture's folder.
        return Path(named).resolve() if Path(named).is_file() else f"{_ENVIRONMENT} names no file; {_WAY_ON}"
    if _EXPORTED.is_file():
        return _EXPORTED
    found = shutil.which("flows")
    return Path(found).resolve() if found else f"the program `flows`, which reads captures, is missing; {_WAY_ON}"


def _last_line(stderr: str, code: int) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else f"flows ended with exit code {code}"


def _read(rows: Path) -> Reduction:
    try:
        with over_files() as database:
            pairs = database.execute(
                "SELECT key, value FROM parquet_kv_metadata($path)", {"path": str(rows)}
            ).fetchall()
            times_us = database.execute(
                "SELECT min(first_time_us), max(last_time_us) FROM read_parquet($path)", {"path": str(rows)}
            ).fetchone()
    except duckdb.Error as error:
        return Reduction(None, None, (f"flows wrote no Parquet: {str(error).splitlines()[0]}",))
    metadata = {bytes(key).decode(): bytes(value).decode() for key, value in pairs}
    if metadata.get("connlab.schema") != SCHEMA:
        return Reduction(None, None, (f"flows writes another version than {SCHEMA}; {_WAY_ON}",))
    summary: dict[str, Any] = json.loads(metadata["connlab.summary"])
    first_us, last_us = times_us or (None, None)
    return Reduction(rows, summary["packets"], tuple(_losses(summary)), first_us, last_us)


def _losses(summary: dict[str, Any]) -> list[str]:
    packets = summary["packets"]
    return [
        *(
            f"{_CAPTURE} is unreadable from byte {each['byte']} on ({each['why']}); {packets} packets were read"
            for each in summary["unreadable"]
        ),
        *(f"{summary[key]} of {packets} packets {why}" for key, why in _SKIPPED.items() if summary[key]),
    ]
