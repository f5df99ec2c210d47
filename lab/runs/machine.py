"""Facts about the machine, the repository and the clocks, for the manifest, the doctor and the limits of a run."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from formats.manifest import ClockReading, Git, Host, LabVersion
from lab import parallel, paths
from lab.errors import LabError

if TYPE_CHECKING:
    from lab.engines.protocol import Engine

_MEMINFO = Path("/proc/meminfo")
_GIT_TIMEOUT_S = 10
# What a look takes is what it leaves open: of several, one may be quick.
_LOOKS = 3


def memory_kb(field: str) -> int:
    """Read a field of /proc/meminfo, such as MemTotal or MemAvailable; kB, 0 where it is missing."""
    match = re.search(rf"^{field}:\s+([0-9]+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    return int(match[1]) if match else 0


def disk_free_bytes(path: Path) -> int:
    """Return the free space for this user on the file system of the nearest existing folder above `path`."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def git_state() -> Git:
    """Return the checkout's commit and whether the work tree differs from it; nulls where git cannot tell."""
    if paths.IS_INSTALLED:  # above it, git might find a repository of somebody else's
        return Git(commit=None, dirty=None)
    answers = parallel.each(_git, [("rev-parse", "HEAD"), ("status", "--porcelain")])
    commit, status = answers.values()
    return Git(commit=commit and commit.strip(), dirty=None if status is None else bool(status.strip()))


def _git(arguments: tuple[str, ...]) -> str | None:
    command = ["git", "-C", str(paths.ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def lab_version() -> LabVersion:
    """Return the lab's version and Python's."""
    return LabVersion(version=metadata.version("connlab"), python=platform.python_version())


def describe_host(engine: Engine) -> Host:
    """Describe the machine; asks the engine for its versions.

    Raises:
        LabError: no engine answers.
    """
    try:
        distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        distribution = "unknown"
    return Host(
        kernel=platform.release(),
        distribution=distribution,
        cpus=os.cpu_count() or 1,
        memory_kb=memory_kb("MemTotal"),
        **engine.versions(),
    )


def read_clock(instance: str, ask: Callable[..., str]) -> list[ClockReading]:
    """Note what the clock of an instance's machine shows; `ask` runs a command there. None if that fails."""
    found = []
    with contextlib.suppress(LabError, ValueError):
        for _ in range(_LOOKS):
            asked_us = time.time_ns() // 1000
            shown = ask("date", "+%s%6N")
            told_us = time.time_ns() // 1000
            found.append(ClockReading(instance=instance, asked_us=asked_us, shown_us=int(shown), told_us=told_us))
    return found
