"""How the parts of `make test` are run: beside each other or alone, all of them, and what is said of each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import paths
from setup.loop import __main__ as command_line
from setup.loop import runner
from setup.loop.parts import PARTS, Part
from setup.loop.runner import Job, Outcome

SECONDS = 30


def run(jobs: list[Job], beside: int = 2) -> list[Outcome]:
    return runner.run(jobs, beside, lambda _: None, lambda _: None)


def loop(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "setup.loop", *arguments]
    return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)


def test_two_jobs_run_beside_each_other(tmp_path: Path) -> None:
    meet = "touch {mine}; for try in {{1..600}}; do [[ -e {other} ]] && exit; sleep 0.05; done; exit 1"
    one, two = tmp_path / "one", tmp_path / "two"
    jobs = [Job("one", meet.format(mine=one, other=two)), Job("two", meet.format(mine=two, other=one))]
    assert [outcome.code for outcome in run(jobs)] == [0, 0]


def test_what_is_to_run_alone_runs_after_the_others_one_by_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [
        Job(str(number), f"echo +{number} >>{log}; sleep 0.2; echo -{number} >>{log}", alone=number < 2)
        for number in range(4)
    ]
    run(jobs)
    assert log.read_text().split()[4:] == ["+0", "-0", "+1", "-1"]


def test_all_run_whatever_fails_and_each_keeps_its_own_output() -> None:
    jobs = [
        Job("bad", "echo out; echo err >&2; false; echo never"),
        Job("good", "echo fine"),
        Job("killed", "kill -9 $$"),
    ]
    found = {outcome.job.name: (outcome.code, outcome.output) for outcome in run(jobs, beside=1)}
    assert found == {"bad": (1, "out\nerr\n"), "good": (0, "fine\n"), "killed": (-signal.SIGKILL, "")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_all_that_was_started_and_their_end_is_waited_for(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = f"""
import os
from setup.loop import runner
os.chdir("{tmp_path}")
job = "trap 'sleep 0.3; touch cleared; exit 1' {number.name}; (touch began; sleep 60; true) & wait || true"
try:
    runner.run([runner.Job("long", job), runner.Job("next", "touch next", alone=True)], 2, print, print)
except runner.Interrupted as interrupted:
    raise SystemExit(interrupted.number)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=paths.ROOT, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + SECONDS
        while not (tmp_path / "began").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(process.pid, number)
        assert process.wait(SECONDS) == number
    assert sorted(file.name for file in tmp_path.iterdir()) == ["began", "cleared"]


def test_a_part_that_does_not_exist_is_refused_with_those_that_do() -> None:
    refused = loop("test", "pyton")
    assert (refused.returncode, refused.stderr) == (2, "")
    assert refused.stdout == f"no part 'pyton'; the parts: {' '.join(part.name for part in PARTS)}\n"


def test_the_parts_are_listed_once_each() -> None:
    assert [line.split()[0] for line in loop("list").stdout.splitlines()] == [part.name for part in PARTS]
    assert len({part.name for part in PARTS}) == len(PARTS)


def test_the_table_has_each_part_s_time_and_the_failed_ones(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = {"x": "echo I am x; sleep 0.3; exit 7", "y": "echo I am y", "z": "echo I am z; exit 1"}
    parts = [Part(name, "", command, alone=name == "z") for name, command in commands.items()]
    monkeypatch.setattr(command_line, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["setup.loop", "test", "--setup-seconds=5"])
    monkeypatch.chdir(paths.ROOT)
    assert command_line.main() == 1
    said = capfd.readouterr().out
    assert all(f"I am {name}\n" in said for name in commands)
    head, *table = [line.split() for line in said.splitlines()[-6:]]
    assert head == ["part", "seconds"]
    assert [[row[0], *row[2:]] for row in table] == [
        ["set-up"],
        ["x", "FAILED"],
        ["y", "passed"],
        ["z", "FAILED"],
        ["total", "FAILED:", "x", "z"],
    ]
    assert float(table[-1][1]) >= 5.3
