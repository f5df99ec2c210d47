"""What a role can reach of a run's folder while the run goes on, and what becomes of what it leaves there."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.own_results import RESULTS

from .conftest import HANG_S, SHORTER_OVERFLOW, left_behind, start, wait_until

pytestmark = pytest.mark.e2e

SCENARIO = "accept-queue-overflow"


# A program for any user of the host to run as root, in whatever folder of a process's own can be reached.
PLANT = 'for root in /proc/[0-9]*/root; do cp /bin/cat "$root/raw/planted" && chmod 4755 "$root/raw/planted"; done'


def inside(instance: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script as a role, in its container."""
    command = ["docker", "exec", *options, f"connlab-{instance}", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def folders() -> set[Path]:
    return set((RESULTS / SCENARIO).glob("*-r*"))


def has_begun(known: set[Path]) -> bool:
    dials = (file for folder in folders() - known for file in folder.glob("raw/k6-1/role/dials.jsonl"))
    return any('"kind":"dial"' in file.read_text() for file in dials)


def test_a_role_reaches_its_own_raw_files_alone_and_leads_the_lab_nowhere() -> None:
    known = folders()
    run = start("run", SCENARIO, "--set=load.users=9", *SHORTER_OVERFLOW)
    try:
        wait_until(lambda: has_begun(known), "the first dial", run)
        (folder,) = folders() - known
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
