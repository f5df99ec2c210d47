"""The command line: `python -m setup.loop test|check|fmt [part …]`, and `list`."""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from setup.loop import runner
from setup.loop.parts import PARTS, Part
from setup.loop.runner import Interrupted, Job, Outcome
from setup.loop.stamps import Stamps

ROOT = Path(__file__).resolve().parents[2]
FAILED = 1
BAD_INPUT = 2
SIGNALLED = 128
"""Added to a signal's number, as a shell does."""


def main() -> int:
    """Do what the command line asks for; the exit code is 0 where all of it passed."""
    parser = argparse.ArgumentParser(prog="setup.loop", allow_abbrev=False)
    parser.add_argument("mode", choices=("list", "test", "check", "fmt"))
    parser.add_argument("parts", nargs="*", help="all of them where none is named")
    parser.add_argument("--setup-seconds", type=float, default=0.0, help="what the set-up took, for the table")
    arguments = parser.parse_intermixed_args()
    if arguments.mode == "list":
        for part in PARTS:
            modes = [mode for mode in ("test", "check", "fmt") if getattr(part, mode)]
            _say(f"  {part.name:<13}{' '.join(modes):<16}{part.says}")
        return 0
    parts = {part.name: part for part in PARTS if getattr(part, arguments.mode)}
    if unknown := [name for name in arguments.parts if name not in parts]:
        _say(f"no part '{unknown[0]}'; the parts of {arguments.mode}: {' '.join(parts)}")
        return BAD_INPUT
    asked = [parts[name] for name in arguments.parts or parts]
    os.chdir(ROOT)
    began_s = time.monotonic() - arguments.setup_seconds
    try:
        if arguments.mode == "test":
            outcomes = _test(asked, arguments.setup_seconds)
        elif arguments.mode == "check":
            outcomes = _check(asked)
        else:
            outcomes = _fmt(asked)
    except Interrupted as interrupted:
        _say(f"interrupted by {interrupted}")
        return SIGNALLED + interrupted.number
    failed = [outcome.job.name for outcome in outcomes if outcome.code]
    _say(_row("total", time.monotonic() - began_s, f"FAILED: {' '.join(failed)}" if failed else "all passed"))
    return FAILED if failed else 0


def _test(parts: Sequence[Part], setup_s: float) -> list[Outcome]:
    """Run every check and test of these parts: all of them, whatever fails; then the table of their times."""
    jobs = [Job(part.name, part.test, part.alone, part.background) for part in parts]
    if len(jobs) == 1:
        jobs = [replace(jobs[0], alone=True, background=False)]
    outcomes = runner.run(jobs, runner.processors(), _say_began, _say_ended)
    _say(f"\n{'part':<14}{'seconds':>8}")
    if setup_s:
        _say(_row("set-up", setup_s, ""))
    for outcome in outcomes:
        _say(_row_of(outcome))
    return outcomes


def _check(parts: Sequence[Part]) -> list[Outcome]:
    """Check the parts that have changed since they passed; the output of those that fail comes last."""
    stamps, named = Stamps(ROOT), {part.name: part for part in parts}
    before = stamps.states(parts)
    changed = _changed(parts, stamps, before)

    def ended(outcome: Outcome) -> None:
        _say(_row_of(outcome))
        name = outcome.job.name
        # What has changed meanwhile has not been checked as it is now.
        if not outcome.code and name in before and stamps.states([named[name]]).get(name) == before[name]:
            stamps.keep(named[name], before[name])

    jobs = [Job(part.name, part.check) for part in changed]
    outcomes = runner.run(jobs, runner.processors(), lambda _: None, ended)
    _say_failed(outcomes)
    return outcomes


def _fmt(parts: Sequence[Part]) -> list[Outcome]:
    """Mend what tools can mend, of the parts that have changed since they passed their check."""
    stamps = Stamps(ROOT)
    jobs = [Job(part.name, part.fmt) for part in _changed(parts, stamps, stamps.states(parts))]
    outcomes = runner.run(jobs, runner.processors(), lambda _: None, lambda outcome: _say(_row_of(outcome)))
    _say_failed(outcomes)
    return outcomes


def _changed(parts: Sequence[Part], stamps: Stamps, states: Mapping[str, str]) -> list[Part]:
    passed = [part for part in parts if stamps.has_passed(part, states.get(part.name))]
    for part in passed:
        _say(f"{part.name:<14}{'':>8}  unchanged since it passed")
    return [part for part in parts if part not in passed]


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 # a command's output


def _say_began(job: Job) -> None:
    _say(f"=== {job.name}: {'begins' if job.alone else 'begins; its output follows at its end'}")


def _say_ended(outcome: Outcome) -> None:
    _say(f"{outcome.output}=== {outcome.job.name}: {_result(outcome)} after {outcome.seconds:.1f} s")


def _say_failed(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.code:
            _say(f"\n=== {outcome.job.name}\n{outcome.output}")


def _row_of(outcome: Outcome) -> str:
    return _row(outcome.job.name, outcome.seconds, _result(outcome))


def _row(name: str, seconds: float, result: str) -> str:
    return f"{name:<14}{seconds:>8.1f}  {result}".rstrip()


def _result(outcome: Outcome) -> str:
    return "FAILED" if outcome.code else "passed"


if __name__ == "__main__":
    sys.exit(main())
