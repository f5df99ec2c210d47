"""What a kernel counts of a container whose processor limit holds it, from the cpu.stat of its control group."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CpuStat:
    """Counts since the control group was made.

    Attributes:
        throttled_periods: periods in which it had used up its share.
        throttled_us: for how long its processes were held then, once for each processor.
    """

    throttled_periods: int
    throttled_us: int


def read_cpu_stat(pid: str, container: str, root: Path = Path("/")) -> CpuStat | None:
    """Read the counts of a container's control group, of version 1 or 2.

    Args:
        pid: its first process, as the engine counts.
        container: its id. A control group of another name is not its own: the engine runs on another machine.
        root: where /proc and /sys are.

    Returns:
        None where they cannot be read.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc" / pid / "cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if container not in group:
                continue
            # Version 2 has one tree for all controllers, version 1 one for each, at a name that systemd links.
            tree = "cpu" if "cpu" in controllers.split(",") else ""
            with contextlib.suppress(OSError):
                return _parse_cpu_stat((root / "sys/fs/cgroup" / tree / group.lstrip("/") / "cpu.stat").read_text())
    return None


def _parse_cpu_stat(text: str) -> CpuStat | None:
    """Return the counts; None for the cpu.stat of a group without the controller, which has none of them."""
    counts = {name: int(value) for name, value in (line.split() for line in text.splitlines())}
    if "nr_throttled" not in counts:
        return None
    # Version 1 counts nanoseconds, under a name of its own.
    throttled_us = counts["throttled_time"] // 1000 if "throttled_time" in counts else counts["throttled_usec"]
    return CpuStat(counts["nr_throttled"], throttled_us)
