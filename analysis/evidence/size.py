"""What the analysis of a run needs of memory and disk, by the size of its records; told before it begins.

The factors are measured, by `make bench-analysis` with 1 and with 10 million requests, and rounded up.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.database import MEMORY_MB
from analysis.evidence import logs, result_files
from analysis.evidence.rawfiles import Places
from formats.manifest import Manifest

_MB = 1_000_000
# What a run's tables hold at once, as a share of the megabytes of its records, and which share goes to the disk.
_TABLES, _SPILT = 1.5, 2.0
# What is in memory beside the tables: the program, and some columns of each record.
_BESIDE_MB, _BESIDE = 400, 0.6
# A file of results is read by Python, into a row of objects for each request, before it is in a table.
_OF_RESULTS = 14
# What a run needs whose tables just fit in memory.
_SMALL_MB = MEMORY_MB + _BESIDE_MB + _BESIDE * MEMORY_MB / _SPILT
_MEMORY = Path("/proc/meminfo")


class TooLargeError(Exception):
    """The run is too large for this machine; the text says what it needs and what there is."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the analysis of a run needs of memory, for its tables and in all, and of disk, if they do not fit."""

    tables_mb: int
    memory_mb: int
    disk_mb: int


def needs_of(manifest: Manifest, places: Places) -> Needs:
    """Return what the analysis of a run needs."""
    results = (places.role(instance, file) for instance, file, _ in manifest.logged(result_files.FORMATS))
    results_mb = sum(map(_bytes, results)) / _MB
    records_mb = sum(map(_bytes, _records(manifest, places))) / _MB + results_mb
    tables_mb = max(MEMORY_MB, round(_TABLES * records_mb))
    return Needs(
        tables_mb=tables_mb,
        memory_mb=round(tables_mb + _BESIDE_MB + _BESIDE * records_mb + _OF_RESULTS * results_mb),
        disk_mb=round(_SPILT * records_mb) if _SPILT * records_mb > MEMORY_MB else 0,
    )


def require(manifest: Manifest, places: Places) -> None:
    """Refuse a run for which the machine has not enough.

    A small one is never refused: it needs no more than any program, and what the machine lends to the cache of files
    is not known to the megabyte.

    Raises:
        TooLargeError: it has less memory free, or less place for temporary files.
    """
    needs = needs_of(manifest, places)
    if needs.memory_mb <= _SMALL_MB:
        return
    free_mb, place = _memory_free_mb(), tempfile.gettempdir()
    disk_mb = shutil.disk_usage(place).free // _MB
    if free_mb is not None and free_mb < needs.memory_mb:
        raise TooLargeError(
            f"the run's records need about {needs.memory_mb:,} MB of memory, and {free_mb:,} MB are free: analyse it on"
            " a machine with more"
        )
    if disk_mb < needs.disk_mb:
        raise TooLargeError(
            f"the run's records need about {needs.disk_mb:,} MB in {place}, and {disk_mb:,} MB are free there: name a"
            " folder with more by TMPDIR"
        )


def _records(manifest: Manifest, places: Places) -> Iterator[Path]:
    for instance in manifest.of_role("k6"):
        yield from (places.role(instance, file) for file in ("requests.jsonl", "dials.jsonl"))
    for kind in (logs.DIALS, logs.ACCESS):
        yield from (places.role(instance, file) for instance, file, _ in manifest.logged(kind))
    yield from (places.log(instance, file) for instance, file, _ in manifest.declared_logs())


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _memory_free_mb() -> int | None:
    """Return what programs may still take, as the kernel reckons it; None where it does not say."""
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 // _MB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
