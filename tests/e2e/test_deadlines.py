"""A lab that is killed stops nothing: every container that it started ends by itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, left_behind, wait_until

pytestmark = pytest.mark.e2e

SCENARIO = Path(__file__).parent / "services" / "hello-tls"
# Ten times what the start takes on a quiet machine. The lab itself gives half an hour more than a run may take.
DEADLINE_S = int(os.environ.get("CONNLAB_TEST_DEADLINE_S", "60"))
SHORTENED = f"""
from lab.cli import main
from lab.engines import bounds
bounds.deadline_s = lambda effective: {DEADLINE_S}
main(["run", "--set=load.users=100", "--set=load.arrival_gap=60s", "--set=load.max_duration=2h", {str(SCENARIO)!r}])
"""


AT_WORK = {f"connlab-{name}" for name in ("k6-1", "hello-1", "collector-hello-1", "beside", "holder-beside")}


def running() -> list[str]:
    """The containers of a run that are at work."""
    listed = subprocess.run(
        ["docker", "ps", "--filter", "label=connlab.run", "--format", "{{.Names}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(listed.stdout.split())


def test_after_a_kill_of_the_lab_nothing_runs_on() -> None:
    process = subprocess.Popen([sys.executable, "-c", SHORTENED], cwd=ROOT, start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or set(running()) >= AT_WORK, "the start")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
    wait_until(lambda: not running(), "the end of all containers")
    assert left_behind()
    clear = "from lab.engines.selection import selected_engine; selected_engine().remove()"
    subprocess.run([sys.executable, "-c", clear], cwd=ROOT, check=True)
    assert left_behind() == []
