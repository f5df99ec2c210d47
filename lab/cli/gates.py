"""`connlab gate`: finds and judges two groups of runs; a line for people, JUnit XML for a CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from analysis import command_hints
from analysis.compare import gate
from analysis.compare.gate import Gate, Limit
from analysis.compare.narrative import with_unit
from analysis.compare.replicates import Group, load_group
from analysis.formatting import format_count
from formats.sanitize import visible
from lab.cli import comparisons
from lab.errors import BadInput, ExitCode, Problem
from lab.runs.run_results import format_figure

if TYPE_CHECKING:
    from analysis.compare.intervals import Interval

EXIT_CODES = {"passed": ExitCode.REPRODUCED, "worse": ExitCode.NOT_REPRODUCED, "unknown": ExitCode.INCONCLUSIVE}


@dataclass(frozen=True)
class JudgedGate:
    """A gate's finding, and the groups of runs that it is about."""

    gate: Gate
    a: Group
    b: Group

    @property
    def exit_code(self) -> ExitCode:
        """Return 0 passed, 1 worse, 3 it cannot be told."""
        return EXIT_CODES[self.gate.outcome.value]

    @property
    def left_out(self) -> list[str]:
        """Return the runs that are not evidence, each with the reason."""
        return [f"{run.name}: {run.unusable}" for group in (self.a, self.b) for run in group.runs if run.unusable]


def judge(a: Sequence[str], b: Sequence[str], figure: str, worse_than: str, better: str | None) -> JudgedGate:
    """Judge whether a figure of b is worse than that of a by more than a limit.

    Args:
        a: the baseline, as `find_runs` takes it.
        b: what is judged, in the same way.
        figure: a figure's name.
        worse_than: the limit, as `5%` or `2.5`.
        better: `more` or `less`; None where the figure's name tells it.

    Raises:
        BadInput: a name that is none, runs that cannot be compared, a figure or a limit that is none.
    """
    for side, given in (("A", a), ("B", b)):
        if not given:
            raise BadInput(
                Problem(f"{side} names no run", hint="give --a=<run> --b=<run> (A=<runs> B=<runs>), as to compare")
            )
    if better not in {None, "more", "less"}:
        raise BadInput(Problem(f"--better is 'more' or 'less', and not '{better}'"))
    with comparisons.refusals():
        limit = Limit.parse(worse_than)
        group_a, group_b = load_group("A", comparisons.find_runs(a)), load_group("B", comparisons.find_runs(b))
        greater = None if better is None else better == "more"
        return JudgedGate(gate.judge(group_a, group_b, figure, limit, greater_is_better=greater), group_a, group_b)


def format_line(judged: JudgedGate) -> str:
    """Return what a gate found, in a line."""
    found = judged.gate
    said = f"{found.outcome.value}: {found.figure} "
    if found.a is None or found.b is None:
        return f"{said}is unknown: {found.why}"
    said += f"{format_figure(found.a)} → {with_unit(format_figure(found.b), found.unit)}"
    if found.worse_by is not None:
        said += f"; worse by {_interval(found.worse_by, found.a)}, and {found.limit} is allowed"
    said += f" ({format_count(found.runs_a, 'run')} and {found.runs_b})"
    return f"{said}; {found.why}" if found.why else said


def _interval(interval: Interval, mean: float) -> str:
    """Return a difference with its interval, as shares of the baseline where it has any."""
    if not mean:
        return f"{format_figure(interval.low)} to {format_figure(interval.high)}"
    low, high = (100 * end / abs(mean) for end in (interval.low, interval.high))
    return f"{low:+.1f} % to {high:+.1f} %"


def list_remarks(judged: JudgedGate) -> list[str]:
    """Return what a reader must know beside the line: runs left out, settings that differ unasked."""
    unasked = (f"unintended difference: {each.name}: {each.a} → {each.b}" for each in judged.gate.unasked)
    return [*(f"not counted: {each}" for each in judged.left_out), *unasked]


def as_json(judged: JudgedGate) -> dict[str, Any]:
    """Return everything as JSON has it."""
    found = {"scenario": judged.b.example.scenario, **judged.gate.model_dump(mode="json")}
    return {**found, "left_out": judged.left_out, "exit_code": int(judged.exit_code)}


def write_junit(judged: JudgedGate, file: Path) -> None:
    """Write JUnit XML: one test, which passed, failed, or was skipped where it cannot be told.

    Raises:
        BadInput: the file cannot be written.
    """
    found, outcome = judged.gate, judged.gate.outcome.value
    failures, skipped = str(int(outcome == "worse")), str(int(outcome == "unknown"))
    suite = ET.Element("testsuite", name="connlab gate", tests="1", failures=failures, skipped=skipped)
    name = visible(f"{found.figure} is no more than {found.limit} worse")
    test = ET.SubElement(suite, "testcase", {"classname": visible(judged.b.example.scenario), "name": name})
    if outcome != "passed":
        kind = "failure" if outcome == "worse" else "skipped"
        ET.SubElement(test, kind, message=visible(format_line(judged)))
    ET.SubElement(test, "system-out").text = "\n".join(
        visible(each) for each in (format_line(judged), *list_remarks(judged))
    )
    ET.indent(suite)
    try:
        with open(file, "wb", opener=_without_waiting) as opened:
            opened.write(ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise BadInput(Problem(f"{file}: {error.strerror}", hint="give --junit a file that can be written")) from None


def _without_waiting(file: str, flags: int) -> int:
    """Open a file for writing, but wait for no reader of a named pipe."""
    return os.open(file, flags | os.O_NONBLOCK, 0o644)


def next_step(judged: JudgedGate) -> str:
    """Return what to do next: the page that says what else moved."""
    a, b = (" ".join(command_hints.name_folder(run.folder) for run in side.runs) for side in (judged.a, judged.b))
    return f"next, what else moved: {command_hints.make_command_here('compare', {'A': a, 'B': b})}"
