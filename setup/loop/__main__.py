"""The command line: `python -m setup.loop test [part …]`, and `list`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from setup.loop import runner
from setup.loop.parts import PARTS, Part
from setup.loop.runner import Interrupted, Job, Outcome

ROOT = Path(__file__).resolve().parents[2]
FAILED = 1
BAD_INPUT = 2
SIGNALLED = 128
"""Added to a signal's number, as a shell does."""


def main() -> int:
    """Do what the command line asks for; the exit code is 0 where all of it passed."""
    parser = argparse.ArgumentParser(prog="setup.loop", allow_abbrev=False)
    parser.add_argument("mode", choices=("list", "test"))
    parser.add_argument("parts", nargs="*", help="all of them where none is named")
    parser.add_argument("--setup-seconds", type=float, default=0.0, help="what the set-up took, for the table")
    arguments = parser.parse_intermixed_args()
    if arguments.mode == "list":
        for part in PARTS:
            _say(f"  {part.name:<13}{part.says}")
        return 0
    names = [part.name for part in PARTS]
    if unknown := [name for name in arguments.parts if name not in names]:
        _say(f"no part '{unknown[0]}'; the parts: {' '.join(names)}")
        return BAD_INPUT
    os.chdir(ROOT)
    try:
        return _test([part for part in PARTS if part.name in (arguments.parts or names)], arguments.setup_seconds)
    except Interrupted as interrupted:
        _say(f"interrupted by {interrupted}")
        return SIGNALLED + interrupted.number


def _test(parts: Sequence[Part], setup_s: float) -> int:
    """Run every check and test of these parts: all of them, whatever fails."""
    began_s = time.monotonic() - setup_s
    jobs = [Job(part.name, part.test, part.alone) for part in parts]
    if len(jobs) == 1:
        jobs = [replace(jobs[0], alone=True)]
    outcomes = runner.run(jobs, runner.processors(), _say_began, _say_ended)
    _say(f"\n{'part':<14}{'seconds':>8}")
    if setup_s:
        _say(f"{'set-up':<14}{setup_s:>8.1f}")
    for outcome in outcomes:
        _say(f"{outcome.job.name:<14}{outcome.seconds:>8.1f}  {_result(outcome)}")
    _say(f"{'total':<14}{time.monotonic() - began_s:>8.1f}  {_all(outcomes)}")
    return FAILED if any(outcome.code for outcome in outcomes) else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 # a command's output


def _say_began(job: Job) -> None:
    _say(f"=== {job.name}: {'begins' if job.alone else 'begins; its output follows at its end'}")


def _say_ended(outcome: Outcome) -> None:
    _say(f"{outcome.output}=== {outcome.job.name}: {_result(outcome)} after {outcome.seconds:.1f} s")


def _result(outcome: Outcome) -> str:
    return "FAILED" if outcome.code else "passed"


def _all(outcomes: Sequence[Outcome]) -> str:
    failed = [outcome.job.name for outcome in outcomes if outcome.code]
    return f"FAILED: {' '.join(failed)}" if failed else "all passed"


if __name__ == "__main__":
    sys.exit(main())
