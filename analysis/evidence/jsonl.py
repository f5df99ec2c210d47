"""Reads JSON Lines that may be missing, cut or corrupt: what can be used is used, what cannot is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from formats.safe_open import open_regular

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
        cut: whether the last line broke off.
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
        """What to tell the user, one sentence for each thing that is wrong."""
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
    """The JSON object on a line, None if there is none; NaN and infinities are not JSON."""
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
    """The field `kind`, None if it is not text."""
    kind = record.get("kind")
    return kind if isinstance(kind, str) else None


def integer(record: Record, key: str) -> int | None:
    """A field that is a non-negative integer of at most 63 bits, else None."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 63 else None


def moment(record: Record, key: str) -> int | None:
    """A field that is a time in µs with which one can reckon in 64 bits, else None."""
    value = integer(record, key)
    return None if value is None or value > MOMENT_MAX_US else value


def records(record: Record, key: str) -> list[Record]:
    """The objects in a field that is a list of them; what is not an object is passed over."""
    value = record.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
