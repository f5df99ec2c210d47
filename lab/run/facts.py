"""Gathers, side by side, what the manifest says about repository and machine."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata

from formats.manifest import Git, Host, LabVersion
from lab import parallel, paths
from lab.engines.protocol import Engine
from lab.run import machine

_GIT_TIMEOUT_S = 10


def git_state() -> Git:
    """Give the repository's commit and whether the work tree differs from it; nulls where git cannot tell."""
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
    """Give the lab's version and Python's."""
    return LabVersion(version=metadata.version("connlab"), python=platform.python_version())


def host(engine: Engine) -> Host:
    """Describe the machine; asks the engine for its versions.

    Raises:
        LabError: no engine answers.
    """
    return Host(
        kernel=machine.kernel(),
        distribution=machine.distribution(),
        cpus=machine.cpus(),
        memory_kb=machine.memory_kb("MemTotal"),
        **engine.versions(),
    )
