"""Programs that a test starts and waits for, with a time limit that only a hang exceeds."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

HANG_S = 300
# An `apt-get` that knows an archive, and installs nothing.
APT_GET = """#!/bin/sh
. /etc/os-release
[ "$1" != indextargets ] || echo "Packages main Debian $VERSION_CODENAME|http://archive/"
"""


def wait_until(condition: Callable[[], object]) -> None:
    """Poll until `condition` holds."""
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def write_program(file: Path, text: str) -> Path:
    """Write a script that can be executed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def run_program(*command: str | Path, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=HANG_S)


def end_by(number: signal.Signals, begun: Callable[[], object], *command: str | Path) -> tuple[int, str]:
    """Send a program and all that it started a signal, as a terminal does, once it has come to a point.

    Whatever those do who started the tests, a terminal's programs ignore no signal.
    """
    whole = ["env", "--default-signal=INT,TERM,HUP", *command]
    with subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until(begun)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=HANG_S)
    return process.returncode, said


def is_at_work(pid: int) -> bool:
    """Tell whether a process runs still; one that has ended may wait for its parent as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
