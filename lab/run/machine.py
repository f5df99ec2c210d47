"""What the machine is: facts for the manifest, the doctor and the limits of a run."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_OS_RELEASE = Path("/etc/os-release")


def memory_kb(field: str) -> int:
    """Read a field of /proc/meminfo, such as MemTotal or MemAvailable; kB, 0 where it is missing."""
    match = re.search(rf"^{field}:\s+([0-9]+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    return int(match[1]) if match else 0


def distribution() -> str:
    """Name the distribution as it names itself."""
    try:
        match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', _OS_RELEASE.read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else "unknown"


def cpus() -> int:
    """Count the processors of the machine, which are the containers' too."""
    return os.cpu_count() or 1


def kernel() -> str:
    """Give the kernel's release."""
    return platform.release()


def disk_free_bytes(path: Path) -> int:
    """Give the free space for this user on the file system of the nearest existing folder above `path`."""
    while not path.exists():
        path = path.parent
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
