"""Waiting for other processes, with a time limit that only a hang exceeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

HANG_S = 300


def wait_until(condition: Callable[[], object]) -> None:
    """Poll until `condition` holds."""
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_at_work(pid: int) -> bool:
    """Tell whether a process runs still; one that has ended may wait for its parent as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
