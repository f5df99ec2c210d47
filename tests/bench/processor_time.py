"""The processor time that the programs in a run's containers take, as /proc has it."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lab.engines.compose.containers import RUN_LABEL
from lab.engines.compose.docker import docker

_LOOK_S = 0.1


@dataclass
class ProcessorTime:
    """What each container's programs took.

    Attributes:
        by_container: seconds of a processor, by the container's name.
        elapsed_s: how long they were watched.
    """

    by_container: dict[str, float] = field(default_factory=dict)
    elapsed_s: float = 0


@contextmanager
def measured_processor_time() -> Iterator[ProcessorTime]:
    """Watch the programs that run now, and the children that they have waited for; give what they took at the end.

    /proc forgets a program that has ended, and k6 ends before its load does, so each is looked at all the time.
    """
    names = docker("ps", "--filter", f"label={RUN_LABEL}", "--format", "{{.Names}}").split()
    containers = {int(pid): name for name in names for pid in docker("top", name, "-eo", "pid").split()[1:]}
    latest: dict[int, float] = {}
    over = threading.Event()

    def look() -> None:
        for pid in containers:
            with suppress(FileNotFoundError, ProcessLookupError):
                latest[pid] = _taken_s(pid)

    look()
    began_s, began = time.monotonic(), dict(latest)

    def watch() -> None:
        while not over.wait(_LOOK_S):
            look()

    found = ProcessorTime()
    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()
        look()
        found.elapsed_s = time.monotonic() - began_s
        for pid, before_s in began.items():
            name = containers[pid]
            found.by_container[name] = found.by_container.get(name, 0) + latest[pid] - before_s


def _taken_s(pid: int) -> float:
    # The fields behind the name, which may hold blanks: proc_pid_stat(5).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
