"""Reads JSON Lines that may be missing, cut or corrupt: what can be used is used, what cannot is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from formats.safe_files import open_regular

Record: TypeAlias = dict[str, Any]

# A line beyond this is not a record of the lab's; the bound keeps a corrupt file from filling memory.
LINE_BYTES_MAX = 1 << 20
# 2^53 µs are 285 years, and a thousand times as much still fits into 64 bits.
MOMENT_MAX_US = 1 << 53


@dataclass(slots=True)
class Damage:
    """What is wrong with a file.

    Attributes:
        missing: why it cannot be read at all, None if it can.
        bad_lines: lines that are not records, without a cut last one.
        first_bad_line: the number of the first of them, from 1; 0 if there is none or it is not known.
    """

    missing: str | None = None
    bad_lines: int = 0
    first_bad_line: int = 0
    cut: bool = False

    def add_bad_line(self, number: int) -> None:
        """Count a line that is not a record."""
        self.bad_lines += 1
        self.first_bad_line = self.first_bad_line or number

    def messages(self, path: str) -> list[str]:
        """Return what to tell the user, one sentence for each thing that is wrong."""
        found = []
        if self.missing is not None:
            found.append(f"{path}: {self.missing}")
        if self.cut:
            found.append(f"{path}: the last line is cut off")
        if self.bad_lines:
            first = f", the first is line {self.first_bad_line}" if self.first_bad_line else ""
            found.append(f"{path}: {self.bad_lines} corrupt lines{first}")
        return found


@dataclass(slots=True)
class JsonLines:
    """The records of one file; iterating reads it, and `damage` is whole once that is done."""

    path: Path
    damage: Damage = field(default_factory=Damage)

    def __iter__(self) -> Iterator[tuple[int, Record | None]]:
        """Yield each line's number, from 1, and its record, None where it is none; blank lines are passed over."""
        try:
            with open_regular(self.path) as file:
                yield from self._lines(file)
        except OSError as error:
            self.damage.missing = why_unreadable(error)

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, Record | None]]:
        number = 0
        while line := file.readline(LINE_BYTES_MAX):
            number += 1
            if not line.strip():
                continue
            record = parse(line)
            if record is None:
                self._count(line, number)
            yield number, record

    def _count(self, line: bytes, number: int) -> None:
        if line.endswith(b"\n") or len(line) == LINE_BYTES_MAX:
            self.damage.add_bad_line(number)
        else:
            self.damage.cut = True


def parse(line: bytes) -> Record | None:
    """Return the JSON object on a line, None if there is none; NaN and infinities are not JSON."""
    try:
        record = _DECODER.decode(line.decode(json.detect_encoding(line), "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


# As json.loads, which would make a decoder for each line.
_DECODER = json.JSONDecoder(parse_constant=_refuse)


def why_unreadable(error: OSError) -> str:
    """Why a file cannot be read, without its path."""
    return "missing" if isinstance(error, FileNotFoundError) else str(error.strerror).lower()


def kind_of(record: Record) -> str | None:
    """Return the field `kind`, None if it is not text."""
    kind = record.get("kind")
    return kind if isinstance(kind, str) else None


def integer(record: Record, key: str) -> int | None:
    """Return a field that is a non-negative integer of at most 63 bits, else None."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 63 else None


def moment(record: Record, key: str) -> int | None:
    """Return a field that is a time in µs with which one can reckon in 64 bits, else None."""
    value = integer(record, key)
    return None if value is None or value > MOMENT_MAX_US else value


def records(record: Record, key: str) -> list[Record]:
    """Return the objects in a field that is a list of them; what is not an object is passed over."""
    value = record.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# k6 counts the statuses from 200 to 399 as success, and so does its http_req_failed. 101 is a WebSocket's.
SUCCEEDED = "error_code = 0 AND (status = 101 OR status BETWEEN 200 AND 399)"

# What a dial can fail with, as dials.jsonl spells it; whatever else stands there counts as the last.
ERROR_KINDS = ("timeout", "refused", "reset", "address-not-available", "unreachable", "canceled", "half-open", "other")


def _whole(*fields: str) -> str:
    """Return SQL that says of a line whether all these fields are there, as integers that can be."""
    within = f"lambda field: field BETWEEN 0 AND {MOMENT_MAX_US}"
    return f"list_count(list_filter([{', '.join(fields)}], {within})) = {len(fields)}"


# Fields of one record, in the order of the file's schema.
REQUESTS = {
    "id": "BIGINT", "vu": "BIGINT", "iteration": "BIGINT", "scenario": "VARCHAR", "name": "VARCHAR",
    "group": "VARCHAR", "method": "VARCHAR", "url": "VARCHAR",
    "time_us": "BIGINT", "end_us": "BIGINT", "blocked_us": "BIGINT",
    "connecting_us": "BIGINT", "tls_us": "BIGINT", "sending_us": "BIGINT", "waiting_us": "BIGINT",
    "receiving_us": "BIGINT", "duration_us": "BIGINT", "status": "BIGINT", "error_code": "BIGINT",
    "error": "VARCHAR", "reused": "BOOLEAN", "remote": "VARCHAR", "dial": "BIGINT",
    "protocol": "VARCHAR", "grpc_status": "BIGINT", "messages_sent": "BIGINT", "messages_received": "BIGINT",
    "sent_again": "BIGINT", "first_dial": "BIGINT", "again_us": "BIGINT",
}  # fmt: skip
DIALS = {
    "id": "BIGINT", "vu": "BIGINT", "time_us": "BIGINT", "duration_us": "BIGINT", "local": "VARCHAR",
    "remote": "VARCHAR", "error": "VARCHAR", "error_kind": "VARCHAR",
}  # fmt: skip
CLOSES = {
    "id": "BIGINT", "time_us": "BIGINT", "bytes_sent": "BIGINT", "bytes_received": "BIGINT", "error": "VARCHAR",
}  # fmt: skip
HEADER = {"kind": "VARCHAR", "schema": "VARCHAR", "instance": "VARCHAR"}

# Which lines are records: those that have what the tables of all observers are joined and told by.
_REQUEST = (
    "id", "vu", "time_us", "end_us", "blocked_us", "connecting_us", "tls_us", "sending_us", "waiting_us",
    "receiving_us", "duration_us", "status", "error_code",
)  # fmt: skip
WHOLE_REQUEST = f"kind IS NULL AND {_whole(*_REQUEST)}"
WHOLE_DIAL = f"kind = 'dial' AND {_whole('id', 'time_us', 'duration_us')}"
WHOLE_CLOSE = f"kind = 'close' AND {_whole('id', 'time_us', 'bytes_sent', 'bytes_received')}"
WHOLE_ACCESS = _whole("time_ms", "status")
