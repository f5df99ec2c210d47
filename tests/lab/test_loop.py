"""How the parts of `make test` are run: beside each other or alone, all of them, and what is said of each."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import paths
from setup.loop import __main__ as loop_main
from setup.loop import runner
from setup.loop.parts import PARTS, Part
from setup.loop.runner import Job, Outcome
from tests.lab.waiting import HANG_S, wait_until


def run(jobs: list[Job], beside: int = 2) -> list[Outcome]:
    return runner.run(jobs, beside, lambda _: None, lambda _: None)


def loop(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "setup.loop", *arguments]
    return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)


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


def test_what_is_in_the_background_runs_one_by_one_beside_what_is_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    meet = f"echo alone >>{log}; for try in {{1..600}}; do grep -q niceness {log} && exit; sleep 0.05; done; exit 1"
    within = f"echo +{{0}} >>{log}; sleep 0.2; echo niceness $(nice) >>{log}; echo -{{0}} >>{log}"
    jobs = [*(Job(name, within.format(name), background=True) for name in "xy"), Job("meet", meet, alone=True)]
    assert [outcome.code for outcome in run(jobs)] == [0, 0, 0]
    niceness = f"niceness {min(os.nice(0) + 10, 19)}"
    said = [line for line in log.read_text().splitlines() if line != "alone"]
    assert said == ["+x", niceness, "-x", "+y", niceness, "-y"]


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
job = "echo at work; trap 'sleep 0.3; touch cleared; exit 1' {number.name}; (touch began; sleep 60; true) & wait || :"
try:
    runner.run([runner.Job("long", job), runner.Job("next", "touch next", alone=True)], 2, print, print)
except runner.Interrupted as interrupted:
    raise SystemExit(interrupted.number)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until((tmp_path / "began").exists)
        os.kill(process.pid, number)
        said, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == number
    assert "output='at work\\n'" in said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["began", "cleared"]


def test_a_part_that_does_not_exist_is_refused_with_those_that_do() -> None:
    refused = loop("test", "pyton")
    assert (refused.returncode, refused.stderr) == (2, "")
    assert refused.stdout == f"no part 'pyton'; the parts of test: {' '.join(part.name for part in PARTS)}\n"


def test_the_parts_are_listed_once_each() -> None:
    assert [line.split()[0] for line in loop("list").stdout.splitlines()] == [part.name for part in PARTS]
    assert len({part.name for part in PARTS}) == len(PARTS)


CommandLine = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    """Call `python -m setup.loop …` for other parts, in a work tree of git's with an image `tools`."""
    tree = tmp_path / "tree"
    for file in ("setup/check.sh", "schemas/a.json", "one/a", "two/a", "docs/a"):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text("first")
    (tree / ".gitignore").write_text("ignored\n/.cache/\n")
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(f"#!/bin/sh\ncat {tmp_path}/images\n")
    (tmp_path / "bin" / "docker").chmod(0o755)
    (tmp_path / "images").write_text("connlab/tools sha256:1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(loop_main, "ROOT", tree)
    monkeypatch.chdir(tree)

    def call(parts: list[Part], *arguments: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(loop_main, "PARTS", parts)
        monkeypatch.setattr(sys, "argv", ["setup.loop", *arguments])
        return loop_main.main(), capfd.readouterr().out.splitlines()

    return call


def test_the_table_has_each_part_s_time_and_the_failed_ones(command_line: CommandLine) -> None:
    commands = {"x": "echo I am x; sleep 0.3; exit 7", "y": "echo I am y", "z": "echo I am z; exit 1"}
    parts = [Part(name, "", command, alone=name == "z") for name, command in commands.items()]
    code, said = command_line(parts, "test", "--setup-seconds=5")
    assert code == 1
    assert all(f"I am {name}" in said for name in commands)
    head, *table = [line.split() for line in said[-6:]]
    assert head == ["part", "seconds"]
    assert [[row[0], *row[2:]] for row in table] == [
        ["set-up"],
        ["x", "FAILED"],
        ["y", "passed"],
        ["z", "FAILED"],
        ["total", "FAILED:", "x", "z"],
    ]
    assert float(table[-1][1]) >= 5.3


def test_a_check_says_a_line_for_each_part_and_ends_with_the_output_of_those_that_fail(
    command_line: CommandLine,
) -> None:
    parts = [
        Part(name, "", "", check=f"echo I am {name}; exit {code}") for name, code in (("x", 1), ("y", 0), ("z", 2))
    ]
    code, said = command_line(parts, "check")
    assert code == 1
    assert sorted([line.split()[0], line.split()[2]] for line in said[:3]) == [
        ["x", "FAILED"],
        ["y", "passed"],
        ["z", "FAILED"],
    ]
    assert said[3:-1] == ["", "=== x", "I am x", "", "", "=== z", "I am z", ""]
    assert said[-1].split()[2:] == ["FAILED:", "x", "z"]


@pytest.fixture
def checked(command_line: CommandLine) -> Callable[[], list[str]]:
    """Check two parts, one with a container, and return the names of those that were run."""
    parts = [
        Part("one", "", "", check="true", reads=("one", "ignored"), image="tools"),
        Part("all", "", "", check="! grep -r bad one", reads=(".",)),
    ]

    def check() -> list[str]:
        _, said = command_line(parts, "check")
        return sorted(line.split()[0] for line in said if line.split()[2:] in (["passed"], ["FAILED"]))

    return check


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        ("true", []),
        ("touch one/a", []),
        ("echo more >one/a", ["all", "one"]),
        ("echo new >one/new", ["all", "one"]),
        ("rm one/a", ["all", "one"]),
        ("chmod +x one/a", ["all", "one"]),
        ("ln -sf /nowhere one/a", ["all", "one"]),
        ("echo new >ignored", ["one"]),
        ("echo more >two/a", ["all"]),
        ("echo more >docs/a", ["all"]),
        ("echo more >setup/check.sh", ["all", "one"]),
        ("echo more >schemas/a.json", ["all", "one"]),
        ("echo connlab/tools sha256:2 >../images", ["one"]),
        ("echo connlab/other sha256:1 >../images", ["one"]),
        ("rm -r .git", ["all", "one"]),
    ],
)
def test_a_part_is_checked_again_when_something_that_it_reads_has_changed(
    checked: Callable[[], list[str]], change: str, runs: list[str]
) -> None:
    assert checked() == ["all", "one"]
    subprocess.run(["bash", "-ec", change], check=True)
    assert checked() == runs


def test_a_part_that_failed_is_checked_again(checked: Callable[[], list[str]]) -> None:
    Path("one/a").write_text("bad")
    assert checked() == ["all", "one"]
    assert checked() == ["all"]
    Path("one/a").write_text("first")
    assert checked() == ["all", "one"]
    assert checked() == []


def test_a_file_that_changes_during_a_check_has_not_been_checked(command_line: CommandLine) -> None:
    parts = [Part("x", "", "", check="echo >>one/a", reads=("one",))]
    for _ in range(2):
        assert command_line(parts, "check")[1][0].endswith("passed")


def test_what_has_passed_its_check_needs_no_mending(command_line: CommandLine) -> None:
    parts = [Part("x", "", "", check="grep -q good one/a", reads=("one",), fmt="echo good >one/a; echo >>mended")]
    for _ in range(2):
        assert command_line(parts, "fmt")[1][0].endswith("passed")
    assert command_line(parts, "check")[1][0].endswith("passed")
    assert command_line(parts, "fmt")[1][0].endswith("unchanged since it passed")
    assert Path("mended").read_text() == "\n\n"


def test_another_command_is_another_check(command_line: CommandLine) -> None:
    for command in ("true", ": other"):
        part = Part("x", "", "", check=command, reads=("one",))
        assert command_line([part], "check")[1][0].endswith("passed")
        assert command_line([part], "check")[1][0].endswith("unchanged since it passed")


def test_each_check_reads_its_room_and_runs_in_its_image() -> None:
    for part in PARTS:
        _, containers, rest = part.check.partition("setup/check.sh ")
        if containers:
            image, room, *_ = rest.split()
            assert part.image == image
            assert room in part.reads
        reads = re.search(r"CONNLAB_READS=(?:'([^']*)'|(\S+))", part.check)
        folders = (reads[1] or reads[2]).split() if reads else []
        assert set(folders) <= set(part.reads), part.name


# --- a room's command on a copy ------------------------------------------------------------------------------


@pytest.fixture
def on_copy(tmp_path: Path) -> Callable[..., int]:
    """Run a command in a copy of the room `a/room`, which has the files `one` and `two`."""
    room = tmp_path / "repo" / "a" / "room"
    (room / "node_modules").mkdir(parents=True)
    for name in ("one", "two", "node_modules/large"):
        (room / name).write_text("first")

    def call(access: str, command: str) -> int:
        environment = {"CONNLAB_REPO": str(tmp_path / "repo"), "CONNLAB_COPY": str(tmp_path / "copy")}
        return subprocess.run(
            [paths.SETUP / "on-copy.sh", access, "a/room", "bash", "-ec", command],
            env=os.environ | environment,
            check=False,
            timeout=HANG_S,
        ).returncode

    return call


def test_a_check_changes_its_copy_alone(on_copy: Callable[..., int], tmp_path: Path) -> None:
    assert on_copy("ro", "[[ ! -e node_modules && $(<one) == first ]]; echo changed >one; exit 7") == 7
    assert (tmp_path / "repo/a/room/one").read_text() == "first"


@pytest.mark.parametrize("code", [0, 3])
def test_what_a_command_mends_is_written_into_the_file_that_lies_there(
    on_copy: Callable[..., int], tmp_path: Path, code: int
) -> None:
    one, two = (tmp_path / "repo/a/room" / name for name in ("one", "two"))
    one.chmod(0o640)
    before = one.stat()
    assert on_copy("rw", f"echo mended >new; mv new one; touch made two; echo elsewhere >{two}; exit {code}") == code
    assert (one.read_text(), two.read_text()) == ("mended\n", "elsewhere\n")
    assert (one.stat().st_ino, one.stat().st_mode) == (before.st_ino, before.st_mode)
    assert not (tmp_path / "repo/a/room/made").exists()
