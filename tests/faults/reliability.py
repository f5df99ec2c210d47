"""Keeps what `make test-faults` saw in docs/reliability.jsonl, and writes docs/reliability.md from it.

    python -m tests.faults.reliability <what was seen>      takes it in, writes the document, prints a summary
    python -m tests.faults.reliability --known <fault>,…    says whether there are such faults

The table stands in the document between two marks; everything else there is written by hand.
"""

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import paths, terminal
from lab.errors import ExitCode
from tests.faults.table import REAL, REAL_FAULTS, REAL_PHASES, Cell

DOCUMENT = paths.ROOT / "docs" / "reliability.md"
RECORDS = DOCUMENT.with_suffix(".jsonl")
BEGIN, END = "<!-- faults: made by 'make test-faults' -->", "<!-- end of faults -->"
# What is kept of a cell; the rest is for whoever looks for the reason.
_KEPT = ("fault", "phase", "status", "code", "status_after", "stays", "evidence", "second", "next", "wrong")
_ON = ("date", "kernel", "engine", "compose")

Record = Mapping[str, Any]


def shown(record: Record | None) -> str:
    """Give a cell of the document."""
    if record is None:
        return "not tried yet"
    if record["wrong"]:
        return "**wrong**"
    word, later = record["status"] or "no run", record.get("status_after")
    changed = f" → {later}" if later and later != record["status"] else ""
    code = "killed" if record["code"] < 0 else str(record["code"])
    return f"{word}{changed}, {code}{' ¹' if record['stays'] else ''}"


def expected(cell: Cell) -> str:
    """Give what the document has to show; the next run gives a word to a run that has none."""
    end = REAL[cell]
    later = "aborted" if end.status == "running" else end.status
    return shown({"status": end.status, "code": end.code, "status_after": later, "stays": end.stays, "wrong": ()})


def load() -> dict[Cell, Record]:
    """Give what was seen last of each cell."""
    if not RECORDS.is_file():
        return {}
    records = map(json.loads, RECORDS.read_text().splitlines())
    return {(each["fault"], each["phase"]): each for each in records}


def take_in(seen: Iterable[Record]) -> dict[Cell, Record]:
    """Keep what was seen now in the place of what was seen before, and give all."""
    on = dict(zip(_ON, (time.strftime("%Y-%m-%d", time.gmtime()), *_versions()), strict=True))
    new = {(each["fault"], each["phase"]): {name: each.get(name) for name in _KEPT} | on for each in seen}
    every = {**load(), **new}
    kept = {cell: every[cell] for cell in REAL if cell in every}
    RECORDS.write_text("".join(json.dumps(each) + "\n" for each in kept.values()))
    return kept


def _versions() -> tuple[str, str, str]:
    engine = re.search(r"version ([^,]+)", _said("dockerd", "--version"))
    compose = _said("docker", "compose", "version", "--short").strip()
    return ".".join(platform.release().split(".")[:2]), engine[1] if engine else "unknown", compose


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def generated(records: Mapping[Cell, Record]) -> str:
    """Give the part of the document between the marks."""
    good = sum(not each["wrong"] for each in records.values())
    on = [sorted({each[name] for each in records.values()}) for name in _ON]
    dates, kernels, engines, composes = (" and ".join(each) for each in on)
    lines = [
        BEGIN,
        f"{good} of {len(REAL)} cells are as expected.",
        f"Seen on {dates}, with Linux {kernels}, Docker Engine {engines}, Compose {composes}.",
        "",
        f"| fault | {' | '.join(REAL_PHASES)} |",
        "|---" * (len(REAL_PHASES) + 1) + "|",
    ]
    for fault in dict.fromkeys(fault for fault, _ in REAL):
        cells = [shown(records.get((fault, each))) if (fault, each) in REAL else "" for each in REAL_PHASES]
        lines.append(f"| *{fault}*: {REAL_FAULTS[fault]} | {' | '.join(cells)} |")
    return "\n".join([*lines, END])


def write(records: Mapping[Cell, Record]) -> None:
    """Put what was seen between the document's marks."""
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text.split(BEGIN)[0] + generated(records) + text.split(END)[1])


def names(asked: str) -> list[str]:
    """Give the faults of a list with commas."""
    return [name.strip() for name in asked.split(",") if name.strip()]


def refused(asked: str) -> str | None:
    """Say which of the faults that are asked for there is not."""
    known = dict.fromkeys(fault for fault, _ in REAL)
    wrong = [name for name in names(asked) if name not in known]
    return f"there is no fault '{wrong[0]}'; there are: {', '.join(known)}" if wrong else None


def summary(seen: Sequence[Record]) -> int:
    """Take in what was seen, print what was wrong, and give the exit code."""
    write(take_in(seen))
    wrong = [each for each in seen if each["wrong"]]
    terminal.result(
        [
            *(f"wrong: {each['fault']}, {each['phase']}: {'; '.join(each['wrong'])}" for each in wrong),
            f"{len(seen)} cells tried, {len(wrong)} of them wrong; written: {paths.shown(DOCUMENT)}",
        ]
    )
    return 1 if wrong or not seen else 0


def main(arguments: Sequence[str]) -> int:
    """Give the exit code."""
    if arguments[0] == "--known":
        problem = refused(arguments[1])
        if problem:
            terminal.problem(f"ONLY: {problem}")
        return ExitCode.BAD_INPUT if problem else 0
    return summary([json.loads(line) for line in Path(arguments[0]).read_text().splitlines()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
