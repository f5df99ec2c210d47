"""Writes docs/reliability.md from what `make test-faults` saw, and prints the summary.

    python -m tests.faults.reliability <records> …

The table stands in the document between two marks; everything else there is written by hand.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import paths
from tests.faults.table import REAL, REAL_FAULTS, REAL_PHASES, Cell

DOCUMENT = paths.ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: made by 'make test-faults' -->", "<!-- end of faults -->"


@dataclass(frozen=True)
class Seen:
    """What became of a run that was struck, as the document shows it.

    Attributes:
        status: the manifest's word; None where there is no manifest.
        later: the word after the next run.
        stays: whether containers stayed until the next run.
        wrong: what was not as it has to be.
    """

    status: str | None
    code: int
    later: str | None
    stays: bool
    wrong: Sequence[str] = ()

    def __str__(self) -> str:
        """Give the cell."""
        if self.wrong:
            return "**wrong**"
        word = self.status or "no run"
        changed = f" → {self.later}" if self.later and self.later != self.status else ""
        code = "killed" if self.code < 0 else str(self.code)
        return f"{word}{changed}, {code}{' ¹' if self.stays else ''}"


def expected(cell: Cell) -> Seen:
    """Give what the table of faults says; the next run gives a word to a run that had none."""
    end = REAL[cell]
    return Seen(end.status, end.code, "aborted" if end.status == "running" else end.status, end.stays)


def seen(record: Mapping[str, Any]) -> Seen:
    """Read a record."""
    stays = any(name.startswith("connlab-") for name in record.get("left", ()))
    return Seen(
        record.get("status"), record.get("code", 0), record.get("status_after"), stays, tuple(record.get("wrong", ()))
    )


def table(cells: Mapping[Cell, Seen]) -> Iterable[str]:
    """Give the lines of the table: a fault each."""
    yield f"| fault | {' | '.join(REAL_PHASES)} |"
    yield "|---" * (len(REAL_PHASES) + 1) + "|"
    for fault in (name for name in REAL_FAULTS if any(cell[0] == name for cell in REAL)):
        shown = [str(cells[fault, phase]) if (fault, phase) in cells else "" for phase in REAL_PHASES]
        yield f"| {fault}: {REAL_FAULTS[fault]} | {' | '.join(shown)} |"


def write(records: Sequence[Mapping[str, Any]], facts: str) -> None:
    """Put what was seen between the document's marks."""
    cells = {(each["fault"], each["phase"]): seen(each) for each in records}
    lines = [BEGIN, facts, "", *table(cells), END]
    text = DOCUMENT.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(before + "\n".join(lines) + after)


def facts(records: Sequence[Mapping[str, Any]]) -> str:
    """Say when and on what the table was tried."""
    engine = re.search(r"version ([^,]+)", _said("dockerd", "--version"))
    compose = _said("docker", "compose", "version", "--short").strip()
    good = sum(not each["wrong"] for each in records)
    kernel = ".".join(platform.release().split(".")[:2])
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}: {good} of {len(records)} cells as they have to be."
        f" Linux {kernel}, Docker Engine {engine and engine[1]}, Compose {compose}."
    )


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(files: Sequence[str]) -> int:
    """Print the summary, write the document if every cell was tried, and give the exit code."""
    records = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    for each in records:
        if each["wrong"]:
            sys.stdout.write(f"wrong: {each['fault']}, {each['phase']}: {'; '.join(each['wrong'])}\n")
    wrong = sum(bool(each["wrong"]) for each in records)
    sys.stdout.write(f"{len(records)} cells tried, {wrong} of them wrong\n")
    if {(each["fault"], each["phase"]) for each in records} == REAL.keys():
        write(records, facts(records))
        sys.stdout.write(f"written: {paths.shown(DOCUMENT)}\n")
    return 1 if wrong or not records else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
