#!/usr/bin/env python3
"""Check access lines against their schema, and the schema against lines that it must refuse.

Usage: access_lines.py SCHEMA LINES. Prints `ok - …` or `not ok - …` for each check.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

Line = dict[str, Any]


def wrong_lines(line: Line) -> Iterator[tuple[str, Line]]:
    """Yield what is wrong, and a copy of a right line that has this fault."""
    for key in line:
        yield f"{key} is missing", {other: value for other, value in line.items() if other != key}
        yield f"{key} is null", {**line, key: None}
        yield f"{key} has the other type", {**line, key: 1 if isinstance(line[key], str) else str(line[key])}
    yield "an unknown key", {**line, "upstream_cache_status": "HIT"}
    yield "a cut list", {**line, "upstream_status": "502, "}
    yield "seconds without milliseconds", {**line, "upstream_connect_time": "1"}


def main(schema_path: Path, lines_path: Path) -> None:
    """Run every check."""
    schema = json.loads(schema_path.read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)

    def report(what: str, *, holds: bool, why: str = "") -> None:
        print(f"ok - {what}" if holds else f"not ok - {what}: {why}")  # noqa: T201 # the output is the result

    lines = lines_path.read_text().splitlines()
    report(f"{lines_path.name} has lines", holds=bool(lines), why="it is empty")
    for number, text in enumerate(lines, 1):
        what = f"line {number} is valid against {schema_path.name}"
        try:
            error = next(validator.iter_errors(json.loads(text)), None)
        except json.JSONDecodeError as cause:
            report(what, holds=False, why=f"{cause}: {text}")
            continue
        report(what, holds=error is None, why=f"{error.json_path}: {error.message}" if error else "")
    if not lines:
        return
    for fault, wrong in wrong_lines(json.loads(lines[0])):
        report(
            f"a line is refused when it has this fault: {fault}", holds=not validator.is_valid(wrong), why="accepted"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
