"""How a run ends that somebody interrupts, kills or leads astray, what it leaves, and what a role reaches meanwhile."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import (
    HANG_S,
    ROOT,
    SHORTER_OVERFLOW,
    connlab,
    docker,
    folders,
    interrupt,
    killed_at,
    latest,
    left_behind,
    load_has_begun,
    start,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("whole_turn")]

SCENARIO = "accept-queue-overflow"


def test_a_second_run_is_refused_and_an_interrupted_one_keeps_what_it_recorded() -> None:
    known, newest = folders(SCENARIO), latest(SCENARIO)
    first = start("run", SCENARIO)
    try:
        wait_until(lambda: load_has_begun(SCENARIO, known), "the first dial", first)
        second = connlab("run", "accept-queue-healthy")
        assert second.returncode == 4
        assert str(first.pid) in second.stdout + second.stderr, "it names the run that holds the machine"
        assert "Traceback" not in second.stderr
    finally:
        output = interrupt(first)
    assert "Traceback" not in output
    assert first.returncode == 4
    assert left_behind() == []
    (aborted,) = folders(SCENARIO) - known
    assert latest(SCENARIO) == newest
    manifest = json.loads((aborted / "manifest.json").read_text())
    assert manifest["status"] == "aborted"
    assert manifest["reason"]
    assert f"{aborted.name}/report.html" in output
    assert "The run was aborted" in (aborted / "report.html").read_text()
    analysed = connlab("analyse", str(aborted))
    assert analysed.returncode == 3, analysed.stdout + analysed.stderr
    verdict = json.loads((aborted / "derived/verdict.json").read_text())
    assert verdict["verdict"] == "inconclusive"


AT_WORK = {f"connlab-run-{name}" for name in ("k6-1", "hello-1", "collector-hello-1", "beside", "holder-beside")}


def running() -> list[str]:
    """The containers of a run that are at work."""
    return docker("ps", "--filter", "label=connlab.run", "--format", "{{.Names}}").split()


def test_after_a_kill_of_the_lab_nothing_runs_on() -> None:
    service = Path(__file__).parent / "services" / "hello-tls"
    load = ("--set=load.users=100", "--set=load.arrival_gap=60s", "--set=load.max_duration=2h")
    killed_at(lambda: set(running()) >= AT_WORK, "run", *load, str(service))
    wait_until(lambda: not running(), "the end of all containers")
    assert left_behind()
    clear = "from lab.engines.selection import selected_engine; selected_engine().remove()"
    subprocess.run([sys.executable, "-c", clear], cwd=ROOT, check=True)
    assert left_behind() == []


# A program for any user of the host to run as root, in whatever folder of a process's own can be reached.
PLANT = 'for root in /proc/[0-9]*/root; do cp /bin/cat "$root/raw/planted" && chmod 4755 "$root/raw/planted"; done'


def inside(instance: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script as a role, in its container."""
    command = ["docker", "exec", *options, f"connlab-run-{instance}", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_role_reaches_its_own_raw_files_alone_and_leads_the_lab_nowhere() -> None:
    known = folders(SCENARIO)
    run = start("run", SCENARIO, "--set=load.users=9", *SHORTER_OVERFLOW)
    try:
        wait_until(lambda: load_has_begun(SCENARIO, known), "the first dial", run)
        (folder,) = folders(SCENARIO) - known
        modes = {path: path.lstat().st_mode for path in (folder, *folder.rglob("*")) if path.is_dir()}
        found = inside("backend-1", "ls -A /raw; find / -name samples.jsonl -not -path '/proc/*' 2>/dev/null")
        around = inside("backend-1", "ls /proc/1/root/raw")
        inside("backend-1", PLANT, "--user", "0")
        reached = [path for path in folder.rglob("planted") if path.parent.name != "role"]
        planted = [
            inside("backend-1", "ln -s /etc/passwd /raw/access.jsonl && mkfifo /raw/error.log"),
            inside("k6-1", "cd /raw && mv requests.jsonl kept.jsonl && ln -s /etc/shadow requests.jsonl"),
            inside("k6-1", "cd /raw && rm live.jsonl && mkfifo live.jsonl && ln kept.jsonl again.jsonl"),
        ]
    finally:
        output, _ = run.communicate(timeout=HANG_S)

    assert [str(path) for path, mode in modes.items() if mode & stat.S_IWOTH] == []
    assert stat.S_IMODE(modes[folder]) == 0o700, "nobody else looks in while containers write"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert found.stdout.split() == ["gc.log"]
    assert (around.returncode, around.stdout) != (0, "")
    assert reached == []
    assert [path for path in folder.rglob("planted") if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)] == []
    assert [each.stderr for each in planted if each.returncode] == []

    assert run.returncode == 3, output
    assert "Traceback" not in output
    assert left_behind() == []
    removed = {each["file"]: each["was"] for each in json.loads((folder / "manifest.json").read_text())["removed"]}
    linked = {path: was for path, was in removed.items() if was == "a second name of another file"}
    assert set(linked) == {"raw/k6-1/role/again.jsonl"} or set(linked) == {"raw/k6-1/role/kept.jsonl"}
    assert {path: was for path, was in removed.items() if path not in linked} == {
        "raw/backend-1/role/access.jsonl": "a symbolic link",
        "raw/backend-1/role/error.log": "a named pipe",
        "raw/k6-1/role/live.jsonl": "a named pipe",
        "raw/k6-1/role/requests.jsonl": "a symbolic link",
    }
    verdict = json.loads((folder / "derived" / "verdict.json").read_text())
    assert verdict["verdict"] == "inconclusive"
    assert "requests.jsonl was a symbolic link" in json.dumps(verdict)
    assert "requests.jsonl was a symbolic link" in (folder / "report.html").read_text()
    left = [path for path in (folder / "raw").rglob("*") if path.is_dir()]
    assert {path.stat().st_uid for path in left} == {os.geteuid()}
    assert {stat.S_IMODE(path.stat().st_mode) for path in left if path.name in ("collector", "role")} == {0o755}
    assert all(stat.S_ISREG(path.lstat().st_mode) for path in (folder / "raw").rglob("*") if not path.is_dir())
